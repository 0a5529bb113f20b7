//! From a 32-bit encoding to the decoded form.
//!
//! Encodings are those of the RISC-V instruction set manual, volume I, "RV32/64G Instruction Set
//! Listings", and of the chapters of the extensions that DESIGN names for the machine. What is
//! legal *here and now* (privilege, FS, fields of envcfg) is decided at execution.

use super::may_be::{is_may_be_operation, is_shadow_stack};
use super::{DISCARD, Instruction, Operation, decode_float};

const fn rd(raw: u32) -> u8 {
    match ((raw >> 7) & 31) as u8 {
        0 => DISCARD,
        register => register,
    }
}

const fn rs1(raw: u32) -> u8 {
    ((raw >> 15) & 31) as u8
}

const fn rs2(raw: u32) -> u8 {
    ((raw >> 20) & 31) as u8
}

const fn funct3(raw: u32) -> u32 {
    (raw >> 12) & 7
}

const fn funct7(raw: u32) -> u32 {
    raw >> 25
}

/// The I-type immediate.
const fn immediate_i(raw: u32) -> i32 {
    raw as i32 >> 20
}

/// The S-type immediate.
const fn immediate_s(raw: u32) -> i32 {
    ((raw as i32 >> 25) << 5) | ((raw >> 7) & 31) as i32
}

/// The B-type immediate.
const fn immediate_b(raw: u32) -> i32 {
    ((raw as i32 >> 31) << 12)
        | (((raw >> 7) & 1) << 11) as i32
        | (((raw >> 25) & 0x3f) << 5) as i32
        | (((raw >> 8) & 15) << 1) as i32
}

/// The U-type immediate.
const fn immediate_u(raw: u32) -> i32 {
    (raw & 0xffff_f000) as i32
}

/// The J-type immediate.
const fn immediate_j(raw: u32) -> i32 {
    ((raw as i32 >> 31) << 20)
        | (raw & 0x000f_f000) as i32
        | (((raw >> 20) & 1) << 11) as i32
        | (((raw >> 21) & 0x3ff) << 1) as i32
}

/// Decodes a 32-bit encoding that stood in memory in `length` bytes (2 if it was compressed).
///
/// `count`, `offset` and `link` are left 0, displacements relative to the instruction itself.
#[must_use]
pub fn decode(raw: u32, length: u8) -> Instruction {
    let mut instruction = Instruction {
        rd: rd(raw),
        rs1: rs1(raw),
        rs2: rs2(raw),
        immediate: raw.cast_signed(),
        ..Instruction::bare(Operation::Illegal)
    };
    let operation = match raw & 0x7f {
        0x03 => load(raw, &mut instruction),
        0x07 | 0x27 if is_vector_width(raw) => Some(Operation::VectorTransfer),
        0x07 => float_load(raw, &mut instruction),
        0x0f => fence(raw),
        0x13 => operate_immediate(raw, &mut instruction),
        0x17 => {
            instruction.immediate = immediate_u(raw);
            Some(Operation::Auipc)
        }
        0x1b => operate_immediate_word(raw, &mut instruction),
        0x23 => store(raw, &mut instruction),
        0x27 => float_store(raw, &mut instruction),
        0x2f => atomic(raw),
        0x33 => operate(raw),
        0x37 => {
            instruction.immediate = immediate_u(raw);
            Some(Operation::LoadImmediate)
        }
        0x3b => operate_word(raw),
        0x43 | 0x47 | 0x4b | 0x4f | 0x53 => decode_float(raw).map(|float| {
            instruction.immediate = float.pack();
            // A discarded integer result goes to DISCARD; floating-point f0 is a register.
            if !float.writes_integer() {
                instruction.rd = ((raw >> 7) & 31) as u8;
            }
            Operation::Float
        }),
        0x57 | 0x77 => Some(Operation::Vector),
        0x63 => branch(raw, &mut instruction),
        0x67 if funct3(raw) == 0 => {
            instruction.immediate = immediate_i(raw);
            instruction.rs2 = length;
            Some(Operation::Jalr)
        }
        0x6f => {
            instruction.immediate = immediate_j(raw);
            instruction.rs2 = length;
            Some(if instruction.rd == DISCARD {
                Operation::Jump
            } else {
                Operation::Jal
            })
        }
        0x73 => system(raw, &mut instruction),
        _ => None,
    };
    instruction.operation = operation.unwrap_or(Operation::Illegal);
    simplify(&mut instruction);
    instruction
}

