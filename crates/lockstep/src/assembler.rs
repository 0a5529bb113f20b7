//! Encodings of instructions, and code with labels.
//!
//! Formats are named as in the RISC-V instruction set manual, volume I, "Base Instruction Formats".

/// Register numbers used by the harness.
pub type Register = u32;

/// R-type.
#[must_use]
pub const fn r(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// I-type; the immediate's low twelve bits count.
#[must_use]
pub const fn i(immediate: i32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (immediate.cast_unsigned() & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// S-type; the immediate's low twelve bits count.
#[must_use]
pub const fn s(immediate: i32, rs2: u32, rs1: u32, funct3: u32, opcode: u32) -> u32 {
    let bits = immediate.cast_unsigned() & 0xfff;
    bits >> 5 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (bits & 31) << 7 | opcode
}

/// B-type.
#[must_use]
pub const fn b(offset: i32, rs2: u32, rs1: u32, funct3: u32) -> u32 {
    let bits = offset.cast_unsigned();
    (bits >> 12 & 1) << 31
        | (bits >> 5 & 0x3f) << 25
        | rs2 << 20
        | rs1 << 15
        | funct3 << 12
        | (bits >> 1 & 15) << 8
        | (bits >> 11 & 1) << 7
        | 0x63
}

/// JAL.
#[must_use]
pub const fn jal(rd: u32, offset: i32) -> u32 {
    let bits = offset.cast_unsigned();
    (bits >> 20 & 1) << 31
        | (bits >> 1 & 0x3ff) << 21
        | (bits >> 11 & 1) << 20
        | (bits >> 12 & 0xff) << 12
        | rd << 7
        | 0x6f
}

/// LUI with the upper twenty bits.
#[must_use]
pub const fn lui(rd: u32, upper: u32) -> u32 {
    upper << 12 | rd << 7 | 0x37
}

/// AUIPC with the upper twenty bits.
#[must_use]
pub const fn auipc(rd: u32, upper: u32) -> u32 {
    upper << 12 | rd << 7 | 0x17
}

/// ADDI.
#[must_use]
pub const fn addi(rd: u32, rs1: u32, immediate: i32) -> u32 {
    i(immediate, rs1, 0, rd, 0x13)
}

/// LD.
#[must_use]
pub const fn ld(rd: u32, rs1: u32, offset: i32) -> u32 {
    i(offset, rs1, 3, rd, 0x03)
}

/// SD.
#[must_use]
pub const fn sd(rs2: u32, rs1: u32, offset: i32) -> u32 {
    s(offset, rs2, rs1, 3, 0x23)
}

/// FLD.
#[must_use]
pub const fn fld(rd: u32, rs1: u32, offset: i32) -> u32 {
    i(offset, rs1, 3, rd, 0x07)
}

/// FSD.
#[must_use]
pub const fn fsd(rs2: u32, rs1: u32, offset: i32) -> u32 {
    s(offset, rs2, rs1, 3, 0x27)
}

/// JALR.
#[must_use]
pub const fn jalr(rd: u32, rs1: u32, offset: i32) -> u32 {
    i(offset, rs1, 0, rd, 0x67)
}

/// CSRRW, CSRRS, CSRRC by `funct3` 1, 2, 3; with an immediate 5, 6, 7.
#[must_use]
pub const fn csr(funct3: u32, rd: u32, number: u16, source: u32) -> u32 {
    (number as u32) << 20 | source << 15 | funct3 << 12 | rd << 7 | 0x73
}

/// CSRW.
#[must_use]
pub const fn csrw(number: u16, rs1: u32) -> u32 {
    csr(1, 0, number, rs1)
}

/// CSRR.
#[must_use]
pub const fn csrr(rd: u32, number: u16) -> u32 {
    csr(2, rd, number, 0)
}

pub use riscv::instruction::{ECALL, MRET, SRET};

/// C.NOP.
pub const C_NOP: u16 = 1;
/// C.JR ra.
pub const C_RET: u16 = 0x8082;

/// A place in [`Code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// How an instruction refers to a label.
#[derive(Debug, Clone, Copy)]
enum Reference {
    /// A branch: `funct3`, rs1, rs2.
    Branch(u32, Register, Register),
    /// A jump without link.
    Jump,
    /// AUIPC and ADDI into a register.
    Address(Register),
}

/// Code under construction.
#[derive(Debug, Default)]
pub struct Code {
    words: Vec<u32>,
    labels: Vec<Option<usize>>,
    references: Vec<(usize, Label, Reference)>,
}

impl Code {
    /// Adds an instruction.
    pub fn emit(&mut self, word: u32) {
        self.words.push(word);
    }

    /// A label that is placed later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        let here = self.words.len();
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(here);
        }
    }

    /// A branch: `funct3` as in the B-type.
    pub fn branch(&mut self, funct3: u32, rs1: Register, rs2: Register, to: Label) {
        self.references
            .push((self.words.len(), to, Reference::Branch(funct3, rs1, rs2)));
        self.words.push(0);
    }

    /// A jump.
    pub fn jump(&mut self, to: Label) {
        self.references
            .push((self.words.len(), to, Reference::Jump));
        self.words.push(0);
    }

    /// Loads the address of a label.
    pub fn address(&mut self, rd: Register, of: Label) {
        self.references
            .push((self.words.len(), of, Reference::Address(rd)));
        self.words.extend([0, 0]);
    }

    /// Loads a constant of at most 32 bits, not sign-extended.
    pub fn constant(&mut self, rd: Register, value: u32) {
        let low = (value.cast_signed() << 20) >> 20;
        let upper = value.wrapping_sub(low.cast_unsigned()) >> 12;
        self.emit(lui(rd, upper & 0xf_ffff));
        self.emit(addi(rd, rd, low));
        // LUI sign-extends: SLLI and SRLI by 32 take that away.
        self.emit(i(32, rd, 1, rd, 0x13));
        self.emit(i(32, rd, 5, rd, 0x13));
    }

    /// The instructions, with labels resolved.
    ///
    /// # Panics
    /// If a label was never placed: a mistake in this crate.
    #[must_use]
    pub fn finish(mut self) -> Vec<u32> {
        for (at, label, reference) in std::mem::take(&mut self.references) {
            let target = self.labels[label.0].expect("every label is placed");
            let offset = (target as i32 - at as i32) * 4;
            match reference {
                Reference::Branch(funct3, rs1, rs2) => {
                    self.words[at] = b(offset, rs2, rs1, funct3);
                }
                Reference::Jump => self.words[at] = jal(0, offset),
                Reference::Address(rd) => {
                    let low = (offset << 20) >> 20;
                    let upper = (offset - low).cast_unsigned() >> 12;
                    self.words[at] = auipc(rd, upper);
                    self.words[at + 1] = addi(rd, rd, low);
                }
            }
        }
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings from the listings of the specification, by hand.
    #[test]
    fn formats_are_the_specification_s() {
        assert_eq!(addi(10, 0, -1), 0xfff0_0513);
        assert_eq!(sd(1, 2, 8), 0x0011_3423);
        assert_eq!(jal(0, -4), 0xffdf_f06f);
        assert_eq!(b(-4, 0, 0, 0), 0xfe00_0ee3);
        assert_eq!(csrr(5, 0xf14), 0xf140_22f3);
        assert_eq!(jalr(0, 1, 0), 0x0000_8067);
    }

    #[test]
    fn labels_are_resolved_both_ways() {
        let mut code = Code::default();
        let (back, ahead) = (code.label(), code.label());
        code.place(back);
        code.branch(0, 0, 0, ahead);
        code.jump(back);
        code.place(ahead);
        assert_eq!(code.finish(), [b(8, 0, 0, 0), jal(0, -4)]);
    }
}
