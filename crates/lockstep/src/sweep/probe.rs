//! The program that tries instructions.
//!
//! For each of them it writes the instruction to one place, gives every register the same value, enters the mode, and notes
//! the exception with which M-mode gets control back. Behind the place and around it are ECALLs. Memory protection admits
//! the modes below M to that code and to some data, so that a jump or an access elsewhere ends in a trap too.

use crate::assembler::{Code, ECALL, Label, MRET, addi, csrr, csrw, ld, s, sd};
use crate::csr as number;
use crate::layout::{RAM, SLOTS, TOHOST};

/// A privilege mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// M-mode.
    Machine,
    /// HS-mode.
    Hypervisor,
    /// U-mode.
    User,
    /// VS-mode.
    VirtualSupervisor,
    /// VU-mode.
    VirtualUser,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Machine,
        Self::Hypervisor,
        Self::User,
        Self::VirtualSupervisor,
        Self::VirtualUser,
    ];

    /// mstatus.MPP and MPV.
    const fn entry(self) -> u64 {
        match self {
            Self::Machine => 3 << 11,
            Self::Hypervisor => 1 << 11,
            Self::User => 0,
            Self::VirtualSupervisor => 1 << 39 | 1 << 11,
            Self::VirtualUser => 1 << 39,
        }
    }
}

/// Outcome of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It exists: it was executed, or raised an exception that says so.
    Legal,
    /// Illegal instruction.
    Illegal,
    /// Virtual instruction.
    Virtual,
}

/// Where the instruction is put: in the middle of the pages that may be executed.
const PLACE: u64 = RAM + 0x1_1000;
/// The pages of ECALLs around it, naturally aligned.
const AROUND: u64 = RAM + 0x1_0000;
const AROUND_SIZE: u64 = 0x2000;
/// Value of every register but x0 and [`ZERO`]: the middle of the data.
const DATA: u64 = RAM + 0x1_6000;
const DATA_BASE: u64 = RAM + 0x1_4000;
const DATA_SIZE: u64 = 0x4000;
/// Address of the program's own state.
const STATE: u64 = RAM + 0xc000;
/// Offsets in it.
const NEXT: i32 = 0;
const OUTCOME: i32 = 8;
const END: i32 = 16;
const STATUS: i32 = 24;
const REGISTERS: i32 = 32;
/// mcause of an exception elsewhere than at the place, as it is noted.
const ELSEWHERE: u8 = 0xff;

// Registers of the program.
const KEPT: u32 = 1;
const A: u32 = 2;
const B: u32 = 3;
const C: u32 = 4;
const D: u32 = 5;

/// A register of the instructions that are tried which holds zero, unlike all others but x0.
pub const ZERO: u32 = 6;

const FENCE_I: u32 = 0x100f;

/// FS Dirty.
const FLOAT_ON: u64 = 3 << 13;
/// VS Dirty.
const VECTORS_ON: u64 = 3 << 9;

