//! "Zvbb" and "Zvbc": bit manipulation and carry-less multiplication.

use super::encoding::{Reserved, category};
use super::issue::{Checked, Immediate, Issue, Sources};
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
        let width = self.unit.vtype().width().unwrap_or(Width::BYTE);
        let is_immediate = self.encoding.funct3() == category::INTEGER_IMMEDIATE;
        let right = move |a, b: u64| rotate_left(width, a, b.wrapping_neg());
        Some(match self.encoding.funct6() {
            0x01 if !is_immediate => self.map(Unsigned, |a, b| a & !b),
            0x14 if !is_immediate => self.map(Unsigned, right),
            // The immediate's bit 5 stands in funct6's lowest bit.
            0x14 | 0x15 if is_immediate => {
                let amount = u64::from(self.encoding.funct6() & 1) << 5;
                self.map(Unsigned, |a, b| right(a, amount | b))
            }
            0x15 => self.map(Unsigned, |a, b| rotate_left(width, a, b)),
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
        let width = self.width()?;
        let above = 64 - width.bits();
        match self.encoding.vs1() {
            8 => self.map_one(reverse_in_bytes),
            9 => self.map_one(|a| a.swap_bytes() >> above),
            10 => self.map_one(|a| a.reverse_bits() >> above),
            12 => self.map_one(|a| u64::from(a.leading_zeros() - above)),
            13 => self.map_one(|a| u64::from(a.trailing_zeros().min(width.bits()))),
            14 => self.map_one(|a| u64::from(a.count_ones())),
            _ => Err(Reserved),
        }
    }

    /// `vd[i] = f(vs2[i])`, both of SEW.
    fn map_one(&mut self, f: impl Fn(u64) -> u64) -> Checked {
        let (vd, vs2, width) = (self.encoding.vd(), self.encoding.vs2(), self.width()?);
        let sources = Sources::of(&[self.group(vs2)?]);
        self.check(self.destination()?, &sources)?;
        for index in self.body() {
            if self.is_active(index) {
                let value = f(self.unit.element(vs2, index, width));
                self.unit.set_element(vd, index, width, value);
            }
        }
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
