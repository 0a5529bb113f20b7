//! Instructions on masks: "Vector Mask Instructions".

use std::ops::Range;

use super::encoding::Reserved;
use super::group::{Group, Overlap};
use super::issue::{Checked, Issue, Output};
use super::vtype::Width;

/// Words of the longest mask: a bit for each byte of eight registers.
const WORDS: usize = 1024 / 64;

/// Bits of a mask that are to be written.
#[derive(Debug, Default)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    /// Sets bits from `index` on, all of them in the word of the first.
    #[inline(always)]
    pub fn add(&mut self, index: usize, bits: u16) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= u64::from(bits) << (index % 64);
        }
    }
}

/// The words that hold some bits, each with a mask of those.
fn words_of(bits: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = bits.start / 64..bits.end.div_ceil(64);
    words.map(move |word| {
        let first = bits.start.saturating_sub(word * 64);
        let behind = (word * 64 + 64).saturating_sub(bits.end);
        (word, u64::MAX << first & u64::MAX >> behind)
    })
}

impl Issue<'_> {
    /// Sets those bits of a word of a mask register that are `within`.
    fn set_mask_word(&mut self, vd: u8, word: usize, value: u64, within: u64) {
        let old = self.unit.mask_word(vd, word);
        let value = old & !within | value & within;
        self.unit.set_element(vd, word, Width::DOUBLE, value);
    }

    /// A word of v0, or all bits if the instruction is not masked.
    fn active_word(&self, word: usize) -> u64 {
        if self.encoding.is_masked() {
            self.unit.mask_word(0, word)
        } else {
            u64::MAX
        }
    }

    /// Writes the bits of vd that belong to elements of the body: `all`, or the active ones.
    pub(super) fn merge_mask(&mut self, bits: &Bits, body: Range<usize>, all: bool) {
        let vd = self.encoding.vd();
        for (word, within) in words_of(body) {
            let active = if all {
                u64::MAX
            } else {
                self.active_word(word)
            };
            let value = bits.0.get(word).copied().unwrap_or(0);
            self.set_mask_word(vd, word, value, within & active);
        }
    }

    /// VMAND and its likes, by the low three bits of funct6.
    pub(super) fn mask_logical(&mut self) -> Checked {
        self.unmasked()?;
        self.width()?;
        let operation = self.encoding.funct6() & 7;
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        for (word, within) in words_of(self.body()) {
            let a = self.unit.mask_word(vs2, word);
            let b = self.unit.mask_word(vs1, word);
            let value = match operation {
                0 => a & !b,
                1 => a & b,
                2 => a | b,
                3 => a ^ b,
                4 => a | !b,
                5 => !(a & b),
                6 => !(a | b),
                _ => !(a ^ b),
            };
            self.set_mask_word(vd, word, value, within);
        }
        self.done()
    }

    /// VMV.X.S, VCPOP.M and VFIRST.M, by vs1.
    pub(super) fn mask_to_integer(&mut self) -> Checked {
        let (width, vs2) = (self.width()?, self.encoding.vs2());
        if self.encoding.vs1() == 0 {
            self.unmasked()?;
            let value = width.sign_extend(self.unit.element(vs2, 0, width));
            self.unit.vstart = 0;
            return Ok(Output::Integer(value.cast_unsigned()));
        }
        self.check_start()?;
        let mut set = words_of(0..self.unit.vl())
            .map(|(word, within)| (word, within & self.active_word(word)))
            .map(|(word, within)| (word, within & self.unit.mask_word(vs2, word)));
        let value = match self.encoding.vs1() {
            0x10 => set.map(|(_, bits)| u64::from(bits.count_ones())).sum(),
            0x11 => set
                .find(|&(_, bits)| bits != 0)
                .map_or(u64::MAX, |(word, bits)| {
                    word as u64 * 64 + u64::from(bits.trailing_zeros())
                }),
            _ => return Err(Reserved),
        };
        Ok(Output::Integer(value))
    }

    /// VMSBF, VMSIF, VMSOF, VIOTA and VID, by vs1.
    pub(super) fn mask_unary(&mut self) -> Checked {
        match self.encoding.vs1() {
            1 => self.first_set(true, false),
            2 => self.first_set(false, true),
            3 => self.first_set(true, true),
            0x10 => self.iota(),
            0x11 => self.index(),
            _ => Err(Reserved),
        }
    }

    /// Sets the bits before the first that is set, that bit, or both.
    fn first_set(&mut self, before: bool, itself: bool) -> Checked {
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        self.width()?;
        self.check_start()?;
        let groups = (Group::mask(vd), [Group::mask(vs2)]);
        self.check_all(
            groups.0,
            &groups.1,
            self.encoding.is_masked(),
            Overlap::Never,
        )?;
        let mut found = false;
        for index in 0..self.unit.vl() {
            if !self.is_active(index) {
                continue;
            }
            let is_first = !found && self.unit.mask_bit(vs2, index);
            found |= is_first;
            let value = if is_first { itself } else { before && !found };
            self.unit.set_mask_bit(vd, index, value);
        }
        self.done()
    }

    /// VIOTA.M: how many bits before an element are set.
    fn iota(&mut self) -> Checked {
        let (vd, vs2, width) = (self.encoding.vd(), self.encoding.vs2(), self.width()?);
        self.check_start()?;
        let masked = self.encoding.is_masked();
        self.check_all(
            self.destination()?,
            &[Group::mask(vs2)],
            masked,
            Overlap::Never,
        )?;
        let mut count = 0;
        for index in 0..self.unit.vl() {
            if self.is_active(index) {
                self.unit.set_element(vd, index, width, count);
                count += u64::from(self.unit.mask_bit(vs2, index));
            }
        }
        self.done()
    }

    /// VID.V: an element's own index.
    fn index(&mut self) -> Checked {
        let (vd, width) = (self.encoding.vd(), self.width()?);
        if self.encoding.vs2() != 0 {
            return Err(Reserved);
        }
        let masked = self.encoding.is_masked();
        self.check_all(self.destination()?, &[], masked, Overlap::General)?;
        for index in self.body() {
            if self.is_active(index) {
                self.unit.set_element(vd, index, width, index as u64);
            }
        }
        self.done()
    }

    /// VCOMPRESS.VM: packs the elements that vs1 names.
    pub(super) fn compress(&mut self) -> Checked {
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        self.unmasked()?;
        self.check_start()?;
        let width = self.width()?;
        let sources = [self.group(vs2)?, Group::mask(vs1)];
        self.check_read(&sources, false)?;
        self.check_all(self.destination()?, &sources, false, Overlap::Never)?;
        let mut to = 0;
        for index in 0..self.unit.vl() {
            if self.unit.mask_bit(vs1, index) {
                let value = self.unit.element(vs2, index, width);
                self.unit.set_element(vd, to, width, value);
                to += 1;
            }
        }
        self.done()
    }
}
