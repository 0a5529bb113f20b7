//! State of a vector unit: its registers and CSRs.

use serde::{Deserialize, Serialize};

use super::vtype::{Vtype, Width};
use crate::base::VectorLength;

/// Vector registers of a hart.
pub const REGISTERS: usize = 32;
/// Bytes that are computed at once: no register is shorter.
pub(super) const CHUNK: usize = 16;

/// The registers and CSRs of "V", "Vector Extension Programmer's Model".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorUnit {
    length: VectorLength,
    /// All registers, one behind the other: a group is a run of bytes.
    registers: Vec<u8>,
    vl: u16,
    vtype: Vtype,
    /// Element at which the next instruction begins.
    pub vstart: u16,
    /// Fixed-point rounding mode, two bits.
    pub vxrm: u8,
    /// Fixed-point saturation flag.
    pub vxsat: bool,
}

impl VectorUnit {
    /// A unit as it leaves reset: vtype is illegal, everything else zero.
    #[must_use]
    pub fn new(length: VectorLength) -> Self {
        Self {
            length,
            registers: vec![0; REGISTERS * length.bytes()],
            ..Self::default()
        }
    }

    /// Tests whether the hart has a vector unit.
    #[inline]
    #[must_use]
    pub const fn exists(&self) -> bool {
        self.length.exists()
    }

    /// VLEN.
    #[must_use]
    pub const fn length(&self) -> VectorLength {
        self.length
    }

    /// Tests whether a unit of this length can have such a state.
    #[must_use]
    pub fn is_possible(&self, length: VectorLength) -> bool {
        self.length == length
            && self.registers.len() == REGISTERS * length.bytes()
            && usize::from(self.vl) <= self.vtype.max_elements(length)
            && self.vstart < length.bits().max(1)
            && self.vxrm < 4
    }

    /// vl.
    #[must_use]
    pub const fn vl(&self) -> usize {
        self.vl as usize
    }

    /// vtype.
    #[must_use]
    pub const fn vtype(&self) -> Vtype {
        self.vtype
    }

    /// vlenb.
    #[must_use]
    pub const fn vlenb(&self) -> usize {
        self.length.bytes()
    }

    /// Sets vtype, and vl to as many of the `wanted` elements as there is room for. An illegal vtype makes vl zero.
    ///
    /// With more elements than fit vl is VLMAX, also between VLMAX and twice VLMAX, where the specification leaves a choice
    /// ("Constraints on Setting vl").
    pub fn configure(&mut self, vtype: Vtype, wanted: u64) -> u64 {
        let most = vtype.max_elements(self.length) as u64;
        // At most VLEN elements of a byte, eightfold.
        self.vl = wanted.min(most) as u16;
        self.vtype = vtype;
        self.vstart = 0;
        u64::from(self.vl)
    }

    /// Makes vl smaller: a fault-only-first load has met a fault.
    pub const fn truncate(&mut self, elements: usize) {
        if elements < self.vl as usize {
            self.vl = elements as u16;
        }
    }

    /// vstart as the CSR keeps it: as many bits as an element's index has ("Vector Start Index CSR").
    pub const fn set_vstart(&mut self, value: u64) {
        self.vstart = (value & (self.length.bits() as u64).wrapping_sub(1)) as u16;
    }

