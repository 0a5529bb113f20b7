//! Terms of every part of the machine: ids, addresses, modes, times, exceptions.
//!
//! Nothing here imports another part of the machine, so every part may import it.

mod address;
mod exception;
mod fence;
mod file;
mod irq_levels;
mod mode;
mod paging;
mod protection;
mod reach;
mod space;
mod time;
mod vector_length;

pub use address::{LINE_BYTES, LINE_SHIFT, PAGE_BYTES, PAGE_SHIFT, Reference};
pub use exception::{Access, Cause, Exception, Interrupt, Trapped};
pub use fence::{Fence, VirtualFence};
pub use file::{InterruptFile, NoSuchRegister};
pub use irq_levels::{HartId, HartIrqLevels, IrqLevels};
pub use mode::{Mode, Privilege};
pub use paging::{Paging, levels};
pub use protection::PmpEntries;
pub use reach::{AccessFault, Memory};
pub use space::Space;
pub use splitmix::SplitMix64 as Random;
pub use time::{Clock, Cycles};
pub use vector_length::VectorLength;
