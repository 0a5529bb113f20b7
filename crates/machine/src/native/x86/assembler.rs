//! Encodings of x86-64 instructions, as far as translations need them.
//!
//! AMD64 Architecture Programmer's Manual, volume 3.

/// A general-purpose register by its number.
pub type Host = u8;

pub const RAX: Host = 0;
pub const RCX: Host = 1;
pub const RDX: Host = 2;
pub const RBX: Host = 3;
pub const RBP: Host = 5;
pub const RSI: Host = 6;
pub const RDI: Host = 7;
pub const R8: Host = 8;
pub const R9: Host = 9;
pub const R10: Host = 10;
pub const R11: Host = 11;
pub const R12: Host = 12;
pub const R13: Host = 13;
pub const R14: Host = 14;
pub const R15: Host = 15;

/// Conditions of jumps, SETcc and CMOVcc.
pub mod condition {
    pub const BELOW: u8 = 2;
    pub const ABOVE_EQUAL: u8 = 3;
    pub const EQUAL: u8 = 4;
    pub const NOT_EQUAL: u8 = 5;
    pub const BELOW_EQUAL: u8 = 6;
    pub const ABOVE: u8 = 7;
    pub const LESS: u8 = 12;
    pub const GREATER_EQUAL: u8 = 13;
    pub const GREATER: u8 = 15;
}

/// Width of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits; the upper half of a destination becomes zero.
    Double,
    /// 64 bits.
    Quad,
}
pub use Width::{Double, Quad};

/// Opcodes of the form `register, register or memory`.
pub mod op {
    pub const ADD: u8 = 0x03;
    pub const OR: u8 = 0x0b;
    pub const AND: u8 = 0x23;
    pub const SUB: u8 = 0x2b;
    pub const XOR: u8 = 0x33;
    pub const CMP: u8 = 0x3b;
    pub const TEST: u8 = 0x85;
    pub const MOV: u8 = 0x8b;
    pub const LEA: u8 = 0x8d;
    pub const MOVSXD: u8 = 0x63;
    /// The opposite direction of [`MOV`]: to memory.
    pub const STORE: u8 = 0x89;
}

/// The digit of instructions with an immediate operand (opcodes 81 and 83).
pub mod digit {
    pub const ADD: u8 = 0;
    pub const OR: u8 = 1;
    pub const AND: u8 = 4;
    pub const XOR: u8 = 6;
    pub const CMP: u8 = 7;
}

/// The digit of shifts and rotations (opcodes C1 and D3).
pub mod shift {
    pub const ROL: u8 = 0;
    pub const ROR: u8 = 1;
    pub const SHL: u8 = 4;
    pub const SHR: u8 = 5;
    pub const SAR: u8 = 7;
}

/// A place in memory: base, displacement, and an index with the logarithm of its scale.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub base: Host,
    pub index: Option<(Host, u8)>,
    pub displacement: i32,
}

/// Memory at a register's value and a displacement.
pub const fn at(base: Host, displacement: i32) -> Place {
    Place {
        base,
        index: None,
        displacement,
    }
}

/// Memory at the sum of two registers, the second one scaled, and a displacement.
pub const fn indexed(base: Host, index: Host, scale: u8, displacement: i32) -> Place {
    Place {
        base,
        index: Some((index, scale)),
        displacement,
    }
}

/// Bytes of machine code that are to stand at an offset of the buffer.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Assembled bytes.
    pub bytes: Vec<u8>,
    /// Where it is to stand.
    pub origin: u32,
}

/// A 32-bit displacement that is not known yet.
#[derive(Debug, Clone, Copy)]
pub struct Gap(usize);

impl Assembler {
    /// Begins anew at an offset of the buffer.
    pub fn begin(&mut self, origin: u32) {
        self.bytes.clear();
        self.origin = origin;
    }

