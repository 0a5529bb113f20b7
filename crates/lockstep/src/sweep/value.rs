//! Which bits CSRs keep of what is written: all ones, then zero, in M-mode.
//!
//! Of each register only those bits have a rule on which the specifications leave no choice, for harts with the extensions of
//! these programs. The chapters are those that [`super::csr`] names.

use super::Mode;
use super::probe::{constant, finish, settings};
use crate::assembler::{Code, csrr, csrw, sd};
use crate::csr as number;
use crate::layout::{RAM, SLOTS};

/// A register's bits after all ones were written, and after zero.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The register.
    pub number: u16,
    /// Bits that are one after all ones.
    pub set: u64,
    /// Bits that are zero even then.
    pub clear: u64,
    /// Bits that are one after zero: all others are zero.
    pub always: u64,
    /// Bits of which nothing is said after zero.
    pub open: u64,
}

const ALL: u64 = u64::MAX;
/// UXL, SXL or VSXL is 2: 64 bits.
const WIDTH: u64 = 2 << 32;

const fn rule(number: u16, set: u64, clear: u64) -> Rule {
    Rule {
        number,
        set,
        clear,
        always: 0,
        open: 0,
    }
}

/// A register that keeps these bits and no others.
const fn exact(number: u16, bits: u64) -> Rule {
    rule(number, bits, !bits)
}

/// The rules.
pub const RULES: [Rule; 45] = [
    exact(number::FFLAGS, 0x1f),
    // Aligned to eight bytes.
    exact(number::SSP, !7),
    exact(number::FRM, 7),
    exact(number::FCSR, 0xff),
    exact(number::MCOUNTEREN, 0xffff_ffff),
    exact(number::HCOUNTEREN, 0xffff_ffff),
    exact(number::SCOUNTEREN, 0xffff_ffff),
    exact(number::MSCRATCH, ALL),
    exact(number::SSCRATCH, ALL),
    exact(number::VSSCRATCH, ALL),
    // Instructions may begin at even addresses.
    exact(number::MEPC, !1),
    exact(number::SEPC, !1),
    exact(number::VSEPC, !1),
    exact(number::HTIMEDELTA, ALL),
    exact(number::STIMECMP, ALL),
    exact(number::VSTIMECMP, ALL),
    // What VS-mode cannot raise, or HS-mode must handle: calls from HS, VS and M, guest-page faults, virtual instructions.
    rule(number::HEDELEG, 0xc_b1fe, 0xf0_0e00),
    // Only VS-level interrupts are delegated, of those that the privileged specification names.
    rule(number::HIDELEG, 0x444, 0x1222),
    Rule {
        always: 0x1444,
        ..rule(number::MIDELEG, 0x1666, 0)
    },
    rule(number::MIE, 0x3eee, 0x111),
    // MEIP, MTIP and MSIP are wires. STIP is stimecmp's with STCE.
    rule(number::MIP, 0x202, 0x888),
    rule(number::HVIP, 0x444, 0x1aaa),
    rule(number::HIE, 0x1444, 0xaaa),
    // Nothing is delegated.
    rule(number::SIE, 0, 0xffff),
    rule(number::VSIE, 0, 0xffff),
    // SE0, ENVCFG, CSRIND, AIA, IMSIC.
    rule(number::MSTATEEN0, 1 << 63 | 1 << 62 | 7 << 58, 0),
    rule(number::HSTATEEN0, 1 << 63 | 1 << 62 | 7 << 58, 0),
    // STCE, PBMTE, ADUE, CDE, DTE, PMM, CBZE, CBCFE, CBIE, SSE, LPE, FIOM.
    exact(number::MENVCFG, 7 << 61 | 3 << 59 | 3 << 32 | 0xfd),
    // ADUE and DTE are read-only zero where those of menvcfg are. There is no CDE.
    rule(number::HENVCFG, 3 << 62 | 3 << 32 | 0xfd, 1 << 61 | 3 << 59),
    exact(number::SENVCFG, 3 << 32 | 0xfd),
    // PMM, MLPE, SSEED, USEED; not Smepmp.
    rule(number::MSECCFG, 3 << 32 | 7 << 8, 0x7),
    // LCOFI.
    rule(number::MVIEN, 1 << 13, 0),
    // MINH, SINH, UINH, VSINH, VUINH; no OF.
    rule(number::MCYCLECFG, 0x1f << 58, 1 << 63),
    rule(number::MINSTRETCFG, 0x1f << 58, 1 << 63),
    // Type 15: disabled. Only a debugger sets dmode.
    Rule {
        always: 15 << 60,
        ..rule(number::TDATA1, 15 << 60, 1 << 59)
    },
    // A mode that does not exist: the write has no effect.
    exact(number::SATP, 0),
    // The root table is 16 KiB; two bits are reserved.
    rule(number::HGATP, 0, 3 << 58 | 3),
    // Seven guest interrupt files.
    exact(number::HGEIE, 0xfe),
    rule(number::HVICTL, 1 << 30, !(1 << 30 | 0xfff << 16 | 0x3ff)),
    // 56 bits of addresses.
    rule(number::PMPADDR7, 0, 0x3ff << 54),
    // HUPMM, VTSR, VTW, VTVM, HU, SPVP, SPV, GVA; VSXL; VGEIN and VSBE are the hart's choice.
    Rule {
        always: WIDTH,
        ..rule(
            number::HSTATUS,
            3 << 48 | WIDTH | 7 << 20 | 0x3c0,
            !(3 << 48 | 3 << 32 | 7 << 20 | 0x3f << 12 | 0x3e0) | 1 << 32,
        )
    },
    // SD, SPELP, MXR, SUM, FS, SPP, SPIE, SIE; UXL. SDT is read-only zero where DTE is.
    Rule {
        always: WIDTH,
        ..rule(
            number::SSTATUS,
            1 << 63 | WIDTH | 1 << 23 | 3 << 18 | 3 << 13 | 0x122,
            1 << 32 | 1 << 24 | 1 << 17 | 0x189d,
        )
    },
    Rule {
        always: WIDTH,
        ..rule(
            number::VSSTATUS,
            1 << 63 | WIDTH | 1 << 23 | 3 << 18 | 3 << 13 | 0x122,
            1 << 32 | 1 << 24 | 1 << 17 | 0x189d,
        )
    },
    // MPELP, MPV, GVA, SPELP, TSR, TW, TVM, MXR, SUM, MPRV, FS, MPP, SPP, MPIE, SPIE, MIE, SIE; SXL and UXL.
    Rule {
        always: 0xa << 32,
        ..rule(
            number::MSTATUS,
            1 << 63 | 1 << 41 | 3 << 38 | 0xa << 32 | 1 << 23 | 0x3f << 17 | 3 << 13 | 0x19aa,
            1 << 42 | 5 << 32 | 1 << 24 | 0x15,
        )
    },
    // Traps to M-mode are aligned to four bytes; whatever the mode, a vector at zero is one.
    Rule {
        open: ALL,
        ..rule(number::MTVEC, 0, 2)
    },
];

