//! Common parts of the tests of devices: memory, a device of the board with registers and rings, and a context without anything
//! else.

pub mod context;
pub mod device;
pub mod memory;
