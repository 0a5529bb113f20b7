//! Test finisher of SiFive's test device (device tree binding "sifive,test0"): a word that ends the run.

/// Ends with a failure; the code is in bits 31:16.
pub const FAIL: u32 = 0x3333;
/// Ends with success.
pub const PASS: u32 = 0x5555;
/// Resets the board.
pub const RESET: u32 = 0x7777;
