//! Instructions of spin loops, as far as such loops are understood.

use crate::parcel::{self, Atomic, Load, Parcel};
use crate::register::{Register, Width};

/// Integer computation: `funct3` of OP and OP-IMM, and bit 30 of the instruction (unprivileged architecture, "RV32I Base Integer Instruction
/// Set").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    funct3: u32,
    /// SUB in place of ADD, SRA in place of SRL.
    other: bool,
    /// Operates on the lower 32 bits and sign-extends the result, as ADDIW does.
    word: bool,
}

impl Operation {
    const ADD: Self = Self::new(0);
    const SHIFT_LEFT: Self = Self::new(1);
    const XOR: Self = Self::new(4);
    const SHIFT_RIGHT: Self = Self::new(5);
    const OR: Self = Self::new(6);
    const AND: Self = Self::new(7);

    const fn new(funct3: u32) -> Self {
        Self {
            funct3,
            other: false,
            word: false,
        }
    }

    const fn other(self) -> Self {
        Self {
            other: true,
            ..self
        }
    }

    const fn word(self) -> Self {
        Self { word: true, ..self }
    }

    /// Result, as the hart would compute it.
    #[must_use]
    pub const fn of(self, first: u64, second: u64) -> u64 {
        if self.word {
            let (low, by) = (first as u32, second as u32);
            let result = match (self.funct3, self.other) {
                (0, false) => low.wrapping_add(by),
                (0, true) => low.wrapping_sub(by),
                (1, _) => low.wrapping_shl(by),
                (_, false) => low.wrapping_shr(by),
                (_, true) => low.cast_signed().wrapping_shr(by).cast_unsigned(),
            };
            return result.cast_signed() as i64 as u64;
        }
        match (self.funct3, self.other) {
            (0, false) => first.wrapping_add(second),
            (0, true) => first.wrapping_sub(second),
            (1, _) => first.wrapping_shl(second as u32),
            (2, _) => (first.cast_signed() < second.cast_signed()) as u64,
            (3, _) => (first < second) as u64,
            (4, _) => first ^ second,
            (5, false) => first.wrapping_shr(second as u32),
            (5, true) => first
                .cast_signed()
                .wrapping_shr(second as u32)
                .cast_unsigned(),
            (6, _) => first | second,
            _ => first & second,
        }
    }

    /// Class of the operation.
    #[must_use]
    pub const fn class(self) -> OperationClass {
        match (self.word, self.funct3, self.other) {
            (false, 7, _) => OperationClass::Mask,
            (false, 1, _) => OperationClass::ShiftLeft,
            (false, 5, false) => OperationClass::ShiftRight,
            (false, 0 | 4 | 6, false) => OperationClass::Combine,
            (true, 0, false) => OperationClass::CombineWord,
            _ => OperationClass::Other,
        }
    }
}

/// Classes of operations that keep bits of an operand visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationClass {
    /// AND.
    Mask,
    /// SLL.
    ShiftLeft,
    /// SRL.
    ShiftRight,
    /// ADD, XOR and OR: with 0 they copy the other operand.
    Combine,
    /// ADDW: with 0 it sign-extends the lower 32 bits.
    CombineWord,
    /// Any other instruction.
    Other,
}

/// Second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// Immediate value.
    Value(u64),
}

/// Comparison of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// `funct3` of BRANCH.
    funct3: u32,
}

impl Comparison {
    /// Returns true if the branch is taken.
    #[must_use]
    pub const fn holds(self, first: u64, second: u64) -> bool {
        let holds = match self.funct3 >> 1 {
            0 => first == second,
            2 => first.cast_signed() < second.cast_signed(),
            _ => first < second,
        };
        holds != (self.funct3 & 1 != 0)
    }

    /// Returns true for BEQ and BNE.
    #[must_use]
    pub const fn is_of_equality(self) -> bool {
        self.funct3 >> 1 == 0
    }

