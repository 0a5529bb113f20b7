//! Translations: the host's shortcuts around page tables, and results of walks.
//!
//! The walk itself is in [`memory`](crate::memory), because it reads page tables there.

mod context;
mod masking;
mod resume;
mod saved;
mod shadow;
mod tlb;
mod view;

pub use context::{ContextKey, Contexts};
pub use masking::Masking;
pub use resume::Resume;
pub use saved::{Kept, SavedTlb};
pub use shadow::{Shadow, Stage, StaleUse, Use};
pub(crate) use tlb::{DATA_ENTRIES, FETCH_ENTRIES};
pub use tlb::{Entry, HostTlb, NEVER};
pub use view::{Mapping, View, WalkTrace};

pub use crate::base::{Fence, Paging, Reference};
