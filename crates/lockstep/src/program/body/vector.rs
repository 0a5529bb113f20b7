//! "V": configuration, loads and stores of all kinds, and the whole of OP-V.

use super::item::{Item, TEMPORARY, destination, source};
use crate::assembler::{addi, csr, r};
use crate::csr as number;
use crate::program::setting::Features;
use crate::program::state::{BASES, REACH, vtype};
use crate::random::Random;
use riscv::instruction::{OP_V, OP_VE};

/// A destination for strides and second operands, which is written just before its use.
const STRIDE: u32 = 30;
/// funct6 of OP-VE.
const CRYPTO: [u32; 14] = [
    0x20, 0x21, 0x22, 0x28, 0x28, 0x28, 0x29, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
];
/// Elements of a store with strides or offsets: it stays near its base.
const MAX_FAR: u32 = 16;
const LOAD: u32 = 0x07;
const STORE: u32 = 0x27;

/// funct6 of OPIVV, OPIVX and OPIVI ("Vector Instruction Listing").
const INTEGER: [u32; 39] = [
    0x00, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0a, 0x0b, 0x0c, 0x0e, 0x0f, 0x10, 0x11, 0x12,
    0x13, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x25, 0x27,
    0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e,
];
/// Those that are left, the sums of OPIVV, and "Zvbb".
const INTEGER_REST: [u32; 7] = [0x2f, 0x30, 0x31, 0x01, 0x14, 0x15, 0x35];
/// Of OPMVV and OPMVX.
const MULTIPLY: [u32; 55] = [
    0x0c, 0x0d, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x0f,
    0x10, 0x12, 0x14, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23,
    0x24, 0x25, 0x26, 0x27, 0x29, 0x2b, 0x2d, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37,
    0x38, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f,
];
/// Of OPFVV and OPFVF.
const FLOAT: [u32; 49] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0e, 0x0f, 0x10, 0x12, 0x12,
    0x13, 0x17, 0x18, 0x19, 0x1b, 0x1c, 0x1d, 0x1f, 0x20, 0x21, 0x24, 0x27, 0x28, 0x29, 0x2a, 0x2b,
    0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3c, 0x3d, 0x3e, 0x3f, 0x12,
    0x13,
];

/// State that the instructions before have left, as far as it is known.
#[derive(Debug)]
pub(super) struct Generator {
    /// log2 of LMUL by the last instruction that set it: how registers are mostly aligned.
    multiplier: u32,
    features: Features,
}

impl Generator {
    pub const fn new(features: Features) -> Self {
        Self {
            multiplier: 0,
            features,
        }
    }

    /// A vector instruction, with what has to stand before it.
    pub fn make(&mut self, random: &mut Random) -> Item {
        match random.below(100) {
            0..14 => self.configure(random),
            14..20 => unit_csr(random),
            20..40 => self.transfer(random),
            40..45 => self.crypto(random),
            _ => self.compute(random),
        }
    }

    /// A register that may begin a group of sources of an instruction with this vm: mostly not the mask's.
    fn source(&self, vm: u32, random: &mut Random) -> u32 {
        let register = self.register(random);
        if vm == 0 && register == 0 && random.chance(95) {
            8
        } else {
            register
        }
    }

    /// A register that may begin a group.
    fn register(&self, random: &mut Random) -> u32 {
        let align = match random.below(10) {
            0 => 0,
            1 => self.multiplier + 1,
            _ => self.multiplier,
        };
        random.field(32) >> align.min(3) << align.min(3)
    }

    /// VSETVLI, VSETIVLI or VSETVL.
    fn configure(&mut self, random: &mut Random) -> Item {
        let vtype = vtype(self.features, random);
        self.multiplier = if vtype & 4 == 0 { vtype as u32 & 3 } else { 0 };
        let rd = destination(random);
        let immediate = vtype as u32;
        match random.below(4) {
            0 => {
                let count = random.field(32);
                let word = 3 << 30 | (immediate & 0x3ff) << 20 | count << 15 | 7 << 12;
                Item::words(
                    format!("vsetivli x{rd}, {count}, {vtype:#x}"),
                    &[word | rd << 7 | OP_V],
                )
            }
            1 => {
                let other = source(random);
                let rs1 = random.pick(&[0, TEMPORARY, other]);
                let words = [
                    addi(STRIDE, 0, vtype as i32 & 0x7ff),
                    addi(TEMPORARY, 0, random.below(300) as i32),
                    r(0x40, STRIDE, rs1, 7, rd, OP_V),
                ];
                Item::words(format!("vsetvl x{rd}, x{rs1}, {vtype:#x}"), &words)
            }
            _ => {
                let other = source(random);
                let rs1 = random.pick(&[0, TEMPORARY, TEMPORARY, other]);
                let words = [
                    addi(TEMPORARY, 0, random.below(300) as i32),
                    (immediate & 0x7ff) << 20 | rs1 << 15 | 7 << 12 | rd << 7 | OP_V,
                ];
                Item::words(format!("vsetvli x{rd}, x{rs1}, {vtype:#x}"), &words)
            }
        }
    }

