//! How far a VM is loaded.

pub mod plan;

use alloc::vec::Vec;

use crate::memory::address::GuestPhysical;
use crate::vm::lifecycle::life::Run;
use crate::vm::loading::plan::Plan;
use crate::vm::seed::Seeds;

/// Where a loaded guest begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub entry: GuestPhysical,
    pub tree: GuestPhysical,
}

/// How far a VM is loaded, for one of its runs.
#[derive(Debug, Default)]
pub struct Loading {
    pub run: Run,
    pub stage: Stage,
    /// Where the guest's seeds come from, if the board has entropy.
    pub seeds: Option<Seeds>,
    /// All memory has been zeroed or filled since the VM was made.
    pub clean: bool,
}

/// What comes next.
#[derive(Debug, Default)]
pub enum Stage {
    /// The VM's chips and devices still have to be reset.
    #[default]
    Reset,
    /// The size of the device tree is to be found.
    Draft,
    /// The device tree is to be built, for a tree of this size.
    Tree(u64),
    Fill {
        plan: Plan,
        tree: Vec<u8>,
        start: Start,
    },
}

/// How far a step has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    More,
    Done(Start),
}
