//! Address translation: page tables in memory, and the host's shortcuts around them.

mod context;
mod masking;
mod saved;
mod shadow;
#[cfg(test)]
mod tests;
mod tlb;
mod walk;

pub use context::{ContextKey, Contexts};
pub use masking::Masking;
pub use saved::{SavedJumps, SavedTlb};
pub use shadow::{Shadow, Stage, StaleUse, Use};
pub(crate) use tlb::{DATA_ENTRIES, JUMP_ENTRIES};
pub use tlb::{Entry, HostTlb, JumpCache, JumpEntry};
pub use walk::{Mapping, View, WalkTrace, walk};

pub use crate::base::{Fence, Paging, Reference};
