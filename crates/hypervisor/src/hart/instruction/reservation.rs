//! Which word a spinning guest watches, read off the code in front of its WRS.NTO.
//!
//! Stock Linux waits for a word to change by
//!
//! ```text
//! lr.w   rd, (rs1)        # or lr.d
//! c.xor  rd, rd, rv
//! c.bnez rd, changed
//! wrs.nto
//! ```
//!
//! so at the trap rs1 holds the address and rv the value that was last seen there. This is a hint:
//! a guest may have come to its WRS.NTO by another way, and then the guess is wrong.

use crate::hart::decode::{Register, Width};

/// Bytes from the LR to the WRS.NTO.
const DISTANCE: usize = 8;

/// A word in memory that a guest waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchedWord {
    /// Holds its guest-virtual address.
    pub address: Register,
    /// Holds the value that the guest saw there.
    pub seen: Register,
    /// How long the word is: four or eight bytes.
    pub width: Width,
}

impl WatchedWord {
    /// Bytes of code that are looked at, those in front of the WRS.NTO.
    pub const CODE_LENGTH: usize = DISTANCE;

    /// Reads the pattern from the code in front of a WRS.NTO; `None` where it is another one.
    pub fn decode(code: [u8; DISTANCE]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = code;
        let load = u32::from_le_bytes([a, b, c, d]);
        let difference = u32::from(u16::from_le_bytes([e, f]));
        let branch = u32::from(u16::from_le_bytes([g, h]));
        // LR: major opcode AMO, funct5 00010, rs2 zero; any ordering bits.
        let width = match load & 0xf9f0_707f {
            0x1000_202f => Width::Word,
            0x1000_302f => Width::Double,
            _ => return None,
        };
        let loaded = Register::from_field(load >> 7);
        let address = Register::from_field(load >> 15);
        // C.XOR: 100 0 11 rd' 01 rs2' 01. C.BNEZ: 111 offset rs1' offset 01.
        let is_difference = difference & 0xfc63 == 0x8c21;
        let is_branch = branch & 0xe003 == 0xe001;
        let short = |field: u32| Register::from_field(8 | field & 7);
        let seen = short(difference >> 2);
        let one_register = loaded == short(difference >> 7) && loaded == short(branch >> 7);
        // Where the load took the address's or the other operand's place, that is gone.
        let intact = loaded != address && loaded != seen;
        (is_difference && is_branch && one_register && intact).then_some(Self {
            address,
            seen,
            width,
        })
    }
}
