//! Integer arithmetic.

use super::assembler::*;
use super::translate::Translator;
use crate::instruction::{Instruction, Operation};

impl Translator<'_> {
    /// RAX and another register with the values of the two source registers.
    fn sources(&mut self, i: Instruction) -> Host {
        let first = self.get(i.rs1, None);
        let second = self.get(i.rs2, Some(first));
        self.a.registers(Quad, op::MOV, RAX, first);
        second
    }

    /// RAX with the value of the first source register.
    fn source(&mut self, i: Instruction) {
        let first = self.get(i.rs1, None);
        self.a.registers(Quad, op::MOV, RAX, first);
    }

    /// Sign-extends EAX.
    fn word(&mut self) {
        self.a.registers(Quad, op::MOVSXD, RAX, RAX);
    }

    fn with_register(&mut self, i: Instruction, opcode: u8) {
        let second = self.sources(i);
        self.a.registers(Quad, opcode, RAX, second);
    }

    /// RAX and the complement of the second source register.
    fn with_complement(&mut self, i: Instruction, opcode: u8) {
        let second = self.sources(i);
        self.a.registers(Quad, op::MOV, RCX, second);
        self.a.unary(Quad, 0xf7, 2, RCX);
        self.a.registers(Quad, opcode, RAX, RCX);
    }

    fn with_immediate(&mut self, i: Instruction, digit: u8) {
        self.source(i);
        self.a.immediate(Quad, digit, RAX, i.immediate);
    }

    fn shifted(&mut self, i: Instruction, width: Width, digit: u8) {
        let second = self.sources(i);
        self.a.registers(Quad, op::MOV, RCX, second);
        self.a.unary(width, 0xd3, digit, RAX);
        if width == Double {
            self.word();
        }
    }

    fn shifted_by(&mut self, i: Instruction, width: Width, digit: u8) {
        self.source(i);
        let mask = if width == Quad { 63 } else { 31 };
        self.a.shift(width, digit, RAX, (i.immediate & mask) as u8);
        if width == Double {
            self.word();
        }
    }

    /// RAX is whether a condition holds.
    fn holds(&mut self, condition: u8) {
        self.a.registers_0f(Double, 0x90 | condition, 0, RAX);
        self.a.registers_0f(Double, 0xb6, RAX, RAX);
    }

    fn compare(&mut self, i: Instruction, condition: u8) {
        let second = self.sources(i);
        self.a.registers(Quad, op::CMP, RAX, second);
        self.holds(condition);
    }

    fn compare_immediate(&mut self, i: Instruction, condition: u8) {
        let first = self.get(i.rs1, None);
        self.a.immediate(Quad, digit::CMP, first, i.immediate);
        self.holds(condition);
    }

    /// RAX, or the second source register if a condition holds between the two.
    fn choose(&mut self, i: Instruction, condition: u8) {
        let second = self.sources(i);
        self.a.registers(Quad, op::CMP, RAX, second);
        self.a.registers_0f(Quad, 0x40 | condition, RAX, second);
    }

    /// The first source register, scaled, and the second one.
    fn scaled(&mut self, i: Instruction, scale: u8, low: bool) {
        let second = self.sources(i);
        if low {
            self.a.registers(Double, op::MOV, RAX, RAX);
        }
        self.a
            .memory(Quad, op::LEA, RAX, indexed(second, RAX, scale, 0));
    }

    /// The number of a bit that BSF or BSR finds, or `none`.
    fn scan(&mut self, i: Instruction, width: Width, opcode: u8, none: i32) {
        let first = self.get(i.rs1, None);
        self.a.set(RCX, none);
        self.a.registers_0f(width, opcode, RAX, first);
        self.a
            .registers_0f(width, 0x40 | condition::EQUAL, RAX, RCX);
    }

    /// The bit that the second source register, or the immediate, numbers: in RCX, with RAX the first one.
    fn bit(&mut self, i: Instruction, immediate: bool) {
        if immediate {
            self.source(i);
            self.a.set_wide(RCX, 1 << (i.immediate & 63));
        } else {
            let second = self.sources(i);
            self.a.registers(Quad, op::MOV, RCX, second);
            self.a.set(RDX, 1);
            self.a.unary(Quad, 0xd3, shift::SHL, RDX);
            self.a.registers(Quad, op::MOV, RCX, RDX);
        }
    }

    /// The quotient (`remainder` false) or remainder. By zero, and in case of an overflow, the interpreter.
    fn divide(&mut self, i: Instruction, width: Width, signed: bool, remainder: bool) {
        let second = self.sources(i);
        self.a.registers(width, op::MOV, RCX, second);
        if signed {
            // 0 and -1 become 1 and 0.
            self.a.memory(width, op::LEA, RDX, at(RCX, 1));
            self.a.immediate(width, digit::CMP, RDX, 1);
            self.slow_if(condition::BELOW_EQUAL);
            self.cost(|costs| costs.divide);
            self.a.sign_into_rdx(width);
            self.a.unary(width, 0xf7, 7, RCX);
        } else {
            self.a.registers(width, op::TEST, RCX, RCX);
            self.slow_if(condition::EQUAL);
            self.cost(|costs| costs.divide);
            self.a.registers(Double, op::XOR, RDX, RDX);
            self.a.unary(width, 0xf7, 6, RCX);
        }
        if remainder {
            self.a.registers(Quad, op::MOV, RAX, RDX);
        }
        if width == Double {
            self.word();
        }
    }

    /// The high half of a product (`digit` 4: unsigned, 5: signed).
    fn multiply_high(&mut self, i: Instruction, digit: u8) {
        let second = self.sources(i);
        self.a.unary(Quad, 0xf7, digit, second);
        self.a.registers(Quad, op::MOV, RAX, RDX);
        self.cost(|costs| costs.multiply);
    }

    fn multiply(&mut self, i: Instruction, width: Width) {
        let second = self.sources(i);
        self.a.registers_0f(width, 0xaf, RAX, second);
        if width == Double {
            self.word();
        }
        self.cost(|costs| costs.multiply);
    }

    /// Zero if the second source register is (not) zero, else the first.
    fn zero_if(&mut self, i: Instruction, condition: u8) {
        let second = self.sources(i);
        self.a.set(RCX, 0);
        self.a.registers(Quad, op::TEST, second, second);
        self.a.registers_0f(Quad, 0x40 | condition, RAX, RCX);
    }

    /// Translates an instruction; `false` if that is the interpreter's.
    pub(super) fn arithmetic(&mut self, i: Instruction) -> bool {
        let translated = self.base(i) || self.scaled_or_multiplied(i) || self.bits(i);
        if translated {
            self.put(i.rd);
        }
        translated
    }

    /// Leaves in RAX the result of an instruction of the base set, of a rotation or a choice; `false` for others.
    fn base(&mut self, i: Instruction) -> bool {
        use Operation as O;
        use condition as c;
        match i.operation {
            O::LoadImmediate => self.a.set(RAX, i.immediate),
            O::Move => self.source(i),
            O::Addi => {
                let first = self.get(i.rs1, None);
                self.a.memory(Quad, op::LEA, RAX, at(first, i.immediate));
            }
            O::Addiw => {
                let first = self.get(i.rs1, None);
                self.a.memory(Double, op::LEA, RAX, at(first, i.immediate));
                self.word();
            }
            O::Slti => self.compare_immediate(i, c::LESS),
            O::Sltiu => self.compare_immediate(i, c::BELOW),
            O::Xori => self.with_immediate(i, digit::XOR),
            O::Ori => self.with_immediate(i, digit::OR),
            O::Andi => self.with_immediate(i, digit::AND),
            O::Slli => self.shifted_by(i, Quad, shift::SHL),
            O::Srli => self.shifted_by(i, Quad, shift::SHR),
            O::Srai => self.shifted_by(i, Quad, shift::SAR),
            O::Slliw => self.shifted_by(i, Double, shift::SHL),
            O::Srliw => self.shifted_by(i, Double, shift::SHR),
            O::Sraiw => self.shifted_by(i, Double, shift::SAR),
            O::Add => {
                let second = self.sources(i);
                self.a.registers(Quad, op::ADD, RAX, second);
            }
            O::Sub => self.with_register(i, op::SUB),
            O::Xor => self.with_register(i, op::XOR),
            O::Or => self.with_register(i, op::OR),
            O::And => self.with_register(i, op::AND),
            O::Andn => self.with_complement(i, op::AND),
            O::Orn => self.with_complement(i, op::OR),
            O::Xnor => self.with_complement(i, op::XOR),
            O::Addw => {
                self.with_register(i, op::ADD);
                self.word();
            }
            O::Subw => {
                self.with_register(i, op::SUB);
                self.word();
            }
            O::Sll => self.shifted(i, Quad, shift::SHL),
            O::Srl => self.shifted(i, Quad, shift::SHR),
            O::Sra => self.shifted(i, Quad, shift::SAR),
            O::Sllw => self.shifted(i, Double, shift::SHL),
            O::Srlw => self.shifted(i, Double, shift::SHR),
            O::Sraw => self.shifted(i, Double, shift::SAR),
            O::Rol => self.shifted(i, Quad, shift::ROL),
            O::Ror => self.shifted(i, Quad, shift::ROR),
            O::Rolw => self.shifted(i, Double, shift::ROL),
            O::Rorw => self.shifted(i, Double, shift::ROR),
            O::Rori => self.shifted_by(i, Quad, shift::ROR),
            O::Roriw => self.shifted_by(i, Double, shift::ROR),
            O::Slt => self.compare(i, c::LESS),
            O::Sltu => self.compare(i, c::BELOW),
            O::Max => self.choose(i, c::LESS),
            O::Maxu => self.choose(i, c::BELOW),
            O::Min => self.choose(i, c::GREATER),
            O::Minu => self.choose(i, c::ABOVE),
            O::CzeroEqz => self.zero_if(i, c::EQUAL),
            O::CzeroNez => self.zero_if(i, c::NOT_EQUAL),
            _ => return false,
        }
        true
    }

    /// Leaves in RAX a scaled sum, a product or a quotient; `false` for other instructions.
    fn scaled_or_multiplied(&mut self, i: Instruction) -> bool {
        use Operation as O;
        let room = |t: &Self| t.has_room(|costs| costs.multiply.max(costs.divide));
        match i.operation {
            O::AddUw => self.scaled(i, 0, true),
            O::Sh1add => self.scaled(i, 1, false),
            O::Sh2add => self.scaled(i, 2, false),
            O::Sh3add => self.scaled(i, 3, false),
            O::Sh1addUw => self.scaled(i, 1, true),
            O::Sh2addUw => self.scaled(i, 2, true),
            O::Sh3addUw => self.scaled(i, 3, true),
            O::SlliUw => {
                self.source(i);
                self.a.registers(Double, op::MOV, RAX, RAX);
                self.a
                    .shift(Quad, shift::SHL, RAX, (i.immediate & 63) as u8);
            }
            O::Mul if room(self) => self.multiply(i, Quad),
            O::Mulw if room(self) => self.multiply(i, Double),
            O::Mulh if room(self) => self.multiply_high(i, 5),
            O::Mulhu if room(self) => self.multiply_high(i, 4),
            O::Div if room(self) => self.divide(i, Quad, true, false),
            O::Divu if room(self) => self.divide(i, Quad, false, false),
            O::Rem if room(self) => self.divide(i, Quad, true, true),
            O::Remu if room(self) => self.divide(i, Quad, false, true),
            O::Divw if room(self) => self.divide(i, Double, true, false),
            O::Divuw if room(self) => self.divide(i, Double, false, false),
            O::Remw if room(self) => self.divide(i, Double, true, true),
            O::Remuw if room(self) => self.divide(i, Double, false, true),
            _ => return false,
        }
        true
    }

    /// Leaves in RAX the result of an instruction on bits and bytes; `false` for others.
    fn bits(&mut self, i: Instruction) -> bool {
        use Operation as O;
        match i.operation {
            // BSR gives the highest bit's number; 2 * 64 - 1 and 2 * 32 - 1 become the width.
            O::Clz => {
                self.scan(i, Quad, 0xbd, 127);
                self.a.immediate(Double, digit::XOR, RAX, 63);
            }
            O::Clzw => {
                self.scan(i, Double, 0xbd, 63);
                self.a.immediate(Double, digit::XOR, RAX, 31);
            }
            O::Ctz => self.scan(i, Quad, 0xbc, 64),
            O::Ctzw => self.scan(i, Double, 0xbc, 32),
            O::Cpop | O::Cpopw if self.has_count_ones => {
                let width = if i.operation == O::Cpop { Quad } else { Double };
                let first = self.get(i.rs1, None);
                self.a.count_ones(width, RAX, first);
            }
            O::SextB => {
                self.source(i);
                self.a.registers_0f(Quad, 0xbe, RAX, RAX);
            }
            O::SextH => {
                self.source(i);
                self.a.registers_0f(Quad, 0xbf, RAX, RAX);
            }
            O::ZextH => {
                self.source(i);
                self.a.registers_0f(Double, 0xb7, RAX, RAX);
            }
            O::Rev8 => {
                self.source(i);
                self.a.swap_bytes(RAX);
            }
            O::Bset | O::Bseti => {
                self.bit(i, i.operation == O::Bseti);
                self.a.registers(Quad, op::OR, RAX, RCX);
            }
            O::Binv | O::Binvi => {
                self.bit(i, i.operation == O::Binvi);
                self.a.registers(Quad, op::XOR, RAX, RCX);
            }
            O::Bclr | O::Bclri => {
                self.bit(i, i.operation == O::Bclri);
                self.a.unary(Quad, 0xf7, 2, RCX);
                self.a.registers(Quad, op::AND, RAX, RCX);
            }
            O::Bext => {
                self.shifted(i, Quad, shift::SHR);
                self.a.immediate(Double, digit::AND, RAX, 1);
            }
            O::Bexti => {
                self.shifted_by(i, Quad, shift::SHR);
                self.a.immediate(Double, digit::AND, RAX, 1);
            }
            _ => return false,
        }
        true
    }
}
