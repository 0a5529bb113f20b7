//! Progress of loading a VM.

pub mod plan;

use alloc::boxed::Box;

use crate::memory::address::GuestPhysical;
use crate::vm::image::{ImageError, Layout, LayoutError};
use crate::vm::lifecycle::life::Run;
use crate::vm::loading::plan::Plan;
use crate::vm::seed::{self, Seeds};
use board::guest_tree::GuestTreeError;

/// Entry of a loaded guest.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub entry: GuestPhysical,
    pub tree: GuestPhysical,
}

/// Progress of loading a VM, for one of its runs.
#[derive(Debug, Default)]
pub struct Loading {
    pub run: Run,
    pub stage: Stage,
    /// Source of the guest's seeds, if the board has entropy.
    pub seeds: Option<Seeds>,
    /// Set if the memory besides the guest's parts keeps its contents in this run.
    pub keeps_memory: bool,
    /// The guest's device tree, made when the system was assembled, or the reason why there is none.
    pub tree: Option<Result<Tree, LoadError>>,
}

/// Reason why a guest cannot be loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    #[error("its kernel cannot be used: {0}")]
    Kernel(ImageError),
    #[error("its memory is too small: {0}")]
    Layout(LayoutError),
    #[error("its device tree cannot be made: {0}")]
    Tree(GuestTreeError),
    #[error("a part of it does not lie in its memory")]
    Outside,
}

/// A guest's device tree. A restarted guest gets the same tree with another seed, so that a restart allocates nothing.
#[derive(Debug)]
pub struct Tree {
    pub bytes: Box<[u8]>,
    /// Offset of the seed in the tree, if there is one.
    pub seed_at: Option<usize>,
    /// Addresses of the guest's parts.
    pub layout: Layout,
}

impl Tree {
    /// Replaces the seed, if the tree has one.
    pub fn set_seed(&mut self, seed: &[u8; seed::LENGTH]) {
        let place = self.seed_at.and_then(|at| self.bytes.get_mut(at..));
        if let Some(place) = place.and_then(|rest| rest.get_mut(..seed::LENGTH)) {
            place.copy_from_slice(seed);
        }
    }
}

/// Next piece to load.
#[derive(Debug, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be allocated at each start, and there is one stage a VM"
)]
pub enum Stage {
    /// The VM's devices still have to be reset.
    #[default]
    Reset,
    /// The memory from this offset on is still to be zeroed at its next touch.
    Forget(u64),
    /// The device tree is to get a seed.
    Seed,
    Fill {
        plan: Plan,
        start: Start,
    },
}

/// Progress of a step.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    More,
    Done(Start),
}
