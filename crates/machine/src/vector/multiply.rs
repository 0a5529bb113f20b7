//! Multiplication and division of a single width: "Vector Single-Width Integer Multiply Instructions", "Vector Integer Divide
//! Instructions", "Vector Single-Width Integer Multiply-Add Instructions".

use super::issue::{Checked, Immediate, Issue};
use super::vtype::Width;

/// Upper half of a product, each operand signed or not.
fn upper(width: Width, a: u64, b: u64, (signed_a, signed_b): (bool, bool)) -> u64 {
    let extend = |value: u64, signed| {
        if signed {
            i128::from(width.sign_extend(value))
        } else {
            i128::from(value)
        }
    };
    let product = extend(a, signed_a).wrapping_mul(extend(b, signed_b));
    (product >> width.bits()) as u64
}

/// Quotient and remainder of signed numbers as the table of "M" has them: no trap.
fn divide_signed(width: Width, a: u64, b: u64) -> (u64, u64) {
    let (left, right) = (width.sign_extend(a), width.sign_extend(b));
    if right == 0 {
        return (u64::MAX, a);
    }
    // The quotient that overflows wraps to the dividend.
    (
        left.wrapping_div(right).cast_unsigned(),
        left.wrapping_rem(right).cast_unsigned(),
    )
}

impl Issue<'_> {
    /// Instructions of OPMVV and OPMVX by funct6; `None` of another.
    pub(super) fn multiply(&mut self) -> Option<Checked> {
        use Immediate::Signed;
        Some(match self.encoding.funct6() {
            0x20 => self.map(Signed, |a, b| a.checked_div(b).unwrap_or(u64::MAX)),
            0x21 => self.each(Signed, |of| divide_signed(of.width, of.a, of.b).0),
            0x22 => self.map(Signed, |a, b| a.checked_rem(b).unwrap_or(a)),
            0x23 => self.each(Signed, |of| divide_signed(of.width, of.a, of.b).1),
            0x24 => self.each(Signed, |of| upper(of.width, of.a, of.b, (false, false))),
            0x25 => self.map(Signed, u64::wrapping_mul),
            0x26 => self.each(Signed, |of| upper(of.width, of.a, of.b, (true, false))),
            0x27 => self.each(Signed, |of| upper(of.width, of.a, of.b, (true, true))),
            // vd is a factor of VMADD and VNMSUB, and the term of VMACC and VNMSAC.
            0x29 => self.accumulate(|old, a, b| b.wrapping_mul(old).wrapping_add(a)),
            0x2b => self.accumulate(|old, a, b| a.wrapping_sub(b.wrapping_mul(old))),
            0x2d => self.accumulate(|old, a, b| old.wrapping_add(a.wrapping_mul(b))),
            0x2f => self.accumulate(|old, a, b| old.wrapping_sub(a.wrapping_mul(b))),
            _ => return None,
        })
    }

    /// `vd[i] = f(vd[i], vs2[i], second[i])`.
    fn accumulate(&mut self, f: impl Fn(u64, u64, u64) -> u64) -> Checked {
        self.each(Immediate::Signed, |of| f(of.old, of.a, of.b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_never_trap() {
        assert_eq!(divide_signed(Width::BYTE, 0x80, 0xff), (0x80, 0));
        assert_eq!(divide_signed(Width::HALF, 7, 0), (u64::MAX, 7));
        let minimum = 1 << 63;
        assert_eq!(
            divide_signed(Width::DOUBLE, minimum, u64::MAX),
            (minimum, 0)
        );
    }

    #[test]
    fn upper_halves_know_signs() {
        let all = |signs| upper(Width::BYTE, 0xff, 0xff, signs) & 0xff;
        assert_eq!(all((false, false)), 0xfe);
        assert_eq!(all((true, true)), 0);
        assert_eq!(all((true, false)), 0xff);
        assert_eq!(
            upper(Width::DOUBLE, u64::MAX, u64::MAX, (false, false)),
            u64::MAX - 1
        );
    }
}
