//! Elements sixteen bytes at a time, in arrays of their own type, which the compiler turns into the host's vectors.

use super::encoding::Reserved;
use super::issue::{Issue, Second};
use super::mask::Bits;
use super::operand::{Operands, Which};
use super::unit::{CHUNK, VectorUnit};
use super::vtype::Width;

/// An element as an integer of the host.
pub(super) trait Lane: Copy {
    /// Elements of [`CHUNK`] bytes.
    type Array: Copy + AsRef<[Self]> + AsMut<[Self]>;
    /// SEW.
    const WIDTH: Width;
    /// Elements of a chunk.
    const COUNT: usize = CHUNK / size_of::<Self>();
    /// Takes bytes apart.
    fn split(bytes: [u8; CHUNK]) -> Self::Array;
    /// Puts them together.
    fn join(array: Self::Array) -> [u8; CHUNK];
    /// The same element for all.
    fn splat(value: u64) -> Self::Array;
    /// The value, zero-extended.
    fn to_u64(self) -> u64;
    /// The low bits of a value.
    fn from_u64(value: u64) -> Self;
}

macro_rules! lane {
    ($type:ty, $width:expr, $count:literal) => {
        impl Lane for $type {
            type Array = [$type; $count];
            const WIDTH: Width = $width;

            #[inline(always)]
            fn split(bytes: [u8; CHUNK]) -> Self::Array {
                let (elements, _) = bytes.as_chunks();
                std::array::from_fn(|index| Self::from_le_bytes(elements[index]))
            }

            #[inline(always)]
            fn join(array: Self::Array) -> [u8; CHUNK] {
                let mut bytes = [0; CHUNK];
                let (elements, _) = bytes.as_chunks_mut();
                for (to, from) in elements.iter_mut().zip(array) {
                    *to = from.to_le_bytes();
                }
                bytes
            }

            #[inline(always)]
            fn splat(value: u64) -> Self::Array {
                [value as Self; $count]
            }

            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as Self
            }
        }
    };
}

lane!(u8, Width::BYTE, 16);
lane!(u16, Width::HALF, 8);
lane!(u32, Width::WORD, 4);
lane!(u64, Width::DOUBLE, 2);

/// The lowest bits of sixteen bytes, each zero or one.
#[inline(always)]
const fn pack(bytes: [u8; CHUNK]) -> u16 {
    // Byte n's bit comes to bit 56 + n of the product, and no two meet.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let all = u128::from_le_bytes(bytes);
    let low = (all as u64).wrapping_mul(GATHER) >> 56;
    let high = ((all >> 64) as u64).wrapping_mul(GATHER) >> 56;
    (low | high << 8) as u16
}

/// Calls a generic function with the type of elements of a width.
macro_rules! with_lane {
    ($width:expr, $object:ident . $function:ident ( $($argument:expr),* )) => {
        match $width {
            Width::BYTE => $object.$function::<u8, _>($($argument),*),
            Width::HALF => $object.$function::<u16, _>($($argument),*),
            Width::WORD => $object.$function::<u32, _>($($argument),*),
            _ => $object.$function::<u64, _>($($argument),*),
        }
    };
}

impl VectorUnit {
    /// A chunk of a register group, as elements.
    #[inline(always)]
    fn lanes<L: Lane>(&self, register: u8, chunk: usize) -> L::Array {
        L::split(self.chunk(register, chunk))
    }

    /// A chunk of the second operand.
    #[inline(always)]
    fn second_lanes<L: Lane>(&self, second: Second, chunk: usize) -> L::Array {
        match second {
            Second::Vector(register) => self.lanes::<L>(register, chunk),
            Second::Scalar(value) => L::splat(value),
        }
    }
}

