//! Physical memory: RAM, what is decoded from it, and who watches it.

mod observe;
mod physical;
mod walk;
mod watch;

pub use observe::Observed;
pub use physical::{PhysicalMemory, SavedMemory, StoreOutcome, Transfer};
pub use walk::walk;
pub use watch::{Watch, Watches};

pub use crate::base::{LINE_BYTES, PAGE_BYTES, PAGE_SHIFT};
pub use crate::ram::{OpenPage, Ram, RamError, Scalar};