    /// Returns true for BLT and BGE.
    #[must_use]
    pub const fn is_of_signed(self) -> bool {
        self.funct3 >> 1 == 2
    }
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// No effect that a later instruction sees: FENCE, PAUSE, C.NOP.
    Nothing,
    /// Load.
    Load(Load),
    /// Atomic operation with a register, which is a load where it leaves the word unchanged.
    Atomic(Load, Atomic, Register),
    /// Sets a register to an address at this distance from the instruction.
    Relative(Register, i64),
    /// Sets a register to a constant.
    Value(Register, u64),
    /// Sets a register to the result of an operation.
    Compute(Register, Operation, Register, Operand),
    /// Sets a register to the guest's clock.
    Clock(Register),
    /// Jumps by an offset.
    Jump(i64),
    /// Jumps to a register's value plus an offset.
    JumpRegister(Register, i64),
    /// Branches by an offset if the comparison of two registers holds.
    Branch(Comparison, (Register, Register), i64),
}

impl Instruction {
    /// Decodes an instruction; `None` if a loop with it is not understood.
    #[must_use]
    pub fn decode(parcel: Parcel) -> Option<Self> {
        if parcel::is_fence(parcel) {
            return Some(Self::Nothing);
        }
        if let Some(offset) = parcel::jump(parcel) {
            return Some(Self::Jump(offset));
        }
        if let Some((to, offset)) = parcel::jump_register(parcel) {
            return Some(Self::JumpRegister(to, offset));
        }
        if let Some(load) = parcel::load(parcel).or_else(|| parcel::load_reserved(parcel)) {
            return Some(Self::Load(load));
        }
        if let Some((load, operation, operand)) = parcel::atomic(parcel) {
            return Some(Self::Atomic(load, operation, operand));
        }
        if let Some(to) = parcel::read_time(parcel) {
            return Some(Self::Clock(to));
        }
        if let Some((registers, _, offset)) = parcel::branch(parcel) {
            let funct3 = match parcel {
                Parcel::Long(bits) => bits >> 12 & 7,
                // C.BEQZ and C.BNEZ.
                Parcel::Short(bits) => bits >> 13 & 1,
            };
            // 010 and 011 are reserved.
            return (funct3 >> 1 != 1).then_some(Self::Branch(
                Comparison { funct3 },
                registers,
                offset,
            ));
        }
        if let Some((to, upper)) = parcel::upper_immediate(parcel) {
            return Some(Self::Relative(to, upper));
        }
        if let Some(to) = parcel::divide_by_zero(parcel) {
            // "The quotient of division by zero has all bits set".
            return Some(Self::Value(to, u64::MAX));
        }
        if let Some((to, from)) = parcel::zero_extend_half(parcel) {
            let half = Operand::Value(0xffff);
            return Some(Self::Compute(to, Operation::AND, from, half));
        }
        match parcel {
            Parcel::Long(bits) => Self::decode_long(bits),
            Parcel::Short(bits) => Self::decode_short(bits),
        }
    }

