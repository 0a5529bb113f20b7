//! Physical memory: RAM, what is decoded from it, and who watches it.

mod observe;
mod pages;
mod physical;
mod ram;
mod watch;

pub use observe::Observed;
pub(crate) use pages::Pages;
pub use physical::{PhysicalMemory, SavedMemory, StoreOutcome, Transfer};
pub use ram::{OpenPage, Ram, RamError, Scalar};
pub use watch::{LINE_BYTES, Watch, Watches};

/// Bytes of a page, the unit of translation.
pub const PAGE_BYTES: u64 = 4096;
/// log2 of [`PAGE_BYTES`].
pub const PAGE_SHIFT: u32 = 12;
