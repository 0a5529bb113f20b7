//! Permutations: "Vector Permutation Instructions".

use super::encoding::Reserved;
use super::group::{Group, Overlap};
use super::issue::{Checked, Immediate, Issue, Second};
use super::vtype::{Width, elements};

/// A value beyond every index.
const NOWHERE: usize = usize::MAX;

fn index_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(NOWHERE)
}

impl Issue<'_> {
    /// The scalar as an index or a distance: the whole register.
    const fn distance(&self) -> u64 {
        match self.second(Immediate::Unsigned) {
            Second::Scalar(value) => value,
            Second::Vector(_) => 0,
        }
    }

    /// Checks that the destination overlaps neither vs2 nor the mask.
    fn check_apart(&self) -> Result<(), Reserved> {
        let source = self.group(self.encoding.vs2())?;
        let masked = self.encoding.is_masked();
        self.check_all(self.destination()?, &[source], masked, Overlap::Never)
    }

    fn max_elements(&self) -> usize {
        self.unit.vtype().max_elements(self.unit.length())
    }

    /// VSLIDEUP: what moves from below the first element stays.
    pub(super) fn slide_up(&mut self) -> Checked {
        self.check_apart()?;
        let (vd, vs2, width) = (self.encoding.vd(), self.encoding.vs2(), self.width()?);
        let distance = index_of(self.distance());
        let body = self.body();
        if !self.encoding.is_masked() {
            let first = body.start.max(distance);
            if first < body.end {
                let bytes = width.bytes();
                let (from, to) = ((vs2, (first - distance) * bytes), (vd, first * bytes));
                self.unit.copy_bytes(from, to, (body.end - first) * bytes);
            }
            return self.done();
        }
        for index in body.start.max(distance)..body.end {
            if self.is_active(index) {
                let value = self.unit.element(vs2, index - distance, width);
                self.unit.set_element(vd, index, width, value);
            }
        }
        self.done()
    }

    /// `vd[i] = f(i)` of the active elements.
    fn fill(&mut self, f: impl Fn(&Self, usize) -> u64) -> Checked {
        let (vd, width) = (self.encoding.vd(), self.width()?);
        for index in self.body() {
            if self.is_active(index) {
                let value = f(self, index);
                self.unit.set_element(vd, index, width, value);
            }
        }
        self.done()
    }

    /// Element of vs2, zero from VLMAX on.
    fn gathered(&self, index: usize, width: Width) -> u64 {
        if index < self.max_elements() {
            self.unit.element(self.encoding.vs2(), index, width)
        } else {
            0
        }
    }

    /// VSLIDEDOWN.
    pub(super) fn slide_down(&mut self) -> Checked {
        let source = self.group(self.encoding.vs2())?;
        let masked = self.encoding.is_masked();
        self.check_all(self.destination()?, &[source], masked, Overlap::General)?;
        let (distance, width) = (index_of(self.distance()), self.width()?);
        // Elements that come from the group are moved together, if none is left out; zeros come behind them.
        let body = self.body();
        let inside = self.max_elements().saturating_sub(distance);
        if !self.encoding.is_masked() && body.end <= inside && body.start < body.end {
            let (bytes, vd, vs2) = (width.bytes(), self.encoding.vd(), self.encoding.vs2());
            let from = (vs2, (body.start + distance) * bytes);
            let to = (vd, body.start * bytes);
            self.unit.copy_bytes(from, to, body.len() * bytes);
            return self.done();
        }
        self.fill(|issue, index| issue.gathered(index.saturating_add(distance), width))
    }

    /// VSLIDE1UP and VFSLIDE1UP: `first` comes in below.
    pub(super) fn slide_up_one(&mut self, first: u64) -> Checked {
        self.check_apart()?;
        let (vs2, width) = (self.encoding.vs2(), self.width()?);
        self.fill(|issue, index| match index.checked_sub(1) {
            Some(below) => issue.unit.element(vs2, below, width),
            None => first,
        })
    }

    /// VSLIDE1DOWN and VFSLIDE1DOWN: `last` comes in above.
    pub(super) fn slide_down_one(&mut self, last: u64) -> Checked {
        let (vs2, width) = (self.encoding.vs2(), self.width()?);
        let masked = self.encoding.is_masked();
        self.check_all(
            self.destination()?,
            &[self.group(vs2)?],
            masked,
            Overlap::General,
        )?;
        let end = self.unit.vl();
        self.fill(|issue, index| {
            if index + 1 == end {
                last
            } else {
                issue.unit.element(vs2, index + 1, width)
            }
        })
    }

    /// VRGATHER by a vector of SEW, by a scalar or by an immediate.
    pub(super) fn gather(&mut self) -> Checked {
        let width = self.width()?;
        match self.second(Immediate::Unsigned) {
            Second::Vector(vs1) => {
                let indices = self.group(vs1)?;
                self.gather_by(indices, width)
            }
            Second::Scalar(value) => {
                self.check_apart()?;
                let value = self.gathered(index_of(value), width);
                self.fill(|_, _| value)
            }
        }
    }

    /// VRGATHEREI16: indices have 16 bits whatever SEW is.
    pub(super) fn gather_halves(&mut self) -> Checked {
        let width = self.width()?;
        let multiplier = self.multiplier() + 1 - width.log2().cast_signed();
        let indices = Group::new(self.encoding.vs1(), Width::HALF, multiplier);
        self.gather_by(indices, Width::HALF)
    }

    fn gather_by(&mut self, indices: Group, index_width: Width) -> Checked {
        let sources = [self.group(self.encoding.vs2())?, indices];
        let masked = self.encoding.is_masked();
        self.check_all(self.destination()?, &sources, masked, Overlap::Never)?;
        let width = self.width()?;
        self.fill(|issue, index| {
            let from = issue.unit.element(indices.register, index, index_width);
            issue.gathered(index_of(from), width)
        })
    }

    /// VMV.S.X and VFMV.S.F: element 0, unless vl is zero.
    pub(super) fn set_first(&mut self, value: u64) -> Checked {
        self.unmasked()?;
        let width = self.width()?;
        if !self.body().is_empty() {
            self.unit.set_element(self.encoding.vd(), 0, width, value);
        }
        self.done()
    }

    /// VMV1R.V to VMV8R.V: whole registers, whatever vl is.
    pub(super) fn move_registers(&mut self) -> Checked {
        self.unmasked()?;
        let width = self.width()?;
        let multiplier = match self.encoding.vs1() {
            0 => 0,
            1 => 1,
            3 => 2,
            7 => 3,
            _ => return Err(Reserved),
        };
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let groups = [vd, vs2].map(|register| Group::new(register, width, multiplier));
        for group in groups {
            group.check()?;
        }
        let end = elements(self.unit.length(), width, multiplier);
        let first = usize::from(self.unit.vstart);
        if first < end {
            let bytes = width.bytes();
            let (from, to) = ((vs2, first * bytes), (vd, first * bytes));
            self.unit.copy_bytes(from, to, (end - first) * bytes);
        }
        self.done()
    }
}
