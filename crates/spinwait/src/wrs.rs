//! Decoding of the code in front of a WRS.NTO: the word that the guest watches.
//!
//! Stock Linux waits for a change of a word by
//!
//! ```text
//! lr.w   rd, (rs1)        # or lr.d
//! c.xor  rd, rd, rv
//! c.bnez rd, changed
//! wrs.nto
//! ```
//!
//! so at the trap rs1 has the address and rv the value that the guest saw. This is a hint: a guest that came to its WRS.NTO by another way makes
//! the guess wrong.

use crate::register::{Register, Width};

/// Bytes from the LR to the WRS.NTO.
const DISTANCE: usize = 8;

/// Registers of a loop that waits by WRS.NTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WrsLoop {
    /// Guest-virtual address of the word.
    pub address: Register,
    /// Value that the guest saw.
    pub seen: Register,
    /// Width of the word: four or eight bytes.
    pub width: Width,
}

impl WrsLoop {
    /// Bytes of code in front of the WRS.NTO that are decoded.
    pub const CODE_LENGTH: usize = DISTANCE;

    /// Decodes the code in front of a WRS.NTO; `None` for any other code.
    #[must_use]
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
        let short = Register::from_short_field;
        let seen = short(difference >> 2);
        let one_register = loaded == short(difference >> 7) && loaded == short(branch >> 7);
        // A load over the address or the other operand destroys it.
        let intact = loaded != address && loaded != seen;
        (is_difference && is_branch && one_register && intact).then_some(Self {
            address,
            seen,
            width,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decoding_accepts_any_code(code in any::<[u8; 8]>()) {
            if let Some(word) = WrsLoop::decode(code) {
                prop_assert!((8..16).contains(&word.seen.number()));
            }
        }

        /// The pattern with every choice of registers.
        #[test]
        fn every_compiled_loop_is_decoded(
            address in 0u32..32, loaded in 8u32..16, seen in 8u32..16, wide in any::<bool>(),
            ordering in 0u32..4, offset in 0u32..32,
        ) {
            let funct3 = if wide { 3 } else { 2 };
            let load = (0b00010 << 2 | ordering) << 25 | address << 15 | funct3 << 12 | loaded << 7 | 0x2f;
            let difference = 0b100011 << 10 | (loaded - 8) << 7 | 0b01 << 5 | (seen - 8) << 2 | 0b01;
            let branch = 0b111 << 13 | (loaded - 8) << 7 | offset << 2 | 0b01;
            let mut code = [0; 8];
            code[..4].copy_from_slice(&load.to_le_bytes());
            code[4..6].copy_from_slice(&(difference as u16).to_le_bytes());
            code[6..].copy_from_slice(&(branch as u16).to_le_bytes());
            let clobbered = loaded == address || loaded == seen;
            let want = WrsLoop {
                address: Register::from_field(address),
                seen: Register::from_field(seen),
                width: if wide { Width::Double } else { Width::Word },
            };
            prop_assert_eq!(WrsLoop::decode(code), (!clobbered).then_some(want));
            let mut other = code;
            other[0] ^= 0x40;
            prop_assert_eq!(WrsLoop::decode(other), None);
        }
    }
}
