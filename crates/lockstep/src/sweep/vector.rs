//! Which vector encodings are instructions, with registers that suit each other.
//!
//! From "Vector Instruction Listing" and "Vector Loads and Stores" of "V", and the chapters of "Zvbb", "Zvbc", "Zvkned",
//! "Zvknhb", "Zvksed", "Zvksh" and "Zvkg". LMUL is 1. The destination is v8; vs2 is v16 or v0, vs1 v24 where it is a vector: no
//! operands overlap, and groups of two to eight registers are aligned. What is left to decide are the opcode's own fields and
//! SEW.

use riscv::instruction::{LOAD_FP as LOAD, OP_V, OP_VE, STORE_FP as STORE};

/// Destination.
const VD: u32 = 8;
/// vs2, or v0.
const VS2: u32 = 16;
/// vs1 where it is a vector.
const VS1: u32 = 24;
/// A base register whose value is the address of data.
const BASE: u32 = 5;

/// Kinds of operands: OPIVV, OPFVV, OPMVV, OPIVI, OPIVX, OPFVF and OPMVX.
const CATEGORIES: std::ops::Range<u32> = 0..7;
/// OPCFG.
const CONFIGURE: u32 = 7;

/// Vector registers of the sweep, in bits: four doublewords make an element group of SHA-512.
pub const LENGTH: u16 = 256;

/// Fields of a vector instruction.
#[derive(Debug, Clone, Copy)]
struct Fields {
    funct6: u32,
    category: u32,
    /// vm set.
    unmasked: bool,
    vs1: u32,
    vs2: u32,
    /// log2 of SEW in bytes.
    width: u32,
}

impl Fields {
    const fn of(word: u32, width: u32) -> Self {
        Self {
            funct6: word >> 26,
            category: word >> 12 & 7,
            unmasked: word >> 25 & 1 != 0,
            vs1: word >> 15 & 31,
            vs2: word >> 20 & 31,
            width,
        }
    }

    /// Tests whether elements of twice SEW exist.
    const fn widens(self) -> bool {
        self.width < 3
    }

    /// A move or merge: without a mask it reads no vs2.
    const fn is_merge(self) -> bool {
        !self.unmasked || self.vs2 == 0
    }

    /// OPIVV, OPIVX and OPIVI.
    const fn is_integer(self) -> bool {
        let (vector, immediate) = (self.category == 0, self.category == 3);
        match self.funct6 {
            // VADD, VAND, VOR, VXOR, VRGATHER, VMADC, comparisons, saturating sums, shifts.
            0x00 | 0x09..=0x0c | 0x11 | 0x18 | 0x19 | 0x1c | 0x1d | 0x20 | 0x21 => true,
            0x25 | 0x28..=0x2b => true,
            // VANDN, VSUB, minima and maxima, VMSBC, VMSLT, VSSUB.
            0x01 | 0x02 | 0x04..=0x07 | 0x13 | 0x1a | 0x1b | 0x22 | 0x23 => !immediate,
            // VRSUB, VSLIDEDOWN, VMSGT.
            0x03 | 0x0f | 0x1e | 0x1f => !vector,
            // VRGATHEREI16 and VSLIDEUP.
            0x0e => true,
            // VADC and VSBC have a carry.
            0x10 => !self.unmasked,
            0x12 => !self.unmasked && !immediate,
            // VROR, VROL; of the immediate bit 5 stands in funct6.
            0x14 | 0x15 => true,
            0x17 => self.is_merge(),
            // VSMUL, and moves of whole registers.
            0x27 if immediate => self.unmasked && matches!(self.vs1, 0 | 1 | 3 | 7),
            0x27 => true,
            // VNSRL, VNSRA, VNCLIP; VWSLL.
            0x2c..=0x2f | 0x35 => self.widens(),
            // VWREDSUM.
            0x30 | 0x31 => vector && self.widens(),
            _ => false,
        }
    }

