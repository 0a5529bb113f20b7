//! Loads and stores: "Vector Loads and Stores".

use super::encoding::{Encoding, Reserved};
use super::group::{Group, Overlap, check, check_sources};
use super::unit::VectorUnit;
use super::vtype::{Width, elements};

/// Opcode STORE-FP.
const STORE: u32 = 0x27;

/// How an element's address comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addressing {
    /// From the one before by so many bytes.
    Strided(u64),
    /// By an offset in a group with elements of this width.
    Indexed(u8, Width),
}

/// A load or store: which elements it moves, and where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// True of a store.
    pub is_store: bool,
    /// True if a fault beyond element 0 makes vl smaller instead of trapping.
    pub fault_only_first: bool,
    /// Width in memory and in registers.
    pub width: Width,
    /// Fields of a segment; 1 of a load or store without segments.
    pub fields: u8,
    /// Elements, or segments, up to here.
    pub end: usize,
    base: u64,
    addressing: Addressing,
    masked: bool,
    register: u8,
    /// Registers from a field's group to the next field's.
    step: u8,
}

/// log2 of the EMUL that goes with an EEW: EEW / SEW x LMUL.
const fn multiplier_of(unit: &VectorUnit, sew: Width, width: Width) -> i8 {
    unit.vtype().multiplier() + width.log2().cast_signed() - sew.log2().cast_signed()
}

impl Transfer {
    /// Decodes an instruction with `x[rs1]` and `x[rs2]`, for vector registers as they are.
    ///
    /// # Errors
    /// [`Reserved`]: it is illegal.
    pub fn new(
        unit: &VectorUnit,
        encoding: Encoding,
        base: u64,
        stride: u64,
    ) -> Result<Self, Reserved> {
        // mew is reserved: no element is wider than 64 bits.
        if !unit.exists() || encoding.0 >> 28 & 1 != 0 {
            return Err(Reserved);
        }
        let width = match encoding.funct3() {
            0 => Width::BYTE,
            5 => Width::HALF,
            6 => Width::WORD,
            7 => Width::DOUBLE,
            _ => return Err(Reserved),
        };
        match encoding.0 >> 26 & 3 {
            0 => Self::unit_stride(unit, encoding, base, width),
            2 => Self::segments(unit, encoding, base, width, Addressing::Strided(stride)),
            _ => Self::indexed(unit, encoding, base, width),
        }
    }

    const fn is_store_encoding(encoding: Encoding) -> bool {
        encoding.0 & 0x7f == STORE
    }

    const fn field_count(encoding: Encoding) -> u8 {
        (encoding.0 >> 29) as u8 + 1
    }

    /// By lumop or sumop, which stands in the place of rs2.
    fn unit_stride(
        unit: &VectorUnit,
        encoding: Encoding,
        base: u64,
        width: Width,
    ) -> Result<Self, Reserved> {
        let is_store = Self::is_store_encoding(encoding);
        let fields = Self::field_count(encoding);
        match encoding.vs2() {
            0 | 0x10 => {
                let fault_only_first = encoding.vs2() == 0x10;
                if fault_only_first && is_store {
                    return Err(Reserved);
                }
                let stride = u64::from(fields) * width.bytes() as u64;
                let addressing = Addressing::Strided(stride);
                let plain = Self::segments(unit, encoding, base, width, addressing)?;
                Ok(Self {
                    fault_only_first,
                    ..plain
                })
            }
            // Whole registers, whatever vtype and vl are.
            8 => {
                let is_whole = fields.is_power_of_two() && !encoding.is_masked();
                if !is_whole || is_store && width != Width::BYTE {
                    return Err(Reserved);
                }
                let multiplier = fields.trailing_zeros() as i8;
                Group::new(encoding.vd(), width, multiplier).check()?;
                let end = elements(unit.length(), width, multiplier);
                Ok(Self::bytes_in_order(encoding, base, width, end))
            }
            // A mask: as many bytes as hold vl bits.
            0xb => {
                unit.vtype().width().ok_or(Reserved)?;
                if fields != 1 || encoding.is_masked() || width != Width::BYTE {
                    return Err(Reserved);
                }
                let end = unit.vl().div_ceil(8);
                Ok(Self::bytes_in_order(encoding, base, width, end))
            }
            _ => Err(Reserved),
        }
    }

