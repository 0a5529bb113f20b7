//! Fixed point: "Vector Fixed-Point Arithmetic Instructions".

use super::issue::{Checked, Immediate, Issue};
use super::vtype::Width;

/// `value` shifted right and rounded by vxrm: round-to-nearest-up, round-to-nearest-even, round-down, round-to-odd.
fn round_off(value: i128, amount: u32, mode: u8) -> i128 {
    if amount == 0 {
        return value;
    }
    let kept = value >> amount;
    let cut = value & ((1 << amount) - 1);
    let half = 1 << (amount - 1);
    let up = match mode {
        0 => cut >= half,
        1 => cut > half || cut == half && kept & 1 != 0,
        2 => false,
        _ => cut != 0 && kept & 1 == 0,
    };
    kept + i128::from(up)
}

/// Least and greatest value of an element.
const fn bounds(width: Width, signed: bool) -> (i128, i128) {
    if signed {
        let end = 1 << (width.bits() - 1);
        (-end, end - 1)
    } else {
        (0, (1 << width.bits()) - 1)
    }
}

/// Element as a number.
fn number(width: Width, value: u64, signed: bool) -> i128 {
    if signed {
        i128::from(width.sign_extend(value))
    } else {
        i128::from(width.truncate(value))
    }
}

/// Cuts a number to what an element holds, and notes that in `saturated`.
fn saturate(width: Width, value: i128, signed: bool, saturated: &mut bool) -> u64 {
    let (least, greatest) = bounds(width, signed);
    let kept = value.clamp(least, greatest);
    *saturated |= kept != value;
    kept as u64
}

impl Issue<'_> {
    fn saturating(&mut self, signed: bool, f: impl Fn(i128, i128) -> i128) -> Checked {
        let mut saturated = false;
        let outcome = self.each(Immediate::Signed, |of| {
            let [a, b] = [of.a, of.b].map(|value| number(of.width, value, signed));
            saturate(of.width, f(a, b), signed, &mut saturated)
        });
        self.unit.vxsat |= saturated;
        outcome
    }

    /// VAADD, VASUB and their likes: half of the sum or difference, rounded.
    fn averaging(&mut self, signed: bool, subtracts: bool) -> Checked {
        let mode = self.unit.vxrm;
        self.each(Immediate::Signed, |of| {
            let [a, b] = [of.a, of.b].map(|value| number(of.width, value, signed));
            round_off(if subtracts { a - b } else { a + b }, 1, mode) as u64
        })
    }

    /// VSMUL: the product as a fraction.
    fn fractional_multiply(&mut self) -> Checked {
        let mode = self.unit.vxrm;
        let mut saturated = false;
        let outcome = self.each(Immediate::Signed, |of| {
            let product = number(of.width, of.a, true) * number(of.width, of.b, true);
            let rounded = round_off(product, of.width.bits() - 1, mode);
            saturate(of.width, rounded, true, &mut saturated)
        });
        self.unit.vxsat |= saturated;
        outcome
    }

    /// VSSRL and VSSRA: shifts that round.
    fn scaling_shift(&mut self, signed: bool) -> Checked {
        let mode = self.unit.vxrm;
        self.each(Immediate::Unsigned, |of| {
            let amount = of.b as u32 & (of.width.bits() - 1);
            round_off(number(of.width, of.a, signed), amount, mode) as u64
        })
    }

    /// VNCLIP and VNCLIPU: a narrowing shift that rounds and saturates.
    fn clip(&mut self, signed: bool) -> Checked {
        let (width, wide, mode) = (self.width()?, self.wide()?, self.unit.vxrm);
        self.narrow(|issue, a, b| {
            let amount = b as u32 & (wide.bits() - 1);
            let shifted = round_off(number(wide, a, signed), amount, mode);
            saturate(width, shifted, signed, &mut issue.unit.vxsat)
        })
    }

    /// Instructions of OPIVV, OPIVX and OPIVI by funct6; `None` of another.
    pub(super) fn fixed_point(&mut self) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x20 => self.saturating(false, |a, b| a + b),
            0x21 => self.saturating(true, |a, b| a + b),
            0x22 => self.saturating(false, |a, b| a - b),
            0x23 => self.saturating(true, |a, b| a - b),
            0x27 => self.fractional_multiply(),
            0x2a => self.scaling_shift(false),
            0x2b => self.scaling_shift(true),
            0x2e => self.clip(false),
            0x2f => self.clip(true),
            _ => return None,
        })
    }

    /// Averages of OPMVV and OPMVX by funct6; `None` of another instruction.
    pub(super) fn average(&mut self) -> Option<Checked> {
        Some(match self.encoding.funct6() {
            0x08 => self.averaging(false, false),
            0x09 => self.averaging(true, false),
            0x0a => self.averaging(false, true),
            0x0b => self.averaging(true, true),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_follows_the_table() {
        // 5/4, 6/4 and 10/4 in each mode.
        let all = |value| [0, 1, 2, 3].map(|mode| round_off(value, 2, mode));
        assert_eq!(all(5), [1, 1, 1, 1]);
        assert_eq!(all(6), [2, 2, 1, 1]);
        assert_eq!(all(10), [3, 2, 2, 3]);
        assert_eq!(all(-6), [-1, -2, -2, -1]);
    }
}