    /// OPMVV and OPMVX.
    const fn is_multiply_or_mask(self) -> bool {
        let vector = self.category == 2;
        match self.funct6 {
            // Reductions.
            0x00..=0x07 => vector,
            // Averages, products and quotients, products with sums.
            0x08..=0x0b | 0x20..=0x27 | 0x29 | 0x2b | 0x2d | 0x2f => true,
            // VCLMUL, VCLMULH.
            0x0c | 0x0d => self.width == 3,
            // VSLIDE1UP, VSLIDE1DOWN.
            0x0e | 0x0f => !vector,
            // VMV.X.S, VCPOP.M, VFIRST.M; VMV.S.X.
            0x10 if vector => self.vs1 == 0 && self.unmasked || matches!(self.vs1, 0x10 | 0x11),
            0x10 => self.unmasked && self.vs2 == 0,
            0x12 if vector => match self.vs1 {
                // VZEXT and VSEXT by 8, 4 and 2.
                2 | 3 => self.width == 3,
                4 | 5 => self.width >= 2,
                6 | 7 => self.width >= 1,
                // VBREV8, VREV8, VBREV, VCLZ, VCTZ, VCPOP.V.
                8 | 9 | 10 | 12 | 13 | 14 => true,
                _ => false,
            },
            // VMSBF, VMSOF, VMSIF, VIOTA; VID reads nothing.
            0x14 if vector => {
                matches!(self.vs1, 1 | 2 | 3 | 0x10) || self.vs1 == 0x11 && self.vs2 == 0
            }
            // VCOMPRESS, logic of masks.
            0x17..=0x1f => vector && self.unmasked,
            // Widening sums and products.
            0x30..=0x38 | 0x3a..=0x3d | 0x3f => self.widens(),
            // VWMACCUS.
            0x3e => !vector && self.widens(),
            _ => false,
        }
    }

    /// VFCVT, VFWCVT and VFNCVT: halves are the narrowest floating-point numbers.
    const fn is_conversion(self) -> bool {
        let float = self.width >= 1;
        match self.vs1 {
            0..=3 | 6 | 7 => float,
            // To integers, to double width, or from one.
            0x08 | 0x09 | 0x0c | 0x0e | 0x0f => float && self.widens(),
            0x0a | 0x0b => self.widens(),
            0x10 | 0x11 | 0x16 | 0x17 => self.widens(),
            0x12..=0x15 => float && self.widens(),
            _ => false,
        }
    }

    /// OPFVV and OPFVF.
    const fn is_float(self) -> bool {
        let vector = self.category == 1;
        if vector && self.funct6 == 0x12 {
            return self.is_conversion();
        }
        self.width >= 1
            && match self.funct6 {
                // Sums, minima and maxima, signs, products, products with sums, comparisons.
                0x00 | 0x02 | 0x04 | 0x06 | 0x08..=0x0a | 0x18 | 0x19 | 0x1b | 0x1c => true,
                0x20 | 0x24 | 0x28..=0x2f => true,
                // Reductions.
                0x01 | 0x03 | 0x05 | 0x07 => vector,
                // Slides, VMFGT, VMFGE, VFRDIV, VFRSUB.
                0x0e | 0x0f | 0x1d | 0x1f | 0x21 | 0x27 => !vector,
                // VFMV.F.S, VFMV.S.F.
                0x10 if vector => self.vs1 == 0 && self.unmasked,
                0x10 => self.unmasked && self.vs2 == 0,
                // VFSQRT, VFRSQRT7, VFREC7, VFCLASS.
                0x13 => vector && matches!(self.vs1, 0 | 4 | 5 | 0x10),
                0x17 => !vector && self.is_merge(),
                0x30 | 0x32 | 0x34 | 0x36 | 0x38 | 0x3c..=0x3f => self.widens(),
                0x31 | 0x33 => vector && self.widens(),
                _ => false,
            }
    }

    /// OP-VE: all unmasked, with operands as OPMVV has them.
    const fn is_crypto(self) -> bool {
        let words = self.width == 2;
        self.category == 2
            && self.unmasked
            && match self.funct6 {
                // VSM3ME, VSM4K, VAESKF1, VAESKF2, VSM3C, VGHSH.
                0x20 | 0x21 | 0x22 | 0x2a | 0x2b | 0x2c => words,
                // VAESDM, VAESDF, VAESEM, VAESEF, VSM4R, VGMUL.
                0x28 => words && matches!(self.vs1, 0..=3 | 0x10 | 0x11),
                // The same by one key, and VAESZ.
                0x29 => words && matches!(self.vs1, 0..=3 | 7 | 0x10),
                // VSHA2MS, VSHA2CH, VSHA2CL.
                0x2d..=0x2f => words || self.width == 3,
                _ => false,
            }
    }
}