/// Replaces common special cases by cheaper operations with the same effect.
fn simplify(instruction: &mut Instruction) {
    use Operation::{
        Add, Addi, Beq, Beqz, Bne, Bnez, LoadImmediate, Move, Nop, Or, Ori, Slli, Srli, Xori,
    };
    match instruction.operation {
        Addi | Slli | Srli | Xori | Ori | Add | Or if instruction.rd == DISCARD => {
            instruction.operation = Nop;
        }
        Addi if instruction.rs1 == 0 => instruction.operation = LoadImmediate,
        Addi if instruction.immediate == 0 => instruction.operation = Move,
        Add if instruction.rs1 == 0 => {
            instruction.rs1 = instruction.rs2;
            instruction.operation = Move;
        }
        Add if instruction.rs2 == 0 => instruction.operation = Move,
        Beq if instruction.rs2 == 0 => instruction.operation = Beqz,
        Bne if instruction.rs2 == 0 => instruction.operation = Bnez,
        _ => {}
    }
}

fn load(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = immediate_i(raw);
    Some(match funct3(raw) {
        0 => Operation::Lb,
        1 => Operation::Lh,
        2 => Operation::Lw,
        3 => Operation::Ld,
        4 => Operation::Lbu,
        5 => Operation::Lhu,
        6 => Operation::Lwu,
        _ => return refuse(raw, instruction),
    })
}

/// Restores the raw encoding for the trap value and refuses.
fn refuse(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = raw.cast_signed();
    None
}

fn float_load(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = immediate_i(raw);
    instruction.rd = ((raw >> 7) & 31) as u8;
    match funct3(raw) {
        1 => Some(Operation::Flh),
        2 => Some(Operation::Flw),
        3 => Some(Operation::Fld),
        _ => refuse(raw, instruction),
    }
}

fn store(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = immediate_s(raw);
    Some(match funct3(raw) {
        0 => Operation::Sb,
        1 => Operation::Sh,
        2 => Operation::Sw,
        3 => Operation::Sd,
        _ => return refuse(raw, instruction),
    })
}

/// Tests whether the width of a LOAD-FP or STORE-FP is one of vector elements: 8, 16, 32 or 64 bits.
const fn is_vector_width(raw: u32) -> bool {
    matches!(funct3(raw), 0 | 5..=7)
}

fn float_store(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = immediate_s(raw);
    match funct3(raw) {
        1 => Some(Operation::Fsh),
        2 => Some(Operation::Fsw),
        3 => Some(Operation::Fsd),
        _ => refuse(raw, instruction),
    }
}

fn fence(raw: u32) -> Option<Operation> {
    match funct3(raw) {
        // FENCE with W in the predecessor set, nothing else and rd = rs1 = x0 is PAUSE.
        0 if raw == riscv::instruction::PAUSE => Some(Operation::Pause),
        0 => Some(Operation::Fence),
        1 => Some(Operation::FenceI),
        2 if (raw >> 7) & 31 == 0 && raw >> 20 <= 2 => Some(Operation::CacheBlock),
        2 if (raw >> 7) & 31 == 0 && raw >> 20 == 4 => Some(Operation::CacheBlock),
        _ => None,
    }
}

fn operate_immediate(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    use Operation::{
        Addi, Andi, Bclri, Bexti, Binvi, Brev8, Bseti, Clz, Cpop, Ctz, OrcB, Ori, Rev8, Rori,
        SextB, SextH, Slli, Slti, Sltiu, Srai, Srli, Xori,
    };
    let shift = ((raw >> 20) & 63).cast_signed();
    let upper = raw >> 26;
    let (operation, immediate) = match (funct3(raw), upper) {
        (0, _) => (Addi, immediate_i(raw)),
        (2, _) => (Slti, immediate_i(raw)),
        (3, _) => (Sltiu, immediate_i(raw)),
        (4, _) => (Xori, immediate_i(raw)),
        (6, _) => (Ori, immediate_i(raw)),
        (7, _) => (Andi, immediate_i(raw)),
        (1, 0x00) => (Slli, shift),
        (1, 0x0a) => (Bseti, shift),
        (1, 0x12) => (Bclri, shift),
        (1, 0x1a) => (Binvi, shift),
        (1, 0x18) => match raw >> 20 {
            0x600 => (Clz, 0),
            0x601 => (Ctz, 0),
            0x602 => (Cpop, 0),
            0x604 => (SextB, 0),
            0x605 => (SextH, 0),
            _ => return None,
        },
        (5, 0x00) => (Srli, shift),
        (5, 0x10) => (Srai, shift),
        (5, 0x12) => (Bexti, shift),
        (5, 0x18) => (Rori, shift),
        (5, 0x0a) if raw >> 20 == 0x287 => (OrcB, 0),
        (5, 0x1a) if raw >> 20 == 0x687 => (Brev8, 0),
        (5, 0x1a) if raw >> 20 == 0x6b8 => (Rev8, 0),
        _ => return None,
    };
    instruction.immediate = immediate;
    Some(operation)
}