/// CSRs at the start, with everything open to the modes below.
pub(super) fn settings(mode: Mode) -> Vec<(u16, u64)> {
    const ALL: u64 = u64::MAX;
    let napot = |base: u64, size: u64| base >> 2 | (size / 8 - 1);
    let mut settings = vec![
        (number::MIE, 0),
        (number::PMPADDR0, napot(AROUND, AROUND_SIZE)),
        (number::PMPADDR1, napot(DATA_BASE, DATA_SIZE)),
        // Naturally aligned ranges: R and X; R and W.
        (number::PMPCFG0, 0x1b1d),
        (number::MEDELEG, 0),
        (number::MIDELEG, 0),
        // SSEED, USEED.
        (number::MSECCFG, 3 << 8),
        (number::MCOUNTEREN, 0xffff_ffff),
        // STCE, PBMTE, CDE, CBZE, CBCFE, CBIE = 3, SSE.
        (number::MENVCFG, 1 << 63 | 1 << 62 | 1 << 60 | 0xf8),
        (number::MSTATEEN0, ALL),
        (number::MSTATEEN0 + 1, ALL),
        (number::MSTATEEN0 + 2, ALL),
        (number::MSTATEEN0 + 3, ALL),
        (number::HCOUNTEREN, 0xffff_ffff),
        (number::HENVCFG, 1 << 63 | 1 << 62 | 0xf8),
        (number::HSTATEEN0, ALL),
        (number::HSTATEEN0 + 1, ALL),
        (number::HSTATEEN0 + 2, ALL),
        (number::HSTATEEN0 + 3, ALL),
        (number::SSTATEEN0, ALL),
        (number::SSTATEEN0 + 1, ALL),
        (number::SSTATEEN0 + 2, ALL),
        (number::SSTATEEN0 + 3, ALL),
        (number::SCOUNTEREN, 0xffff_ffff),
        (number::SENVCFG, 0xf8),
        (number::SATP, 0),
        (number::VSATP, 0),
        (number::HGATP, 0),
        (number::HEDELEG, 0),
        (number::STIMECMP, ALL),
        (number::VSTIMECMP, ALL),
        // miselect, siselect and vsiselect name a register that each file has: eidelivery.
        (0x350, 0x70),
        (number::SISELECT, 0x70),
        (0x250, 0x70),
        // Floating point on.
        (number::MSTATUS, FLOAT_ON),
        (number::VSSTATUS, FLOAT_ON),
        (number::FCSR, 0),
        (number::SEPC, PLACE + 0x800),
        (number::VSEPC, PLACE + 0x800),
        // HLV and HSV also from U-mode (HU); the first guest interrupt file (VGEIN).
        (number::HSTATUS, 1 << 12 | 1 << 9),
    ];
    // WFI completes, because an interrupt is pending and enabled, which is not taken in the mode.
    match mode {
        Mode::Hypervisor => settings.extend([
            (number::MIDELEG, 1 << 1),
            (number::MIP, 1 << 1),
            (number::MIE, 1 << 1),
        ]),
        Mode::VirtualSupervisor => settings.extend([
            (number::HIDELEG, 1 << 2),
            (number::HVIP, 1 << 2),
            (number::HIE, 1 << 2),
        ]),
        Mode::Machine => settings.extend([(number::MIP, 1 << 1), (number::MIE, 1 << 1)]),
        _ => {}
    }
    settings
}

/// Loads a constant of 64 bits.
pub(super) fn constant(code: &mut Code, rd: u32, value: u64) {
    code.constant(rd, (value >> 32) as u32);
    code.emit(crate::assembler::i(32, rd, 1, rd, 0x13));
    code.constant(D, value as u32);
    code.emit(crate::assembler::r(0, D, rd, 6, rd, 0x33));
}

fn begin(code: &mut Code, mode: Mode, count: u64, trap: Label, vtype: Option<u32>) {
    code.address(A, trap);
    code.emit(csrw(number::MTVEC, A));
    for (csr, value) in settings(mode) {
        constant(code, A, value);
        code.emit(csrw(csr, A));
    }
    let extensions = FLOAT_ON | vtype.map_or(0, |_| VECTORS_ON);
    if let Some(vtype) = vtype {
        for csr in [number::MSTATUS, number::VSSTATUS] {
            constant(code, A, extensions);
            code.emit(csrw(csr, A));
        }
        // VSETVLI of as many elements as there are.
        code.emit(vtype << 20 | 7 << 12 | A << 7 | 0x57);
    }
    // ECALLs around the place.
    constant(code, A, AROUND);
    constant(code, B, AROUND + AROUND_SIZE);
    constant(code, C, u64::from(ECALL));
    let fill = code.label();
    code.place(fill);
    code.emit(s(0, C, A, 2, 0x23));
    code.emit(addi(A, A, 4));
    code.branch(6, A, B, fill);
    constant(code, KEPT, STATE);
    let outcomes = SLOTS + count * 4;
    for (offset, value) in [
        (NEXT, SLOTS),
        (OUTCOME, outcomes),
        (END, outcomes),
        (STATUS, extensions | mode.entry()),
        (REGISTERS, DATA),
    ] {
        constant(code, A, value);
        code.emit(sd(A, KEPT, offset));
    }
}

