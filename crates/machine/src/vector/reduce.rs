//! Reductions of integers: "Vector Reduction Operations".

use super::encoding::Reserved;
use super::group::Group;
use super::issue::{Checked, Issue};
use super::vtype::Width;

impl Issue<'_> {
    /// `vd[0] = f(... f(vs1[0], vs2[i]) ...)` of the active elements. vd and vs1 have elements of `accumulator`, vs2 of SEW.
    pub(super) fn fold(&mut self, accumulator: Width, f: impl FnMut(u64, u64) -> u64) -> Checked {
        let (vd, vs1, vs2) = (self.encoding.vd(), self.encoding.vs1(), self.encoding.vs2());
        self.check_start()?;
        let sources = [self.group(vs2)?, Group::scalar(vs1, accumulator)];
        self.check_read(&sources, self.encoding.is_masked())?;
        let first = self.unit.element(vs1, 0, accumulator);
        let value = self.accumulated(first, f)?;
        if self.unit.vl() != 0 {
            self.unit.set_element(vd, 0, accumulator, value);
        }
        self.done()
    }

    /// VREDSUM to VREDMAX, by funct6; `None` of another instruction of OPMVV.
    pub(super) fn reduce(&mut self) -> Option<Checked> {
        let Ok(width) = self.width() else {
            return Some(Err(Reserved));
        };
        let signed = |value| width.sign_extend(value);
        Some(match self.encoding.funct6() {
            0 => self.fold(width, |a, b| a.wrapping_add(b)),
            1 => self.fold(width, |a, b| a & b),
            2 => self.fold(width, |a, b| a | b),
            3 => self.fold(width, |a, b| a ^ b),
            4 => self.fold(width, |a, b| a.min(b)),
            5 => self.fold(width, |a, b| if signed(a) < signed(b) { a } else { b }),
            6 => self.fold(width, |a, b| a.max(b)),
            7 => self.fold(width, |a, b| if signed(a) > signed(b) { a } else { b }),
            _ => return None,
        })
    }

    /// VWREDSUM and VWREDSUMU: sums of twice SEW.
    pub(super) fn reduce_wide(&mut self, signed: bool) -> Checked {
        let (width, wide) = (self.width()?, self.wide()?);
        self.fold(wide, |sum, element| {
            let element = if signed {
                width.sign_extend(element).cast_unsigned()
            } else {
                element
            };
            sum.wrapping_add(element)
        })
    }
}