fn operate_immediate_word(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    use Operation::{Addiw, Clzw, Cpopw, Ctzw, Roriw, SlliUw, Slliw, Sraiw, Srliw};
    let shift = ((raw >> 20) & 31).cast_signed();
    let (operation, immediate) = match (funct3(raw), funct7(raw)) {
        (0, _) => (Addiw, immediate_i(raw)),
        (1, 0x00) => (Slliw, shift),
        (1, 0x04 | 0x05) => (SlliUw, ((raw >> 20) & 63).cast_signed()),
        (1, 0x30) => match raw >> 20 {
            0x600 => (Clzw, 0),
            0x601 => (Ctzw, 0),
            0x602 => (Cpopw, 0),
            _ => return None,
        },
        (5, 0x00) => (Srliw, shift),
        (5, 0x20) => (Sraiw, shift),
        (5, 0x30) => (Roriw, shift),
        _ => return None,
    };
    instruction.immediate = immediate;
    Some(operation)
}

fn operate(raw: u32) -> Option<Operation> {
    use Operation::*;
    Some(match (funct7(raw), funct3(raw)) {
        (0x00, 0) => Add,
        (0x20, 0) => Sub,
        (0x00, 1) => Sll,
        (0x00, 2) => Slt,
        (0x00, 3) => Sltu,
        (0x00, 4) => Xor,
        (0x00, 5) => Srl,
        (0x20, 5) => Sra,
        (0x00, 6) => Or,
        (0x00, 7) => And,
        (0x01, 0) => Mul,
        (0x01, 1) => Mulh,
        (0x01, 2) => Mulhsu,
        (0x01, 3) => Mulhu,
        (0x01, 4) => Div,
        (0x01, 5) => Divu,
        (0x01, 6) => Rem,
        (0x01, 7) => Remu,
        (0x04, 4) => Pack,
        (0x04, 7) => Packh,
        (0x05, 1) => Clmul,
        (0x05, 2) => Clmulr,
        (0x05, 3) => Clmulh,
        (0x05, 4) => Min,
        (0x05, 5) => Minu,
        (0x05, 6) => Max,
        (0x05, 7) => Maxu,
        (0x07, 5) => CzeroEqz,
        (0x07, 7) => CzeroNez,
        (0x10, 2) => Sh1add,
        (0x10, 4) => Sh2add,
        (0x10, 6) => Sh3add,
        (0x14, 1) => Bset,
        (0x14, 2) => Xperm4,
        (0x14, 4) => Xperm8,
        (0x20, 4) => Xnor,
        (0x20, 6) => Orn,
        (0x20, 7) => Andn,
        (0x24, 1) => Bclr,
        (0x24, 5) => Bext,
        (0x30, 1) => Rol,
        (0x30, 5) => Ror,
        (0x34, 1) => Binv,
        _ => return None,
    })
}

fn operate_word(raw: u32) -> Option<Operation> {
    use Operation::*;
    Some(match (funct7(raw), funct3(raw)) {
        (0x00, 0) => Addw,
        (0x20, 0) => Subw,
        (0x00, 1) => Sllw,
        (0x00, 5) => Srlw,
        (0x20, 5) => Sraw,
        (0x01, 0) => Mulw,
        (0x01, 4) => Divw,
        (0x01, 5) => Divuw,
        (0x01, 6) => Remw,
        (0x01, 7) => Remuw,
        (0x04, 0) => AddUw,
        (0x04, 4) if rs2(raw) == 0 => ZextH,
        (0x04, 4) => Packw,
        (0x10, 2) => Sh1addUw,
        (0x10, 4) => Sh2addUw,
        (0x10, 6) => Sh3addUw,
        (0x30, 1) => Rolw,
        (0x30, 5) => Rorw,
        _ => return None,
    })
}