    /// The offset of the buffer at which the next byte will stand.
    pub const fn here(&self) -> u32 {
        self.origin + self.bytes.len() as u32
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn immediate32(&mut self, value: i32) {
        self.bytes.extend(value.to_le_bytes());
    }

    fn rex(&mut self, width: Width, reg: Host, index: Host, base: Host, always: bool) {
        let wide = (width == Quad) as u8;
        let rex = 0x40 | wide << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
        if rex != 0x40 || always {
            self.byte(rex);
        }
    }

    fn place(&mut self, reg: Host, place: Place) {
        let short = i8::try_from(place.displacement);
        let mode = if short.is_ok() { 0x40 } else { 0x80 };
        match place.index {
            None if place.base & 7 != 4 => self.byte(mode | (reg & 7) << 3 | place.base & 7),
            index => {
                let (index, scale) = index.unwrap_or((4, 0));
                self.byte(mode | (reg & 7) << 3 | 4);
                self.byte(scale << 6 | (index & 7) << 3 | place.base & 7);
            }
        }
        match short {
            Ok(short) => self.byte(short.cast_unsigned()),
            Err(_) => self.immediate32(place.displacement),
        }
    }

    /// `opcode reg, [place]`, or the opposite direction for an opcode that stores.
    pub fn memory(&mut self, width: Width, opcode: u8, reg: Host, place: Place) {
        let index = place.index.map_or(0, |(index, _)| index);
        self.rex(width, reg, index, place.base, false);
        self.byte(opcode);
        self.place(reg, place);
    }

    /// The same for opcodes of two bytes, the first of which is 0F.
    pub fn memory_0f(&mut self, width: Width, opcode: u8, reg: Host, place: Place) {
        let index = place.index.map_or(0, |(index, _)| index);
        self.rex(width, reg, index, place.base, false);
        self.bytes.extend([0x0f, opcode]);
        self.place(reg, place);
    }

    /// Stores the low 8 or 16 bits of a register.
    pub fn store_small(&mut self, bytes: u64, reg: Host, place: Place) {
        if bytes == 2 {
            self.byte(0x66);
        }
        let index = place.index.map_or(0, |(index, _)| index);
        // Without the prefix, registers 4 to 7 would be others' second bytes.
        self.rex(Double, reg, index, place.base, true);
        self.byte(if bytes == 1 { 0x88 } else { 0x89 });
        self.place(reg, place);
    }

    /// `opcode reg, rm`.
    pub fn registers(&mut self, width: Width, opcode: u8, reg: Host, rm: Host) {
        self.rex(width, reg, 0, rm, false);
        self.byte(opcode);
        self.byte(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    /// The same for opcodes of two bytes, the first of which is 0F.
    pub fn registers_0f(&mut self, width: Width, opcode: u8, reg: Host, rm: Host) {
        self.rex(width, reg, 0, rm, true);
        self.bytes.extend([0x0f, opcode]);
        self.byte(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    /// POPCNT.
    pub fn count_ones(&mut self, width: Width, reg: Host, rm: Host) {
        self.byte(0xf3);
        self.registers_0f(width, 0xb8, reg, rm);
    }

    /// An instruction with a digit for an operand: opcodes D3 (shift by CL), F7 (unary).
    pub fn unary(&mut self, width: Width, opcode: u8, digit: u8, rm: Host) {
        self.registers(width, opcode, digit, rm);
    }

    /// `operation rm, value`, sign-extended.
    pub fn immediate(&mut self, width: Width, digit: u8, rm: Host, value: i32) {
        if let Ok(short) = i8::try_from(value) {
            self.registers(width, 0x83, digit, rm);
            self.byte(short.cast_unsigned());
        } else {
            self.registers(width, 0x81, digit, rm);
            self.immediate32(value);
        }
    }

    /// `operation qword [place], value`, sign-extended.
    pub fn memory_immediate(&mut self, digit: u8, place: Place, value: i32) {
        self.memory(Quad, 0x81, digit, place);
        self.immediate32(value);
    }

    /// A shift or rotation by a constant.
    pub fn shift(&mut self, width: Width, digit: u8, rm: Host, by: u8) {
        self.registers(width, 0xc1, digit, rm);
        self.byte(by);
    }

    /// `test al, value`.
    pub fn test_low(&mut self, value: u8) {
        self.bytes.extend([0xa8, value]);
    }

    /// `mov reg, value`, sign-extended.
    pub fn set(&mut self, reg: Host, value: i32) {
        self.registers(Quad, 0xc7, 0, reg);
        self.immediate32(value);
    }

    /// `mov reg, value` with all 64 bits.
    pub fn set_wide(&mut self, reg: Host, value: u64) {
        self.rex(Quad, 0, 0, reg, false);
        self.byte(0xb8 | reg & 7);
        self.bytes.extend(value.to_le_bytes());
    }

    /// `bswap reg`.
    pub fn swap_bytes(&mut self, reg: Host) {
        self.rex(Quad, 0, 0, reg, false);
        self.bytes.extend([0x0f, 0xc8 | reg & 7]);
    }

    /// CQO or CDQ: the sign of RAX into RDX.
    pub fn sign_into_rdx(&mut self, width: Width) {
        self.rex(width, 0, 0, 0, false);
        self.byte(0x99);
    }

    /// Pushes or pops (opcodes 50 and 58).
    pub fn stack(&mut self, opcode: u8, reg: Host) {
        self.rex(Double, 0, 0, reg, false);
        self.byte(opcode | reg & 7);
    }

    /// RET.
    pub fn ret(&mut self) {
        self.byte(0xc3);
    }

    /// An indirect jump.
    pub fn jump_register(&mut self, reg: Host) {
        self.registers(Double, 0xff, 4, reg);
    }

    /// A jump to an offset of the buffer.
    pub fn jump(&mut self, target: u32) {
        let gap = self.jump_later();
        self.fill(gap, target);
    }

    /// A jump to somewhere that is not known yet.
    pub fn jump_later(&mut self) -> Gap {
        self.byte(0xe9);
        self.immediate32(0);
        Gap(self.bytes.len() - 4)
    }

    /// A conditional jump to an offset of the buffer.
    pub fn jump_if(&mut self, condition: u8, target: u32) {
        let gap = self.jump_if_later(condition);
        self.fill(gap, target);
    }

    /// A conditional jump to somewhere that is not known yet.
    pub fn jump_if_later(&mut self, condition: u8) -> Gap {
        self.bytes.extend([0x0f, 0x80 | condition]);
        self.immediate32(0);
        Gap(self.bytes.len() - 4)
    }

    /// Says where a jump leads.
    pub fn fill(&mut self, gap: Gap, target: u32) {
        let displacement = displacement(self.origin + gap.0 as u32, target);
        if let Some(bytes) = self.bytes.get_mut(gap.0..gap.0 + 4) {
            bytes.copy_from_slice(&displacement);
        }
    }

    /// Where a jump's displacement will stand in the buffer.
    pub const fn site(&self, gap: Gap) -> u32 {
        self.origin + gap.0 as u32
    }
}

/// The displacement that stands at an offset of the buffer, and leads to another one.
pub const fn displacement(place: u32, target: u32) -> [u8; 4] {
    target.wrapping_sub(place.wrapping_add(4)).to_le_bytes()
}