/// Ends the run.
pub(super) fn finish(code: &mut Code) {
    constant(code, A, TOHOST);
    code.emit(addi(B, 0, 1));
    code.emit(sd(B, A, 0));
    // Where nobody listens to tohost there is a test finisher.
    let again = code.label();
    constant(code, A, 0x10_0000);
    constant(code, B, 0x5555);
    code.place(again);
    code.emit(s(0, B, A, 2, 0x23));
    code.jump(again);
}

/// An image that tries instructions in a mode. The outcomes lie behind them.
#[must_use]
pub fn image(mode: Mode, words: &[u32]) -> Vec<u8> {
    image_with(mode, words, None)
}

/// As [`image`], with vectors on, this vtype and as many elements as it has.
#[must_use]
pub fn vector_image(mode: Mode, words: &[u32], vtype: u32) -> Vec<u8> {
    image_with(mode, words, Some(vtype))
}

fn image_with(mode: Mode, words: &[u32], vtype: Option<u32>) -> Vec<u8> {
    let count = words.len() as u64;
    let mut code = Code::default();
    let (next, trap, finish, here) = (code.label(), code.label(), code.label(), code.label());
    begin(&mut code, mode, count, trap, vtype);

    code.place(next);
    code.emit(ld(A, KEPT, NEXT));
    code.emit(ld(B, KEPT, END));
    code.branch(0, A, B, finish);
    code.emit(crate::assembler::i(0, A, 6, C, 0x03));
    code.emit(addi(A, A, 4));
    code.emit(sd(A, KEPT, NEXT));
    constant(&mut code, A, PLACE);
    code.emit(s(0, C, A, 2, 0x23));
    code.emit(FENCE_I);
    code.emit(csrw(number::MEPC, A));
    code.emit(ld(A, KEPT, STATUS));
    code.emit(csrw(number::MSTATUS, A));
    code.emit(csrw(number::MSCRATCH, KEPT));
    code.emit(addi(ZERO, 0, 0));
    // x1 is last: it leads to the others' value.
    for register in (1..32).rev().filter(|&register| register != ZERO) {
        code.emit(ld(register, KEPT, REGISTERS));
    }
    code.emit(MRET);

    code.place(trap);
    code.emit(crate::assembler::csr(1, KEPT, number::MSCRATCH, KEPT));
    code.emit(csrr(A, number::MCAUSE));
    code.emit(csrr(B, number::MEPC));
    constant(&mut code, C, PLACE);
    code.branch(0, B, C, here);
    code.emit(addi(A, 0, i32::from(ELSEWHERE)));
    code.place(here);
    code.emit(ld(B, KEPT, OUTCOME));
    code.emit(s(0, A, B, 0, 0x23));
    code.emit(addi(B, B, 1));
    code.emit(sd(B, KEPT, OUTCOME));
    code.jump(next);

    code.place(finish);
    self::finish(&mut code);

    let code = code.finish();
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(image.len() < (TOHOST - RAM) as usize, "the program fits");
    image.resize((SLOTS - RAM) as usize, 0);
    image.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    image.resize(image.len() + words.len(), 0xfe);
    image
}

/// The outcomes in what a run of [`image`] has left, from the first slot on; `None` where the run ended before.
#[must_use]
pub fn outcomes(left: &[u8], count: usize) -> Option<Vec<Outcome>> {
    let causes = left.get(count * 4..count * 5)?;
    let outcome = |&cause: &u8| match cause {
        0xfe => None,
        2 => Some(Outcome::Illegal),
        22 => Some(Outcome::Virtual),
        _ => Some(Outcome::Legal),
    };
    causes.iter().map(outcome).collect()
}