    /// Elements one after the other, all of them active.
    const fn bytes_in_order(encoding: Encoding, base: u64, width: Width, end: usize) -> Self {
        Self {
            is_store: Self::is_store_encoding(encoding),
            fault_only_first: false,
            width,
            fields: 1,
            end,
            base,
            addressing: Addressing::Strided(width.bytes() as u64),
            masked: false,
            register: encoding.vd(),
            step: 0,
        }
    }

    /// Segments whose fields have an EEW of their own.
    fn segments(
        unit: &VectorUnit,
        encoding: Encoding,
        base: u64,
        width: Width,
        addressing: Addressing,
    ) -> Result<Self, Reserved> {
        let sew = unit.vtype().width().ok_or(Reserved)?;
        let multiplier = multiplier_of(unit, sew, width);
        let transfer = Self::fields_of(unit, encoding, base, (width, multiplier), addressing)?;
        let data = Group::new(encoding.vd(), width, multiplier);
        if transfer.is_store {
            check_sources(&[data], transfer.masked)?;
        } else {
            check(data, &[], transfer.masked, Overlap::General)?;
        }
        Ok(transfer)
    }

    /// Segments whose fields have SEW and whose offsets have the encoded width.
    fn indexed(
        unit: &VectorUnit,
        encoding: Encoding,
        base: u64,
        index_width: Width,
    ) -> Result<Self, Reserved> {
        let sew = unit.vtype().width().ok_or(Reserved)?;
        let addressing = Addressing::Indexed(encoding.vs2(), index_width);
        let multiplier = unit.vtype().multiplier();
        let transfer = Self::fields_of(unit, encoding, base, (sew, multiplier), addressing)?;
        let index_multiplier = multiplier_of(unit, sew, index_width);
        let indices = Group::new(encoding.vs2(), index_width, index_multiplier);
        let data = Group::new(encoding.vd(), sew, multiplier);
        if transfer.is_store {
            check_sources(&[data, indices], transfer.masked)?;
            return Ok(transfer);
        }
        let overlap = if transfer.fields > 1 {
            Overlap::Never
        } else {
            Overlap::General
        };
        check(data, &[indices], transfer.masked, overlap)?;
        for field in 1..transfer.fields {
            let register = encoding.vd() + field * transfer.step;
            let group = Group::new(register, sew, multiplier);
            check(group, &[indices], false, Overlap::Never)?;
        }
        Ok(transfer)
    }

    fn fields_of(
        unit: &VectorUnit,
        encoding: Encoding,
        base: u64,
        (width, multiplier): (Width, i8),
        addressing: Addressing,
    ) -> Result<Self, Reserved> {
        Group::new(encoding.vd(), width, multiplier).check()?;
        let step = 1 << multiplier.max(0);
        let fields = Self::field_count(encoding);
        // EMUL x NFIELDS is at most 8, and no field lies beyond v31.
        if fields * step > 8 || encoding.vd() + fields * step > 32 {
            return Err(Reserved);
        }
        Ok(Self {
            is_store: Self::is_store_encoding(encoding),
            fault_only_first: false,
            width,
            fields,
            end: unit.vl(),
            base,
            addressing,
            masked: encoding.is_masked(),
            register: encoding.vd(),
            step,
        })
    }

    /// Tests whether the mask lets a segment take part.
    #[must_use]
    pub fn is_active(&self, unit: &VectorUnit, segment: usize) -> bool {
        !self.masked || unit.mask_bit(0, segment)
    }

