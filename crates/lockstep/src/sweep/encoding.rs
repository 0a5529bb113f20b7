//! Which 32-bit encodings are instructions.
//!
//! From "RV32/64G Instruction Set Listings" of the unprivileged specification and the chapters of the extensions; privileged
//! instructions from "Machine-Level ISA", "Supervisor-Level ISA", "Hypervisor Extension" and "Svinval".

use super::{Mode, Outcome};

const fn opcode(word: u32) -> u32 {
    word & 0x7f
}
const fn rd(word: u32) -> u32 {
    word >> 7 & 31
}
const fn funct3(word: u32) -> u32 {
    word >> 12 & 7
}
const fn rs1(word: u32) -> u32 {
    word >> 15 & 31
}
const fn rs2(word: u32) -> u32 {
    word >> 20 & 31
}
const fn funct7(word: u32) -> u32 {
    word >> 25
}

/// A rounding mode that is not reserved; frm holds a valid one.
const fn is_rounding(mode: u32) -> bool {
    !matches!(mode, 5 | 6)
}

/// Base, Zba, Zbb, Zbs, Zbkb.
fn is_immediate_operation(word: u32) -> bool {
    let (upper, all) = (word >> 26, word >> 20);
    match funct3(word) {
        // SLLI, BCLRI, BINVI, BSETI; CLZ, CTZ, CPOP, SEXT.B, SEXT.H.
        1 => {
            matches!(upper, 0b00_0000 | 0b01_0010 | 0b01_1010 | 0b00_1010)
                || matches!(all, 0x600 | 0x601 | 0x602 | 0x604 | 0x605)
        }
        // SRLI, SRAI, RORI, BEXTI; ORC.B, REV8, BREV8.
        5 => {
            matches!(upper, 0b00_0000 | 0b01_0000 | 0b01_1000 | 0b01_0010)
                || matches!(all, 0x287 | 0x6b8 | 0x687)
        }
        _ => true,
    }
}

/// The same on words.
fn is_word_immediate_operation(word: u32) -> bool {
    match funct3(word) {
        0 => true,
        // SLLIW; SLLI.UW with six bits of amount; CLZW, CTZW, CPOPW.
        1 => funct7(word) == 0 || word >> 26 == 0b00_0010 || matches!(word >> 20, 0x600..=0x602),
        // SRLIW, SRAIW, RORIW.
        5 => matches!(funct7(word), 0x00 | 0x20 | 0x30),
        _ => false,
    }
}

/// Base, M, Zba, Zbb, Zbc, Zbkb, Zbkx, Zbs, Zicond.
fn is_operation(word: u32) -> bool {
    let third = funct3(word);
    match funct7(word) {
        0x00 | 0x01 => true,
        // SUB, SRA, XNOR, ORN, ANDN.
        0x20 => matches!(third, 0 | 5 | 4 | 6 | 7),
        // PACK, PACKH.
        0x04 => matches!(third, 4 | 7),
        // CLMUL, CLMULR, CLMULH, MIN, MINU, MAX, MAXU.
        0x05 => third != 0,
        // CZERO.EQZ, CZERO.NEZ.
        0x07 => matches!(third, 5 | 7),
        // SH1ADD, SH2ADD, SH3ADD.
        0x10 => matches!(third, 2 | 4 | 6),
        // BSET, XPERM4, XPERM8.
        0x14 => matches!(third, 1 | 2 | 4),
        // BCLR, BEXT.
        0x24 => matches!(third, 1 | 5),
        // ROL, ROR.
        0x30 => matches!(third, 1 | 5),
        // BINV.
        0x34 => third == 1,
        _ => false,
    }
}

fn is_word_operation(word: u32) -> bool {
    let third = funct3(word);
    match funct7(word) {
        // ADDW, SLLW, SRLW.
        0x00 => matches!(third, 0 | 1 | 5),
        // MULW, DIVW, DIVUW, REMW, REMUW.
        0x01 => matches!(third, 0 | 4 | 5 | 6 | 7),
        // SUBW, SRAW.
        0x20 => matches!(third, 0 | 5),
        // ADD.UW, PACKW (ZEXT.H with rs2 = x0).
        0x04 => matches!(third, 0 | 4),
        0x10 => matches!(third, 2 | 4 | 6),
        // ROLW, RORW.
        0x30 => matches!(third, 1 | 5),
        _ => false,
    }
}

