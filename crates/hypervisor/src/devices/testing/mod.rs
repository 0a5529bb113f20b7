//! Common parts of the tests of devices: memory, a device of the board as its registers and rings show it, and a surrounding that has
//! nothing else.

pub mod context;
pub mod device;
pub mod memory;