    /// Element of a register group, zero-extended; zero beyond the registers.
    #[inline]
    #[must_use]
    pub fn element(&self, register: u8, index: usize, width: Width) -> u64 {
        let size = width.bytes();
        let at = usize::from(register) * self.vlenb() + index * size;
        let Some(bytes) = self.registers.get(at..at + size) else {
            return 0;
        };
        match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// Sets an element of a register group to the low bits of a value.
    #[inline]
    pub fn set_element(&mut self, register: u8, index: usize, width: Width, value: u64) {
        let size = width.bytes();
        let at = usize::from(register) * self.vlenb() + index * size;
        if let Some(bytes) = self.registers.get_mut(at..at + size) {
            for (to, from) in bytes.iter_mut().zip(value.to_le_bytes()) {
                *to = from;
            }
        }
    }

    /// Bit of a mask register.
    #[inline]
    #[must_use]
    pub fn mask_bit(&self, register: u8, index: usize) -> bool {
        let at = usize::from(register) * self.vlenb() + index / 8;
        self.registers
            .get(at)
            .is_some_and(|byte| byte >> (index % 8) & 1 != 0)
    }

    /// Sets a bit of a mask register.
    #[inline]
    pub fn set_mask_bit(&mut self, register: u8, index: usize, value: bool) {
        let at = usize::from(register) * self.vlenb() + index / 8;
        if let Some(byte) = self.registers.get_mut(at) {
            *byte = *byte & !(1 << (index % 8)) | u8::from(value) << (index % 8);
        }
    }

    /// Bit `index`, and up to fifteen behind it, of a mask register. `index` is even, and of more than eight bits it is a multiple of 8.
    #[inline]
    #[must_use]
    pub(super) fn mask_chunk(&self, register: u8, index: usize) -> u16 {
        let at = usize::from(register) * self.vlenb() + index / 8;
        let byte = |at: usize| self.registers.get(at).copied().unwrap_or(0);
        u16::from_le_bytes([byte(at), byte(at + 1)]) >> (index % 8)
    }

    /// 64 bits of a mask register; no register is shorter.
    #[inline]
    #[must_use]
    pub(super) fn mask_word(&self, register: u8, word: usize) -> u64 {
        self.element(register, word, Width::DOUBLE)
    }

    /// Sixteen bytes of a register group.
    #[inline(always)]
    #[must_use]
    pub(super) fn chunk(&self, register: u8, chunk: usize) -> [u8; CHUNK] {
        let at = usize::from(register) * self.vlenb() + chunk * CHUNK;
        let bytes = self.registers.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().unwrap_or_default()
    }

    /// Sets sixteen bytes of a register group.
    #[inline(always)]
    pub(super) fn set_chunk(&mut self, register: u8, chunk: usize, value: [u8; CHUNK]) {
        let at = usize::from(register) * self.vlenb() + chunk * CHUNK;
        let bytes = self.registers.get_mut(at..);
        if let Some(bytes) = bytes.and_then(<[u8]>::first_chunk_mut) {
            *bytes = value;
        }
    }

    /// Bytes of a register group from its byte `from` on, to be written; none unless all are there.
    #[must_use]
    pub fn bytes_mut(&mut self, register: u8, from: usize, length: usize) -> &mut [u8] {
        let at = usize::from(register) * self.vlenb() + from;
        self.registers.get_mut(at..at + length).unwrap_or_default()
    }

    /// Bytes of a register group from its byte `from` on; none unless all are there.
    #[must_use]
    pub fn bytes(&self, register: u8, from: usize, length: usize) -> &[u8] {
        let at = usize::from(register) * self.vlenb() + from;
        self.registers.get(at..at + length).unwrap_or_default()
    }

    /// Copies bytes of one register group from `from` on into another one from `to` on, as if all were read before.
    pub(super) fn copy_bytes(&mut self, source: (u8, usize), target: (u8, usize), length: usize) {
        let vlenb = self.vlenb();
        let [from, to] =
            [source, target].map(|(register, byte)| usize::from(register) * vlenb + byte);
        if from.max(to) + length <= self.registers.len() {
            self.registers.copy_within(from..from + length, to);
        }
    }

    /// Bytes of a register; none of a register that is not there.
    #[must_use]
    pub fn register(&self, register: u8) -> &[u8] {
        let from = usize::from(register) * self.vlenb();
        self.registers
            .get(from..from + self.vlenb())
            .unwrap_or_default()
    }

    /// Bytes of a register, to be written.
    pub fn register_mut(&mut self, register: u8) -> &mut [u8] {
        let size = self.length.bytes();
        let from = usize::from(register) * size;
        self.registers
            .get_mut(from..from + size)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> VectorUnit {
        VectorUnit::new(VectorLength::new(128).expect("a length"))
    }

    #[test]
    fn elements_run_through_groups() {
        let mut unit = unit();
        unit.set_element(2, 5, Width::DOUBLE, 0x0123_4567_89ab_cdef);
        assert_eq!(unit.element(4, 2, Width::WORD), 0x89ab_cdef);
        assert_eq!(unit.register(4)[15], 0x01);
        unit.set_element(31, 2, Width::DOUBLE, 1);
        assert_eq!(unit.element(31, 2, Width::DOUBLE), 0, "beyond the last");
    }

    #[test]
    fn avl_is_cut_to_vlmax() {
        let mut unit = unit();
        let bytes = Vtype::from_bits(3, unit.length());
        assert_eq!(unit.configure(bytes, 1000), 128, "e8, m8");
        assert_eq!(unit.configure(bytes, 100), 100);
        unit.truncate(200);
        assert_eq!(unit.vl(), 100);
        assert_eq!(unit.configure(Vtype::default(), 100), 0, "illegal");
    }

    #[test]
    fn impossible_states_are_refused() {
        let unit = unit();
        assert!(unit.is_possible(unit.length()));
        assert!(!unit.is_possible(VectorLength::NONE));
        let long = VectorUnit { vl: 1, ..unit };
        assert!(!long.is_possible(long.length()), "vl with an illegal vtype");
    }

    #[test]
    fn vstart_has_bits_for_an_index() {
        let mut unit = unit();
        unit.set_vstart(u64::MAX);
        assert_eq!(unit.vstart, 127);
    }
}
