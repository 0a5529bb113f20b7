//! Ports to a guest: its code, registers, clock and memory.

use core::fmt::Debug;

use crate::register::{Register, Width};

/// A guest at its wait, on the hart that it has just left.
pub trait Guest {
    /// Host address of a word in the guest's memory, aligned to the width that it was found with.
    type Address: Copy + Debug + PartialEq;

    /// Halfword of code at a guest-virtual address, if there is one.
    fn fetch(&self, address: u64) -> Option<u16>;

    /// Host address and current value of the word at a guest-virtual address, if the guest can load it.
    fn load(&self, address: u64, width: Width) -> Option<(Self::Address, u64)>;

    /// Value of a register other than `x0`.
    fn register(&self, register: Register) -> u64;

    /// Time of the guest's clock.
    fn clock(&self) -> u64;
}

/// An address that a word of a guest's memory can be read from.
pub trait ReadWord: Copy {
    /// Current value, with zeros above `width`.
    fn read(self, width: Width) -> u64;

    /// The address as a number. Two words of one VM have different numbers.
    fn raw(self) -> u64;
}