impl Issue<'_> {
    /// `vd[i] = f(...)` of the body's elements, all of SEW. Groups are checked: vd is either source or apart from it.
    #[inline]
    pub(super) fn compute(
        &mut self,
        second: Second,
        which: Which,
        f: impl FnMut(Operands) -> u64,
    ) -> Result<(), Reserved> {
        with_lane!(self.width()?, self.compute_lanes(second, which, f));
        Ok(())
    }

    fn compute_lanes<L: Lane, F: FnMut(Operands) -> u64>(
        &mut self,
        second: Second,
        which: Which,
        mut f: F,
    ) {
        let (vd, vs2) = (self.encoding.vd(), self.encoding.vs2());
        let masked = self.encoding.is_masked();
        let body = self.body();
        let mut rest = body.start;
        if rest == 0 {
            let chunks = body.end / L::COUNT;
            rest = chunks * L::COUNT;
            for chunk in 0..chunks {
                let old = self.unit.lanes::<L>(vd, chunk);
                let a = self.unit.lanes::<L>(vs2, chunk);
                let b = self.unit.second_lanes::<L>(second, chunk);
                let mut result = old;
                let operands = lanes_of::<L>(&old, &a, &b);
                if masked {
                    let bits = self.unit.mask_chunk(0, chunk * L::COUNT);
                    for (index, (to, operands)) in
                        result.as_mut().iter_mut().zip(operands).enumerate()
                    {
                        let bit = bits >> index & 1 != 0;
                        if bit || which == Which::All {
                            *to = L::from_u64(f(Operands { bit, ..operands }));
                        }
                    }
                } else {
                    for (to, operands) in result.as_mut().iter_mut().zip(operands) {
                        *to = L::from_u64(f(operands));
                    }
                }
                self.unit.set_chunk(vd, chunk, L::join(result));
            }
        }
        for index in rest..body.end {
            let bit = masked && self.unit.mask_bit(0, index);
            if bit || !masked || which == Which::All {
                let operands = self.operands(second, index, L::WIDTH);
                let value = f(Operands { bit, ..operands });
                self.unit.set_element(vd, index, L::WIDTH, value);
            }
        }
    }

    #[inline]
    fn operands(&self, second: Second, index: usize, width: Width) -> Operands {
        Operands {
            width,
            old: self.unit.element(self.encoding.vd(), index, width),
            a: self.unit.element(self.encoding.vs2(), index, width),
            b: self.second_element(second, index, width),
            bit: false,
        }
    }

    /// `vd.mask[i] = f(...)` of the body's elements. `old` is zero.
    #[inline]
    pub(super) fn test(
        &mut self,
        second: Second,
        which: Which,
        f: impl FnMut(Operands) -> bool,
    ) -> Result<(), Reserved> {
        with_lane!(self.width()?, self.test_lanes(second, which, f));
        Ok(())
    }

    fn test_lanes<L: Lane, F: FnMut(Operands) -> bool>(
        &mut self,
        second: Second,
        which: Which,
        mut f: F,
    ) {
        let vs2 = self.encoding.vs2();
        let masked = self.encoding.is_masked();
        let body = self.body();
        let mut rest = body.start;
        // vd may be a source as well: it is written when all is read.
        let mut found = Bits::default();
        let none = L::splat(0);
        if rest == 0 {
            let chunks = body.end / L::COUNT;
            rest = chunks * L::COUNT;
            for chunk in 0..chunks {
                let a = self.unit.lanes::<L>(vs2, chunk);
                let b = self.unit.second_lanes::<L>(second, chunk);
                let mut bytes = [0; CHUNK];
                let operands = lanes_of::<L>(&none, &a, &b);
                if masked {
                    let bits = self.unit.mask_chunk(0, chunk * L::COUNT);
                    for (index, (to, operands)) in bytes.iter_mut().zip(operands).enumerate() {
                        let bit = bits >> index & 1 != 0;
                        if bit || which == Which::All {
                            *to = u8::from(f(Operands { bit, ..operands }));
                        }
                    }
                } else {
                    for (to, operands) in bytes.iter_mut().zip(operands) {
                        *to = u8::from(f(operands));
                    }
                }
                found.add(chunk * L::COUNT, pack(bytes));
            }
        }
        for index in rest..body.end {
            let bit = masked && self.unit.mask_bit(0, index);
            if bit || !masked || which == Which::All {
                let operands = self.operands(second, index, L::WIDTH);
                found.add(index, u16::from(f(Operands { bit, ..operands })));
            }
        }
        let all = !masked || which == Which::All;
        self.merge_mask(&found, body, all);
    }

    /// `f(... f(first, vs2[0]) ..., vs2[vl - 1])` of the active elements, which have SEW and are zero-extended.
    #[inline]
    pub(super) fn accumulated<T>(
        &self,
        first: T,
        f: impl FnMut(T, u64) -> T,
    ) -> Result<T, Reserved> {
        Ok(with_lane!(self.width()?, self.accumulate_lanes(first, f)))
    }

    fn accumulate_lanes<L: Lane, T>(&self, first: T, mut f: impl FnMut(T, u64) -> T) -> T {
        let (vs2, end) = (self.encoding.vs2(), self.unit.vl());
        let mut value = first;
        let mut rest = 0;
        if !self.encoding.is_masked() {
            for chunk in 0..end / L::COUNT {
                for element in self.unit.lanes::<L>(vs2, chunk).as_ref() {
                    value = f(value, element.to_u64());
                }
            }
            rest = end / L::COUNT * L::COUNT;
        }
        for index in rest..end {
            if self.is_active(index) {
                value = f(value, self.unit.element(vs2, index, L::WIDTH));
            }
        }
        value
    }
}

/// Operands of a chunk's elements.
#[inline(always)]
fn lanes_of<'a, L: Lane + 'a>(
    old: &'a L::Array,
    a: &'a L::Array,
    b: &'a L::Array,
) -> impl Iterator<Item = Operands> + use<'a, L> {
    let pairs = a.as_ref().iter().zip(b.as_ref());
    old.as_ref()
        .iter()
        .zip(pairs)
        .map(|(old, (a, b))| Operands {
            width: L::WIDTH,
            old: old.to_u64(),
            a: a.to_u64(),
            b: b.to_u64(),
            bit: false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_gives_its_own_bit() {
        for pattern in [0_u16, 0xffff, 0x8001, 0x1234, 0xa5c3] {
            let bytes = std::array::from_fn(|index| (pattern >> index & 1) as u8);
            assert_eq!(pack(bytes), pattern);
        }
    }

    #[test]
    fn elements_come_back_from_their_bytes() {
        let bytes = std::array::from_fn(|index| index as u8);
        assert_eq!(u32::split(bytes)[1], 0x0706_0504);
        assert_eq!(u32::join(u32::split(bytes)), bytes);
        assert_eq!(u8::join(u8::split(bytes)), bytes);
        assert_eq!(u64::join(u64::split(bytes)), bytes);
    }
}