    fn decode_long(bits: u32) -> Option<Self> {
        let to = Register::from_field(bits >> 7);
        let first = Register::from_field(bits >> 15);
        let second = Operand::Register(Register::from_field(bits >> 20));
        let immediate = (bits.cast_signed() >> 20) as i64 as u64;
        let funct3 = bits >> 12 & 7;
        let funct7 = bits >> 25;
        let plain = Operation::new(funct3);
        match bits & 0x7f {
            // LB, LH, LBU, LHU, LWU; 7 is reserved, and LW and LD are known.
            0x03 if funct3 != 7 => Some(Self::Load(Load {
                to,
                base: first,
                offset: immediate.cast_signed(),
                width: Width::from_field(funct3),
                signed: funct3 & 4 == 0,
            })),
            // LUI.
            0x37 => {
                let value = (bits & 0xffff_f000).cast_signed() as i64 as u64;
                Some(Self::Value(to, value))
            }
            // OP-IMM: a shift has its funct6 in the immediate's upper half.
            0x13 => {
                let operation = match (funct3, bits >> 26) {
                    (1 | 5, 0) => plain,
                    (5, 0x10) => plain.other(),
                    (1 | 5, _) => return None,
                    _ => plain,
                };
                let value = match funct3 {
                    1 | 5 => immediate & 0x3f,
                    _ => immediate,
                };
                Some(Self::Compute(to, operation, first, Operand::Value(value)))
            }
            // OP-IMM-32: ADDIW, SLLIW, SRLIW, SRAIW.
            0x1b => {
                let operation = match (funct3, funct7) {
                    (0, _) | (1 | 5, 0) => plain,
                    (5, 0x20) => plain.other(),
                    _ => return None,
                };
                let value = match funct3 {
                    0 => immediate,
                    _ => immediate & 0x1f,
                };
                let operation = operation.word();
                Some(Self::Compute(to, operation, first, Operand::Value(value)))
            }
            // OP, without multiplications and the like.
            0x33 => {
                let operation = match (funct3, funct7) {
                    (_, 0) => plain,
                    (0 | 5, 0x20) => plain.other(),
                    _ => return None,
                };
                Some(Self::Compute(to, operation, first, second))
            }
            // OP-32: ADDW, SUBW, SLLW, SRLW, SRAW.
            0x3b => {
                let operation = match (funct3, funct7) {
                    (0 | 1 | 5, 0) => plain,
                    (0 | 5, 0x20) => plain.other(),
                    _ => return None,
                };
                Some(Self::Compute(to, operation.word(), first, second))
            }
            _ => None,
        }
    }

    /// Decodes C.ADDI, C.ADDIW, C.LI, C.LUI, C.SRLI, C.SRAI, C.ANDI, C.SUB to C.ADDW, C.SLLI, C.MV and C.ADD.
    fn decode_short(bits: u32) -> Option<Self> {
        let whole = Register::from_field(bits >> 7);
        let short = Register::from_field(8 | bits >> 7 & 7);
        let second = Register::from_field(bits >> 2);
        let unsigned = u64::from(bits >> 12 & 1) << 5 | u64::from(bits >> 2 & 0x1f);
        let immediate = ((unsigned << 58).cast_signed() >> 58).cast_unsigned();
        let value = Operand::Value(immediate);
        let amount = Operand::Value(unsigned);
        let compute = |to, operation, operand| Self::Compute(to, operation, to, operand);
        match (bits & 3, bits >> 13) {
            (1, 0) => Some(compute(whole, Operation::ADD, value)),
            // With x0 it is reserved.
            (1, 1) if !whole.is_zero() => Some(compute(whole, Operation::ADD.word(), value)),
            (1, 2) => Some(Self::Value(whole, immediate)),
            // With x2 it is C.ADDI16SP; with nothing to load it is reserved.
            (1, 3) if whole.number() != 2 && immediate != 0 => {
                Some(Self::Value(whole, immediate << 12))
            }
            (1, 4) => {
                let with = Operand::Register(Register::from_field(8 | bits >> 2 & 7));
                let (operation, operand) = match (bits >> 10 & 3, bits >> 12 & 1, bits >> 5 & 3) {
                    (0, ..) => (Operation::SHIFT_RIGHT, amount),
                    (1, ..) => (Operation::SHIFT_RIGHT.other(), amount),
                    (2, ..) => (Operation::AND, value),
                    (_, 0, 0) => (Operation::ADD.other(), with),
                    (_, 0, 1) => (Operation::XOR, with),
                    (_, 0, 2) => (Operation::OR, with),
                    (_, 0, _) => (Operation::AND, with),
                    (_, _, 0) => (Operation::ADD.other().word(), with),
                    (_, _, 1) => (Operation::ADD.word(), with),
                    _ => return None,
                };
                Some(compute(short, operation, operand))
            }
            (2, 0) => Some(compute(whole, Operation::SHIFT_LEFT, amount)),
            // Without a second register they are C.JR, C.EBREAK and C.JALR.
            (2, 4) if !second.is_zero() => {
                let from = match bits >> 12 & 1 {
                    0 => Register::from_field(0),
                    _ => whole,
                };
                let operand = Operand::Register(second);
                Some(Self::Compute(whole, Operation::ADD, from, operand))
            }
            _ => None,
        }
    }
}
