//! Knowledge of vector instructions that a hart has executed before, so that it is not found out again.
//!
//! It follows from the encoding, vtype and, where it counts, vl. An instruction that is not known takes the long way, so nothing but time depends on this.

use super::encoding::Encoding;
use super::transfer::Transfer;
use super::unit::VectorUnit;

/// log2 of the entries of a table.
const LOG2_ENTRIES: u32 = 8;
const ENTRIES: usize = 1 << LOG2_ENTRIES;
/// Set in a key, so that none is 0.
const IS_KEY: u64 = 1 << 63;

/// A load or store of bytes that follow each other in memory and in registers, none of them left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Run {
    /// True of a store.
    pub is_store: bool,
    /// First register.
    pub register: u8,
    /// Bytes that are moved.
    pub bytes: u16,
}

/// Knowledge of one hart.
#[derive(Debug, Clone)]
pub struct Known {
    checked: Box<[u64; ENTRIES]>,
    runs: Box<[(u64, Run); ENTRIES]>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            checked: Box::new([0; ENTRIES]),
            runs: Box::new([(0, Run::default()); ENTRIES]),
        }
    }
}

/// Key of an encoding under the present vtype.
#[inline]
const fn key(unit: &VectorUnit, encoding: Encoding) -> u64 {
    let vtype = unit.vtype().bits();
    // vill above the fields.
    IS_KEY | encoding.0 as u64 | (vtype & 0xff | vtype >> 63 << 8) << 32
}

/// Key of an encoding under the present vtype and vl.
#[inline]
const fn key_with_vl(unit: &VectorUnit, encoding: Encoding) -> u64 {
    // vl is at most 1,024 elements of a byte in eight registers: 14 bits.
    key(unit, encoding) | (unit.vl() as u64) << 44
}

/// Entry of a key in a table.
#[inline]
const fn place(key: u64) -> usize {
    // The multiplier is 2 to the 64 over the golden ratio: it spreads keys that differ in few bits.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - LOG2_ENTRIES)) as usize
}

impl Known {
    /// Tests whether the register groups of an instruction of OP-V or OP-VE are known to be legal.
    #[inline]
    #[must_use]
    pub fn is_checked(&self, unit: &VectorUnit, encoding: Encoding) -> bool {
        let key = key(unit, encoding);
        self.checked[place(key)] == key
    }

    /// Notes that they are.
    #[inline]
    pub fn note_checked(&mut self, unit: &VectorUnit, encoding: Encoding) {
        let key = key(unit, encoding);
        self.checked[place(key)] = key;
    }

    /// The run of a load or store, if it is known to be one.
    #[inline]
    #[must_use]
    pub fn run(&self, unit: &VectorUnit, encoding: Encoding) -> Option<Run> {
        let key = key_with_vl(unit, encoding);
        let (known, run) = self.runs[place(key)];
        (known == key).then_some(run)
    }

    /// Notes a load or store that is one.
    #[inline]
    pub fn note_run(&mut self, unit: &VectorUnit, encoding: Encoding, transfer: &Transfer) {
        if !transfer.is_contiguous() {
            return;
        }
        let run = Run {
            is_store: transfer.is_store,
            register: transfer.register(),
            // Eight registers of 128 bytes at most.
            bytes: (transfer.end * transfer.width.bytes()) as u16,
        };
        let key = key_with_vl(unit, encoding);
        self.runs[place(key)] = (key, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::VectorLength;
    use crate::vector::Vtype;

    /// A unit with registers of 128 bits, e8, and this LMUL and vl.
    fn unit(multiplier: u64, vl: u64) -> VectorUnit {
        let mut unit = VectorUnit::new(VectorLength::new(128).expect("a length"));
        unit.configure(Vtype::from_bits(multiplier, unit.length()), vl);
        unit
    }

    #[test]
    fn checks_hold_for_one_vtype() {
        let mut known = Known::default();
        // vadd.vv v8, v8, v8
        let add = Encoding(0x0284_0457);
        known.note_checked(&unit(3, 10), add);
        assert!(known.is_checked(&unit(3, 20), add), "whatever vl is");
        assert!(!known.is_checked(&unit(2, 10), add), "another LMUL");
        assert!(!known.is_checked(&unit(1 << 63, 10), add), "no vtype");
        assert!(!known.is_checked(&unit(3, 10), Encoding(add.0 + (1 << 7))));
    }

    #[test]
    fn runs_hold_for_one_vl() {
        let mut known = Known::default();
        // vle8.v v8, (a0)
        let load = Encoding(0x0205_0407);
        let ten = unit(3, 10);
        let transfer = Transfer::new(&ten, load, 0x1000, 0).expect("legal");
        known.note_run(&ten, load, &transfer);
        let run = Run {
            is_store: false,
            register: 8,
            bytes: 10,
        };
        assert_eq!(known.run(&ten, load), Some(run));
        assert_eq!(known.run(&unit(3, 11), load), None);
        // vle8.v v8, (a0), v0.t leaves elements out.
        let masked = Encoding(0x0005_0407);
        let transfer = Transfer::new(&ten, masked, 0x1000, 0).expect("legal");
        known.note_run(&ten, masked, &transfer);
        assert_eq!(known.run(&ten, masked), None);
    }
}