/// A, Zacas, Zabha, Zicfiss.
fn is_atomic(word: u32) -> bool {
    let width = funct3(word);
    match (funct7(word) >> 2, width) {
        // LR.
        (0x02, 2 | 3) => rs2(word) == 0,
        // SC.
        (0x03, 2 | 3) => true,
        // SSAMOSWAP.
        (0x09, 2 | 3) => true,
        // AMOCAS.
        (0x05, 0..=3) => true,
        // AMOCAS.Q: pairs of registers have even numbers.
        (0x05, 4) => rd(word).is_multiple_of(2) && rs2(word).is_multiple_of(2),
        // ADD, SWAP, XOR, OR, AND, MIN, MAX, MINU, MAXU.
        (0x00 | 0x01 | 0x04 | 0x08 | 0x0c | 0x10 | 0x14 | 0x18 | 0x1c, 0..=3) => true,
        _ => false,
    }
}

/// F, D, Zfh, Zfa.
fn is_float_operation(word: u32) -> bool {
    let (format, mode, second) = (funct7(word) & 3, funct3(word), rs2(word));
    if format == 3 {
        return false;
    }
    match funct7(word) >> 2 {
        // FADD, FSUB, FMUL, FDIV.
        0x00..=0x03 => is_rounding(mode),
        // FSGNJ, FSGNJN, FSGNJX.
        0x04 => mode <= 2,
        // FMIN, FMAX, FMINM, FMAXM.
        0x05 => mode <= 3,
        // FCVT between formats (S 0, D 1, H 2); FROUND, FROUNDNX.
        0x08 => is_rounding(mode) && (second <= 2 && second != format || matches!(second, 4 | 5)),
        // FSQRT.
        0x0b => second == 0 && is_rounding(mode),
        // FLE, FLT, FEQ, FLEQ, FLTQ.
        0x14 => matches!(mode, 0 | 1 | 2 | 4 | 5),
        // FCVT to integers; FCVTMOD.W.D, which rounds to zero.
        0x18 => second <= 3 && is_rounding(mode) || second == 8 && format == 1 && mode == 1,
        // FCVT from integers.
        0x1a => second <= 3 && is_rounding(mode),
        // FMV.X, FCLASS.
        0x1c => second == 0 && mode <= 1,
        // FMV from integers; FLI.
        0x1e => second <= 1 && mode == 0,
        _ => false,
    }
}

/// Zifencei, Zicbom, Zicboz; FENCE ignores fields that it does not know.
fn is_memory_order(word: u32) -> bool {
    match funct3(word) {
        0 | 1 => true,
        // CBO.INVAL, CBO.CLEAN, CBO.FLUSH, CBO.ZERO.
        2 => rd(word) == 0 && matches!(word >> 20, 0 | 1 | 2 | 4),
        _ => false,
    }
}

/// Tests whether a mode executes a system instruction: [`Outcome::Illegal`] where there is none.
fn system(word: u32, mode: Mode) -> Outcome {
    use Mode::{Hypervisor, Machine, User, VirtualSupervisor, VirtualUser};
    use Outcome::{Illegal, Legal, Virtual};
    // What HS-mode may and V = 1 may not.
    let hypervisor = match mode {
        Machine | Hypervisor => Legal,
        User => Illegal,
        VirtualSupervisor | VirtualUser => Virtual,
    };
    // What HS-mode may, VS-mode may for itself, and VU-mode may not.
    let supervisor = match mode {
        VirtualSupervisor => Legal,
        _ => hypervisor,
    };
    match word {
        // ECALL, EBREAK, WRS.NTO, WRS.STO.
        0x0000_0073 | 0x0010_0073 | 0x00d0_0073 | 0x01d0_0073 => return Legal,
        // SRET.
        0x1020_0073 => return supervisor,
        // MRET.
        0x3020_0073 => return if mode == Machine { Legal } else { Illegal },
        // WFI, which in U-mode and VU-mode does not complete where it would wait.
        0x1050_0073 => return supervisor,
        // SFENCE.W.INVAL and SFENCE.INVAL.IR.
        0x1800_0073 | 0x1810_0073 => return supervisor,
        _ => {}
    }
    let plain = funct3(word) == 0 && rd(word) == 0;
    match funct7(word) {
        // SFENCE.VMA, SINVAL.VMA.
        0x09 | 0x0b if plain => supervisor,
        // HFENCE.VVMA, HINVAL.VVMA, HFENCE.GVMA, HINVAL.GVMA.
        0x11 | 0x13 | 0x31 | 0x33 if plain => hypervisor,
        _ if funct3(word) == 4 => guest_access(word, mode, hypervisor),
        _ => Illegal,
    }
}