const A: u32 = 2;
const B: u32 = 3;
const C: u32 = 4;
const RESULT: u32 = 7;

/// An image that writes to each register of [`RULES`] and notes what it holds then.
#[must_use]
pub fn image() -> Vec<u8> {
    let mut code = Code::default();
    let (trap, end) = (code.label(), code.label());
    code.address(A, trap);
    code.emit(csrw(number::MTVEC, A));
    for (csr, value) in settings(Mode::Hypervisor) {
        // No interrupt is delegated or waits.
        if !matches!(csr, number::MIDELEG | number::MIP | number::MIE) {
            constant(&mut code, A, value);
            code.emit(csrw(csr, A));
        }
    }
    constant(&mut code, A, 0);
    code.emit(csrw(number::MIDELEG, A));
    constant(&mut code, RESULT, SLOTS);
    for rule in RULES {
        code.emit(csrr(A, rule.number));
        for value in [ALL, 0] {
            constant(&mut code, B, value);
            code.emit(csrw(rule.number, B));
            code.emit(csrr(C, rule.number));
            code.emit(sd(C, RESULT, 0));
            code.emit(crate::assembler::addi(RESULT, RESULT, 8));
        }
        code.emit(csrw(rule.number, A));
    }
    code.jump(end);
    // An access that traps leaves the rest of the results as they are.
    code.place(trap);
    code.place(end);
    finish(&mut code);
    let code = code.finish();
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.resize((SLOTS - RAM) as usize, 0);
    image.resize(image.len() + RULES.len() * 16, 0xee);
    image
}

/// Mistakes in the results of a run of [`image`], from the first slot on.
#[must_use]
pub fn complaints(left: &[u8]) -> Vec<String> {
    let word = |index: usize| {
        let bytes = left.get(index * 8..index * 8 + 8)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    };
    let mut found = Vec::new();
    for (index, rule) in RULES.iter().enumerate() {
        let name = number::name(rule.number);
        let (Some(ones), Some(zero)) = (word(index * 2), word(index * 2 + 1)) else {
            found.push(format!("{name}: no result"));
            continue;
        };
        let (missing, more) = (rule.set & !ones, rule.clear & ones);
        if missing | more != 0 {
            found.push(format!(
                "{name}: {ones:#x} after ones, without {missing:#x} and with {more:#x}"
            ));
        }
        if (zero ^ rule.always) & !rule.open != 0 {
            let always = rule.always;
            found.push(format!("{name}: {zero:#x} after zero, not {always:#x}"));
        }
    }
    found
}