    /// Address of a field of a segment.
    #[must_use]
    pub fn address(&self, unit: &VectorUnit, segment: usize, field: u8) -> u64 {
        let offset = match self.addressing {
            Addressing::Strided(stride) => stride.wrapping_mul(segment as u64),
            Addressing::Indexed(register, width) => unit.element(register, segment, width),
        };
        let inside = u64::from(field) * self.width.bytes() as u64;
        self.base.wrapping_add(offset).wrapping_add(inside)
    }

    /// Tests whether its elements, those that are left out too, follow each other in memory.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        let segment = u64::from(self.fields) * self.width.bytes() as u64;
        self.addressing == Addressing::Strided(segment)
    }

    /// Tests whether its elements follow each other in memory and in registers, and none is left out.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.fields == 1 && !self.masked && self.is_in_order()
    }

    /// The register of its first field.
    #[must_use]
    pub const fn register(&self) -> u8 {
        self.register
    }

    const fn register_of(&self, field: u8) -> u8 {
        self.register + field * self.step
    }

    /// Value to store.
    #[must_use]
    pub fn value(&self, unit: &VectorUnit, segment: usize, field: u8) -> u64 {
        unit.element(self.register_of(field), segment, self.width)
    }

    /// Takes a value that was loaded.
    pub fn put(&self, unit: &mut VectorUnit, segment: usize, field: u8, value: u64) {
        unit.set_element(self.register_of(field), segment, self.width, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::VectorLength;
    use crate::vector::Vtype;

    /// A unit with registers of 128 bits.
    fn unit(vtype: u64) -> VectorUnit {
        let mut unit = VectorUnit::new(VectorLength::new(128).expect("a length"));
        let vtype = Vtype::from_bits(vtype, unit.length());
        unit.configure(vtype, u64::MAX);
        unit
    }

    fn decoded(vtype: u64, raw: u32) -> Result<Transfer, Reserved> {
        Transfer::new(&unit(vtype), Encoding(raw), 0x1000, 24)
    }

    /// A load of vd, unmasked, by nf, mop, rs2 and width.
    const fn load(fields: u32, mop: u32, rs2: u32, width: u32, vd: u32) -> u32 {
        (fields - 1) << 29 | mop << 26 | 1 << 25 | rs2 << 20 | 5 << 15 | width << 12 | vd << 7 | 7
    }

    #[test]
    fn addresses_follow_segments_and_strides() {
        // e32, m1.
        let unit = unit(2 << 3);
        let segments = decoded(2 << 3, load(3, 0, 0, 6, 8)).expect("vlseg3e32");
        assert_eq!(segments.address(&unit, 2, 1), 0x1000 + 2 * 12 + 4);
        let strided = decoded(2 << 3, load(1, 2, 6, 6, 8)).expect("vlse32");
        assert_eq!(strided.address(&unit, 3, 0), 0x1000 + 3 * 24);
        assert_eq!(strided.end, 4);
    }

    #[test]
    fn group_sizes_follow_the_width_in_memory() {
        // e64, m8: bytes fill one register; e8, m8: doublewords would need 64.
        assert!(decoded(3 << 3 | 3, load(1, 0, 0, 0, 9)).is_ok());
        assert!(decoded(3, load(1, 0, 0, 7, 8)).is_err());
        // Segments of two groups of eight.
        assert!(decoded(3, load(2, 0, 0, 0, 8)).is_err());
        // Fields beyond v31.
        assert!(decoded(0, load(4, 0, 0, 0, 30)).is_err());
    }

    #[test]
    fn whole_registers_need_no_vtype() {
        let transfer = decoded(1 << 63, load(2, 0, 8, 5, 6)).expect("vl2re16");
        assert_eq!((transfer.end, transfer.fields), (16, 1));
        assert!(decoded(0, load(3, 0, 8, 5, 6)).is_err());
        assert!(decoded(0, load(2, 0, 8, 5, 7)).is_err());
        assert!(decoded(1 << 63, load(1, 0, 0, 0, 6)).is_err());
    }
}
