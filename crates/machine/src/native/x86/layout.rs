//! Where translated code finds the hart and the tables.

use std::mem::offset_of;

use super::assembler::{Place, RBP, RBX, at};
use super::target::Target;
use crate::hart::{Deadlines, Hart};
use crate::timing::FilterTables;
use crate::translation::Entry;

/// The register that RBP points to: all of `x` lies within a byte's displacement.
pub const MIDDLE: usize = 16;

/// State that translated code works on. RBX points to it.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// The hart's integer register [`MIDDLE`]: RBP.
    pub middle: *mut u8,
    /// The hart's table of loads: R12.
    pub loads: *const Entry,
    /// The hart's table of stores: R13.
    pub stores: *const Entry,
    /// The first byte of RAM: R14.
    pub ram: *mut u8,
    /// The hart's table of fetches.
    pub fetches: *const Entry,
    /// Translated blocks by where they are in RAM.
    pub targets: *const Target,
    /// The first byte of the buffer.
    pub code: *const u8,
    /// Places of the filters.
    pub filters: FilterTables,
    /// The address of the block at the end: R15.
    pub block: u64,
}

/// A field of the frame.
macro_rules! frame {
    ($($field:tt)+) => {
        $crate::native::x86::layout::in_frame(std::mem::offset_of!($crate::native::x86::layout::Frame, $($field)+))
    };
}
pub(super) use frame;

/// A field of the hart.
macro_rules! hart {
    ($($field:tt)+) => {
        $crate::native::x86::layout::in_hart(std::mem::offset_of!($crate::hart::Hart, $($field)+))
    };
}
pub(super) use hart;

pub const fn in_frame(offset: usize) -> Place {
    at(RBX, offset as i32)
}

/// `offset_of!(Hart, x)` and the bytes before [`MIDDLE`].
pub const fn middle_offset() -> usize {
    offset_of!(Hart, x) + MIDDLE * 8
}

pub const fn in_hart(offset: usize) -> Place {
    at(RBP, offset as i32 - middle_offset() as i32)
}

/// The limit of the hart's deadlines.
pub const fn limit() -> Place {
    in_hart(offset_of!(Hart, deadlines) + Deadlines::LIMIT_OFFSET)
}

/// An integer register of the hart.
pub const fn register(number: u8) -> Place {
    at(RBP, (number as i32 - MIDDLE as i32) * 8)
}

const _: () = assert!(size_of::<Entry>() == 16 && offset_of!(Entry, tag) == 0);
const _: () = assert!(offset_of!(Entry, addend) == 8);
const _: () = assert!(size_of::<Target>() == 8 && offset_of!(Target, tag) == 0);
const _: () = assert!(offset_of!(Target, place) == 4);
const _: () = assert!(size_of::<Hart>() < i32::MAX as usize);
