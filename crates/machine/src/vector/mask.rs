//! Instructions on masks: "Vector Mask Instructions".

use super::encoding::Reserved;
use super::group::{Group, Overlap, check, check_sources};
use super::issue::{Checked, Issue, Output};

impl Issue<'_> {
    /// VMAND and its likes, by the low three bits of funct6.
    pub(super) fn mask_logical(&mut self) -> Checked {
        self.unmasked()?;
        self.width()?;
        let operation = self.encoding.funct6() & 7;
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        for index in self.body() {
            let (a, b) = (
                self.unit.mask_bit(vs2, index),
                self.unit.mask_bit(vs1, index),
            );
            let value = match operation {
                0 => a && !b,
                1 => a && b,
                2 => a || b,
                3 => a != b,
                4 => a || !b,
                5 => !(a && b),
                6 => !(a || b),
                _ => a == b,
            };
            self.unit.set_mask_bit(vd, index, value);
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
        let mut set = (0..self.unit.vl())
            .filter(|&index| self.is_active(index) && self.unit.mask_bit(vs2, index));
        let value = match self.encoding.vs1() {
            0x10 => set.count() as u64,
            0x11 => set.next().map_or(u64::MAX, |index| index as u64),
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
        check(
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
        check(
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
        check(self.destination()?, &[], masked, Overlap::General)?;
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
        check_sources(&sources, false)?;
        check(self.destination()?, &sources, false, Overlap::Never)?;
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