    /// A load or store of any kind.
    fn transfer(&mut self, random: &mut Random) -> Item {
        let is_store = random.chance(40);
        let width = random.pick(&[0, 5, 6, 7]);
        let masked = random.chance(30);
        let mut fields = if random.chance(70) {
            1
        } else {
            1 + random.field(8)
        };
        let mop = random.pick(&[0, 0, 0, 2, 1, 3]);
        let reach = u64::from(REACH.cast_unsigned());
        let mut offset = random.below(2 * reach) as i32 - REACH;
        if random.chance(70) {
            offset &= !7;
        }
        let base = random.pick(&BASES);
        let mut words = vec![addi(TEMPORARY, base, offset)];
        let (kind, rs2) = match mop {
            0 => {
                let lumop = match random.below(60) {
                    0 => 0x10,
                    1..15 => 8,
                    15..20 => 0xb,
                    _ => 0,
                };
                if lumop == 8 {
                    fields = random.pick(&[1, 2, 4, 8, 8, 3]);
                }
                (
                    ["unit", "whole", "mask", "first"][match lumop {
                        8 => 1,
                        0xb => 2,
                        0x10 => 3,
                        _ => 0,
                    }],
                    lumop,
                )
            }
            2 => {
                if is_store {
                    self.limit_elements(&mut words, random);
                }
                let stride = random.pick(&[0, 1, 2, 4, 8, -8, 16, 13, 64, 256, -1]);
                words.push(addi(STRIDE, 0, stride));
                ("strided", STRIDE)
            }
            _ if is_store => ("indexed", self.near_offsets(&mut words, width, random)),
            _ => {
                let indices = self.register(random);
                // Offsets that stay near: of a vector's own indices.
                if random.chance(60) {
                    words.insert(0, vid(indices));
                    words.insert(1, shift_left(indices, random.field(4)));
                }
                ("indexed", indices)
            }
        };
        // A pair of instructions goes into each place.
        if words.len() % 2 == 0 {
            let last = words.len() - 2;
            words.insert(last, addi(0, 0, 0));
        }
        let vm = u32::from(!masked || matches!(rs2, 8 | 0xb) && mop == 0);
        let mut vd = self.source(vm, random);
        if kind == "whole" && random.chance(90) {
            vd &= !(fields - 1);
        }
        let opcode = if is_store { STORE } else { LOAD };
        let mut word = (fields - 1) << 29 | mop << 26 | vm << 25 | rs2 << 20 | TEMPORARY << 15;
        word |= width << 12 | vd << 7 | opcode;
        if random.chance(1) {
            // A random bit of mew, lumop or width.
            word ^= 1 << random.pick(&[28, 20, 21, 22, 23, 24, 14]);
        }
        words.push(word);
        let name = if is_store { "store" } else { "load" };
        let text = format!(
            "v{name} {kind} width {width} fields {fields} v{vd}, {offset}(x{base}), {rs2} vm {vm}"
        );
        Item::words(text, &words)
    }

    /// Puts a configuration before the words: a store far away may reach page tables, and a program without its handlers faults
    /// for ever.
    fn limit_elements(&mut self, words: &mut Vec<u32>, random: &mut Random) {
        let vtype = vtype(self.features, random) as u32 & 0xff;
        self.multiplier = if vtype & 4 == 0 { vtype & 3 } else { 0 };
        words.splice(0..0, [set_elements(vtype, random), addi(0, 0, 0)]);
    }

    /// As [`Generator::limit_elements`], with offsets of up to 240 bytes in a group of eight registers, which is given.
    fn near_offsets(&mut self, words: &mut Vec<u32>, width: u32, random: &mut Random) -> u32 {
        self.limit_elements(words, random);
        let indices = 8 * random.field(4);
        let log2 = if width == 0 { 0 } else { width - 4 };
        let all = 3 << 30 | (log2 << 3 | 3) << 20 | MAX_FAR << 15 | 7 << 12 | OP_V;
        let shift = shift_left(indices, random.field(5));
        words.splice(0..0, [all, vid(indices), shift, addi(0, 0, 0)]);
        indices
    }

    /// An instruction of OP-VE, mostly on words in whole groups.
    fn crypto(&mut self, random: &mut Random) -> Item {
        let funct6 = random.pick(&CRYPTO);
        self.multiplier = random.field(3);
        let is_wide = matches!(funct6, 0x2d..=0x2f) && random.chance(50);
        let width = if is_wide { 3 } else { 2 };
        let count = random.pick(&[0, 4, 8, 8, 16, 3]);
        let configure = 3 << 30 | (width << 3 | self.multiplier) << 20 | count << 15;
        let vs1 = match funct6 {
            0x28 | 0x29 => random.pick(&[0, 1, 2, 3, 7, 0x10, 0x11, 9]),
            0x20 | 0x2c..=0x2f => self.register(random),
            _ => random.field(32),
        };
        let (vd, vs2) = (self.register(random), self.register(random));
        let vm = u32::from(random.chance(98));
        let category = if random.chance(98) {
            2
        } else {
            random.field(8)
        };
        let word = funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | category << 12 | vd << 7;
        let text = format!(
            "OP-VE e{} m{} x{count} funct6 {funct6:#x} v{vd}, v{vs2}, v{vs1}",
            8 << width,
            1 << self.multiplier
        );
        Item::words(text, &[configure | 7 << 12 | OP_V, word | OP_VE])
    }