/// HLV, HLVX, HSV and Zimop.
fn guest_access(word: u32, mode: Mode, hypervisor: Outcome) -> Outcome {
    let exists = match funct7(word) {
        // HLV.B, HLV.BU.
        0x30 => rs2(word) <= 1,
        // HLV.H, HLV.HU, HLVX.HU; the same of words.
        0x32 | 0x34 => matches!(rs2(word), 0 | 1 | 3),
        // HLV.D.
        0x36 => rs2(word) == 0,
        // HSV.B, HSV.H, HSV.W, HSV.D.
        0x31 | 0x33 | 0x35 | 0x37 => rd(word) == 0,
        _ => false,
    };
    if exists {
        // hstatus.HU admits U-mode.
        return if mode == Mode::User {
            Outcome::Legal
        } else {
            hypervisor
        };
    }
    // MOP.R.n: 1n00nn0111nn; MOP.RR.n: 1n00nn1 and rs2.
    if word >> 31 == 1 && word >> 28 & 3 == 0 && (word >> 25 & 1 == 1 || word >> 22 & 0xf == 0b0111)
    {
        return Outcome::Legal;
    }
    Outcome::Illegal
}

/// Outcome that the specification gives an encoding; CSR instructions are [`super::csr`]'s.
#[must_use]
pub fn expected(word: u32, mode: Mode) -> Outcome {
    let legal = match opcode(word) {
        // LOAD, STORE.
        0x03 => funct3(word) != 7,
        0x23 => funct3(word) <= 3,
        // LOAD-FP, STORE-FP: halves, words, doubles.
        0x07 | 0x27 => (1..=3).contains(&funct3(word)),
        0x0f => is_memory_order(word),
        0x13 => is_immediate_operation(word),
        0x1b => is_word_immediate_operation(word),
        0x33 => is_operation(word),
        0x3b => is_word_operation(word),
        0x2f => is_atomic(word),
        // AUIPC, LUI, JAL.
        0x17 | 0x37 | 0x6f => true,
        // FMADD, FMSUB, FNMSUB, FNMADD; not of quads.
        0x43 | 0x47 | 0x4b | 0x4f => funct7(word) & 3 != 3 && is_rounding(funct3(word)),
        0x53 => is_float_operation(word),
        0x63 => !matches!(funct3(word), 2 | 3),
        0x67 => funct3(word) == 0,
        0x73 => return system(word, mode),
        _ => false,
    };
    if legal {
        Outcome::Legal
    } else {
        Outcome::Illegal
    }
}

/// Register numbers that go with the other fields, so that x0, even and odd ones occur.
fn mixed(seed: u32) -> (u32, u32) {
    let mixed = seed.wrapping_mul(0x9e37_79b1) >> 16;
    let pick = |bits: u32| if bits & 3 == 0 { 0 } else { bits >> 2 & 31 };
    (pick(mixed), pick(mixed >> 7))
}

/// The encodings of the sweep: for every major opcode every `funct3`; where `funct7` and rs2 say what an instruction is,
/// every one of these with some of the other registers; elsewhere a selection of upper bits.
#[must_use]
pub fn words() -> Vec<u32> {
    let mut words = Vec::new();
    for opcode in (0..32).map(|upper| upper << 2 | 3) {
        for third in 0..8_u32 {
            let whole = matches!(
                opcode,
                0x0f | 0x13 | 0x1b | 0x2f | 0x33 | 0x3b | 0x53 | 0x73
            );
            if opcode == 0x73 && !matches!(third, 0 | 4) {
                continue;
            }
            for upper in 0..0x1000_u32 {
                if !whole && upper % 67 != 1 {
                    continue;
                }
                let (rd, rs1) = mixed(upper << 10 | third << 7 | opcode);
                let pairs: &[(u32, u32)] = if opcode == 0x73 {
                    &[(0, 0), (0, rs1 | 1), (rd | 1, 0), (rd | 2, rs1 | 4)]
                } else {
                    &[(rd, rs1)]
                };
                for (rd, rs1) in pairs {
                    let word = upper << 20 | rs1 << 15 | third << 12 | rd << 7 | opcode;
                    // A jump to itself would never end, and neither would a branch.
                    if !is_endless(word) {
                        words.push(word);
                    }
                }
            }
        }
    }
    words
}

/// Tests whether a jump leads to itself.
const fn is_endless(word: u32) -> bool {
    opcode(word) == 0x6f && word >> 12 == 0
        || opcode(word) == 0x63 && word & 0xfe00_0f80 == 0 && !matches!(funct3(word), 2 | 3)
}

/// Name of an instruction word, for a report.
#[must_use]
pub fn describe(word: u32) -> String {
    format!(
        "{word:#010x} (opcode {:#04x} funct3 {} funct7 {:#04x} rs2 {} rs1 {} rd {})",
        opcode(word),
        funct3(word),
        funct7(word),
        rs2(word),
        rs1(word),
        rd(word)
    )
}
