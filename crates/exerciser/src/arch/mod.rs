//! Everything that touches the hardware: the only modules with `unsafe` in them.

pub mod boot;
pub mod csr;
pub mod events;
pub mod imsic;
pub mod locks;
pub mod memory;
pub mod paging;
pub mod repeated;
pub mod sandbox;
pub mod sbi;
pub mod state;
pub mod suspend;
pub mod sync;
pub mod team;
pub mod trap;
pub mod vector;
