//! "Zvbb" and "Zvbc": bit manipulation and carry-less multiplication.

use super::encoding::{Reserved, category};
use super::issue::{Checked, Immediate, Issue, Second, Sources};
use super::operand::{Operands, Which};
use super::vtype::Width;

/// Low and high half of the product of two elements without carries.
fn carryless(a: u64, b: u64) -> u128 {
    (0..64)
        .filter(|bit| b >> bit & 1 != 0)
        .fold(0, |product, bit| product ^ u128::from(a) << bit)
}

/// Rotates the low bits of a value to the left.
fn rotate_left(width: Width, value: u64, amount: u64) -> u64 {
    let bits = width.bits();
    let amount = amount as u32 & (bits - 1);
    if amount == 0 {
        value
    } else {
        value << amount | value >> (bits - amount)
    }
}

/// The bits of each byte in reverse.
const fn reverse_in_bytes(value: u64) -> u64 {
    value.reverse_bits().swap_bytes()
}

impl Issue<'_> {
    /// Instructions of OPIVV, OPIVX and OPIVI by funct6; `None` of another.
    pub(super) fn bit_operation(&mut self) -> Option<Checked> {
        use Immediate::Unsigned;
        let is_immediate = self.encoding.funct3() == category::INTEGER_IMMEDIATE;
        let right = |of: Operands, amount: u64| rotate_left(of.width, of.a, amount.wrapping_neg());
        Some(match self.encoding.funct6() {
            0x01 if !is_immediate => self.map(Unsigned, |a, b| a & !b),
            0x14 if !is_immediate => self.each(Unsigned, |of| right(of, of.b)),
            // The immediate's bit 5 stands in funct6's lowest bit.
            0x14 | 0x15 if is_immediate => {
                let amount = u64::from(self.encoding.funct6() & 1) << 5;
                self.each(Unsigned, |of| right(of, amount | of.b))
            }
            0x15 => self.each(Unsigned, |of| rotate_left(of.width, of.a, of.b)),
            0x35 => self.widening_shift(),
            _ => return None,
        })
    }

    /// VWSLL.
    fn widening_shift(&mut self) -> Checked {
        let wide = self.wide()?;
        self.widen((false, false), false, |_, a, b| {
            a << (b as u32 & (wide.bits() - 1))
        })
    }

    /// VBREV8, VREV8, VBREV, VCLZ, VCTZ and VCPOP, by vs1.
    pub(super) fn bit_unary(&mut self) -> Checked {
        let above = |width: Width| 64 - width.bits();
        match self.encoding.vs1() {
            8 => self.map_one(|of| reverse_in_bytes(of.a)),
            9 => self.map_one(|of| of.a.swap_bytes() >> above(of.width)),
            10 => self.map_one(|of| of.a.reverse_bits() >> above(of.width)),
            12 => self.map_one(|of| u64::from(of.a.leading_zeros() - above(of.width))),
            13 => self.map_one(|of| u64::from(of.a.trailing_zeros().min(of.width.bits()))),
            14 => self.map_one(|of| u64::from(of.a.count_ones())),
            _ => Err(Reserved),
        }
    }

    /// `vd[i] = f(vs2[i])`, both of SEW.
    fn map_one(&mut self, f: impl Fn(Operands) -> u64) -> Checked {
        let sources = Sources::of(&[self.group(self.encoding.vs2())?]);
        self.check(self.destination()?, &sources)?;
        self.compute(Second::Scalar(0), Which::Active, f)?;
        self.done()
    }

    /// VCLMUL and VCLMULH, of doublewords alone.
    pub(super) fn carryless_multiply(&mut self, upper: bool) -> Checked {
        if self.width()? != Width::DOUBLE {
            return Err(Reserved);
        }
        self.map(Immediate::Signed, |a, b| {
            let product = carryless(a, b);
            if upper {
                (product >> 64) as u64
            } else {
                product as u64
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_stay_in_their_width() {
        assert_eq!(rotate_left(Width::BYTE, 0x81, 1) & 0xff, 0x03);
        assert_eq!(rotate_left(Width::DOUBLE, 1, 63), 1 << 63);
        assert_eq!(rotate_left(Width::HALF, 0x1234, 16), 0x1234);
    }

    #[test]
    fn carryless_products_have_both_halves() {
        assert_eq!(carryless(3, 3), 5);
        assert_eq!(carryless(1 << 63, 1 << 63), 1 << 126);
    }
}