    /// An instruction of OP-V that computes.
    fn compute(&self, random: &mut Random) -> Item {
        let (category, funct6) = match random.below(10) {
            0..4 => {
                let all = if random.chance(85) {
                    &INTEGER[..]
                } else {
                    &INTEGER_REST
                };
                (random.pick(&[0, 3, 4]), random.pick(all))
            }
            4..7 => (random.pick(&[2, 2, 6]), random.pick(&MULTIPLY)),
            _ => (random.pick(&[1, 1, 5]), random.pick(&FLOAT)),
        };
        let funct6 = if random.chance(2) {
            random.field(64)
        } else {
            funct6
        };
        let mut vm = u32::from(random.chance(65));
        // Masks that are operands.
        if matches!((category, funct6), (0 | 3 | 4, 0x10 | 0x12)) && random.chance(90) {
            vm = 0;
        }
        let (vd, mut vs2, mut vs1) = (
            self.register(random),
            self.source(vm, random),
            self.source(vm, random),
        );
        match (category, funct6) {
            // Those whose vs1 says what they do.
            (2, 0x10) => vs1 = random.pick(&[0, 0x10, 0x11]),
            (2, 0x12) => vs1 = random.pick(&[2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14]),
            (2, 0x14) => vs1 = random.pick(&[1, 2, 3, 0x10, 0x11]),
            (1, 0x10) => vs1 = 0,
            (1, 0x12) => vs1 = random.field(24),
            (1, 0x13) => vs1 = random.pick(&[0, 4, 5, 0x10]),
            (3, 0x27) => vs1 = random.pick(&[0, 1, 3, 7, 2]),
            (3 | 4 | 6, _) => vs1 = random.field(32),
            (5, _) => vs1 = random.field(32),
            _ => {}
        }
        if (matches!((category, funct6), (5 | 6, 0x10) | (2, 0x14))
            || matches!(funct6, 0x17) && random.chance(50))
            && random.chance(90)
        {
            vs2 = 0;
        }
        let is_unmasked = match (category, funct6) {
            (2, 0x10) => vs1 == 0,
            (2, 0x17..=0x1f) | (1 | 5 | 6, 0x10) | (3, 0x27) => true,
            _ => false,
        };
        if is_unmasked && random.chance(90) {
            vm = 1;
        }
        let word = funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | category << 12 | vd << 7;
        // The register of a scalar result is no base.
        let word = match (category, funct6) {
            (2, 0x10) => word & !(31 << 7) | destination(random) << 7,
            _ => word,
        };
        let vd = word >> 7 & 31;
        let text = format!(
            "OP-V category {category} funct6 {funct6:#x} v{vd}, v{vs2}, v{vs1} x{vs1} x{vd} vm {vm}"
        );
        Item::words(text, &[word | OP_V])
    }
}

/// VSETIVLI of up to [`MAX_FAR`] elements.
fn set_elements(vtype: u32, random: &mut Random) -> u32 {
    let count = random.field(MAX_FAR + 1);
    3 << 30 | vtype << 20 | count << 15 | 7 << 12 | OP_V
}

/// VID.V.
const fn vid(vd: u32) -> u32 {
    0x14 << 26 | 1 << 25 | 0x11 << 15 | 2 << 12 | vd << 7 | OP_V
}

/// VSLL.VI of a register by so many bits.
const fn shift_left(vd: u32, bits: u32) -> u32 {
    0x25 << 26 | 1 << 25 | vd << 20 | bits << 15 | 3 << 12 | vd << 7 | OP_V
}

/// An access to a CSR of the vector unit; vstart stays small.
fn unit_csr(random: &mut Random) -> Item {
    let number = random.pick(&[
        number::VSTART,
        number::VXSAT,
        number::VXRM,
        number::VCSR,
        number::VL,
        number::VTYPE,
        number::VLENB,
    ]);
    let rd = destination(random);
    let funct3 = random.pick(&[1, 2, 2, 2, 3]);
    // QEMU keeps more of vxrm than its two bits.
    let value = match number {
        number::VSTART => random.pick(&[0, 1, 2, 3, 5, 8, 17, 100]),
        number::VXRM => random.pick(&[0, 1, 2, 3]),
        _ => random.pick(&[0, 1, 2, 3, 5, 7]),
    };
    let rs1 = if random.chance(60) { 0 } else { TEMPORARY };
    let words = [addi(TEMPORARY, 0, value), csr(funct3, rd, number, rs1)];
    let name = number::name(number);
    Item::words(
        format!("csr {funct3} x{rd}, {name}, x{rs1} = {value}"),
        &words,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_the_listing_s() {
        // vid.v v8; vsll.vi v8, v8, 3.
        assert_eq!(vid(8), 0x5208_a457);
        assert_eq!(shift_left(8, 3), 0x9681_b457);
    }
}