/// "A", "Zacas" and "Zabha": LR and SC have no narrow forms; of 16 bytes there is AMOCAS alone, whose
/// register pairs begin with even registers.
fn atomic(raw: u32) -> Option<Operation> {
    let width = funct3(raw);
    Some(match (raw >> 27, width) {
        (0x09, 2 | 3) => Operation::ShadowSwap,
        (0x02, 2) if rs2(raw) == 0 => Operation::LrW,
        (0x02, 3) if rs2(raw) == 0 => Operation::LrD,
        (0x03, 2) => Operation::ScW,
        (0x03, 3) => Operation::ScD,
        (0x05, 0..=3) => Operation::CompareAndSwap,
        (0x05, 4) if rs2(raw).is_multiple_of(2) && (raw >> 7).is_multiple_of(2) => {
            Operation::CompareAndSwap
        }
        (0x00 | 0x01 | 0x04 | 0x08 | 0x0c | 0x10 | 0x14 | 0x18 | 0x1c, 0..=3) => match width {
            2 => Operation::AmoW,
            3 => Operation::AmoD,
            _ => Operation::AmoNarrow,
        },
        _ => return None,
    })
}

fn branch(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    instruction.immediate = immediate_b(raw);
    Some(match funct3(raw) {
        0 => Operation::Beq,
        1 => Operation::Bne,
        4 => Operation::Blt,
        5 => Operation::Bge,
        6 => Operation::Bltu,
        7 => Operation::Bgeu,
        _ => return refuse(raw, instruction),
    })
}

fn system(raw: u32, instruction: &mut Instruction) -> Option<Operation> {
    match funct3(raw) {
        4 if is_shadow_stack(raw) => Some(Operation::ShadowStack),
        4 if is_may_be_operation(raw) => {
            instruction.immediate = 0;
            Some(if instruction.rd == DISCARD {
                Operation::Nop
            } else {
                Operation::LoadImmediate
            })
        }
        // Which of the encodings under funct3 0 and 4 exist is decided where they are executed:
        // none of them is frequent.
        0 | 4 => Some(Operation::System),
        _ => Some(Operation::Csr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_are_sign_extended() {
        assert_eq!(decode(0xfff0_0513, 4).immediate, -1); // addi a0, x0, -1
        assert_eq!(decode(0xfe00_0ee3, 4).immediate, -4); // beq x0, x0, .-4
        assert_eq!(decode(0xffdf_f06f, 4).immediate, -4); // jal x0, .-4
        assert_eq!(decode(0xfe11_3c23, 4).immediate, -8); // sd ra, -8(sp)
    }

    #[test]
    fn unknown_encodings_keep_their_bits() {
        for raw in [
            0xffff_ffff_u32,
            0x0000_707f,
            0x0000_7003,
            0x0000_6023,
            0x0000_2063,
        ] {
            let instruction = decode(raw, 4);
            assert_eq!(instruction.operation, Operation::Illegal, "{raw:#x}");
            assert_eq!(instruction.immediate, raw.cast_signed());
        }
    }

    #[test]
    fn a_write_to_x0_is_discarded() {
        assert_eq!(decode(0x0000_b003, 4).rd, DISCARD); // ld x0, 0(ra)
        assert_eq!(decode(0x0000_0013, 4).operation, Operation::Nop);
    }

    #[test]
    fn hints_compute_nothing() {
        for raw in [
            0x0020_0033_u32, // ntl.p1: add x0, x0, x2
            0x0050_0033,     // ntl.all: add x0, x0, x5
            0x0205_6013,     // prefetch.i 32(a0): ori x0, a0, 0x20
            0x0215_6013,     // prefetch.r 32(a0)
            0x0235_6013,     // prefetch.w 32(a0)
        ] {
            assert_eq!(decode(raw, 4).operation, Operation::Nop, "{raw:#x}");
        }
    }

    #[test]
    fn atomic_widths_follow_zabha_and_zacas() {
        let amo = |funct5: u32, rs2: u32, width: u32, rd: u32| {
            decode(
                funct5 << 27 | rs2 << 20 | 11 << 15 | width << 12 | rd << 7 | 0x2f,
                4,
            )
            .operation
        };
        assert_eq!(amo(0x00, 12, 0, 10), Operation::AmoNarrow);
        assert_eq!(amo(0x1c, 12, 1, 10), Operation::AmoNarrow);
        assert_eq!(amo(0x05, 12, 0, 10), Operation::CompareAndSwap);
        assert_eq!(amo(0x05, 12, 4, 10), Operation::CompareAndSwap);
        // LR and SC of half-words, AMOADD of 16 bytes, odd pairs.
        for (funct5, rs2, width, rd) in [
            (0x02, 0, 1, 10),
            (0x03, 12, 1, 10),
            (0x00, 12, 4, 10),
            (0x05, 12, 4, 11),
            (0x05, 13, 4, 10),
            (0x05, 12, 5, 10),
        ] {
            assert_eq!(amo(funct5, rs2, width, rd), Operation::Illegal);
        }
    }
}