/// Tests whether a load or store exists. Its EMUL is the width in memory divided by SEW.
const fn is_transfer(word: u32, sew: u32) -> bool {
    let fields = (word >> 29) + 1;
    let is_store = word & 0x7f == STORE;
    let unmasked = word >> 25 & 1 != 0;
    let width = match word >> 12 & 7 {
        0 => 0,
        third => third - 4,
    };
    // mew is reserved.
    if word >> 28 & 1 != 0 {
        return false;
    }
    let registers = if width > sew { 1 << (width - sew) } else { 1 };
    let fits = fields * registers <= 8;
    match (word >> 26 & 3, word >> 20 & 31) {
        (0, 0) => fits,
        (0, 0x10) => fits && !is_store,
        // Whole registers; stores have one width.
        (0, 8) => fields.is_power_of_two() && unmasked && !(is_store && width != 0),
        // Masks.
        (0, 0xb) => fields == 1 && unmasked && width == 0,
        (0, _) => false,
        (2, _) => fits,
        // Indexed: the data have SEW.
        _ => true,
    }
}

/// Tests whether a word of the sweep is an instruction while SEW is 8 << `width` bits.
#[must_use]
pub const fn is_instruction(word: u32, width: u32) -> bool {
    let fields = Fields::of(word, width);
    match (word & 0x7f, fields.category) {
        (LOAD | STORE, _) => is_transfer(word, width),
        (OP_VE, _) => fields.is_crypto(),
        // VSETVLI and VSETIVLI have all values of vtype; VSETVL's upper bits are an opcode.
        (_, CONFIGURE) => word >> 31 == 0 || word >> 30 == 3 || word >> 25 == 0x40,
        (_, 0 | 3 | 4) => fields.is_integer(),
        (_, 2 | 6) => fields.is_multiply_or_mask(),
        _ => fields.is_float(),
    }
}

/// Tests whether vs1 names a vector register of OPIVV, OPFVV and OPMVV; elsewhere it selects an instruction.
const fn reads_vs1(category: u32, funct6: u32) -> bool {
    !matches!(
        (category, funct6),
        (2, 0x10 | 0x12 | 0x14) | (1, 0x10 | 0x12 | 0x13)
    )
}

/// Encodings of OP-V, but for the configuration, and of OP-VE: each funct6 of each kind of operands, masked and not.
fn computations() -> Vec<u32> {
    let mut words = Vec::new();
    for (opcode, category) in CATEGORIES
        .map(|one| (OP_V, one))
        .chain([(OP_VE, 2), (OP_VE, 6)])
    {
        for funct6 in 0..64 {
            let is_register = if opcode == OP_V {
                category < 3 && reads_vs1(category, funct6)
            } else {
                matches!(funct6, 0x20 | 0x2c..=0x2f)
            };
            for vs1 in 0..32 {
                if is_register && vs1 != VS1 {
                    continue;
                }
                // Not v0 as data behind a mask: a register is not read with two widths.
                for (vm, vs2) in [(1, VS2), (0, VS2), (1, 0)] {
                    let upper = funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15;
                    words.push(upper | category << 12 | VD << 7 | opcode);
                }
            }
        }
    }
    words
}

/// Loads and stores: each nf, mew, mop, vm and width, and each lumop and sumop.
fn transfers() -> Vec<u32> {
    let mut words = Vec::new();
    for upper in 0..1 << 7 {
        for selector in 0..32 {
            // Strides of zero, and offsets of zero in aligned registers.
            let rs2 = match upper >> 1 & 3 {
                0 => selector,
                2 if selector == 0 => 0,
                1 | 3 if selector == 0 => VS2,
                _ => continue,
            };
            for third in [0, 5, 6, 7] {
                for opcode in [LOAD, STORE] {
                    let low = BASE << 15 | third << 12 | VD << 7 | opcode;
                    words.push(upper << 25 | rs2 << 20 | low);
                }
            }
        }
    }
    words
}

/// Encodings that leave vl and vtype.
#[must_use]
pub fn words() -> Vec<u32> {
    let mut words = computations();
    words.extend(transfers());
    words
}

/// Encodings of OPCFG, by their upper twelve bits.
#[must_use]
pub fn configurations() -> Vec<u32> {
    (0..0x1000)
        .map(|upper| upper << 20 | BASE << 15 | CONFIGURE << 12 | VD << 7 | OP_V)
        .collect()
}
