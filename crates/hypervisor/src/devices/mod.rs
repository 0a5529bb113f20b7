//! Devices: those that guests are given, and those of the board.

pub mod aplic;
pub mod attendants;
pub mod board_aplic;
pub mod board_uart;
pub mod bus;
pub mod chips;
pub mod clock;
pub mod serial;
pub mod shared;
pub mod simulated;
#[cfg(test)]
pub mod testing;
pub mod trapped;
pub mod uart;
pub mod virtio;
pub mod wires;
