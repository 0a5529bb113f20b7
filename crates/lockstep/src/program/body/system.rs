//! CSRs, privileged instructions, fences, interrupts, returns, jumps into the void.

use riscv::instruction::{FENCE_I, PAUSE};

use super::item::{Item, TEMPORARY, destination, source};
use crate::assembler::{ECALL, MRET, SRET, addi, auipc, csr as csr_word, jalr, lui};
use crate::csr;
use crate::layout;
use crate::program::setting::Mode;
use crate::program::state::BASES;
use crate::program::state::State;
use crate::random::Random;

/// CSRs that are only read, or whose writes must trap.
const READ: [u16; 37] = [
    csr::SSTATUS,
    csr::SIE,
    csr::STVEC,
    csr::SCOUNTEREN,
    csr::SENVCFG,
    csr::SSCRATCH,
    csr::SEPC,
    csr::SCAUSE,
    csr::STVAL,
    csr::SIP,
    csr::STIMECMP,
    csr::SATP,
    csr::VSSTATUS,
    csr::VSIE,
    csr::VSTVEC,
    csr::VSSCRATCH,
    csr::VSEPC,
    csr::VSCAUSE,
    csr::VSTVAL,
    csr::VSIP,
    csr::VSTIMECMP,
    csr::VSATP,
    csr::HSTATUS,
    csr::HEDELEG,
    csr::HIDELEG,
    csr::HIE,
    csr::HCOUNTEREN,
    csr::HGEIE,
    csr::HENVCFG,
    csr::HTVAL,
    csr::HIP,
    csr::HVIP,
    csr::HGATP,
    csr::MSTATUS,
    csr::MEDELEG,
    csr::MIDELEG,
    csr::MENVCFG,
];
/// CSRs of counters: only the right to read them is tried.
const COUNTERS: [u16; 3] = [csr::CYCLE, csr::TIME, csr::INSTRET];
/// CSRs that hold whatever is written, or its even part.
const FREE: [u16; 10] = [
    csr::SSCRATCH,
    csr::SEPC,
    csr::STVAL,
    csr::VSSCRATCH,
    csr::VSEPC,
    csr::VSTVAL,
    csr::HTVAL,
    csr::MTVAL,
    csr::MTVAL2,
    csr::FCSR,
];
/// CSRs that take five bits.
const SMALL: [u16; 8] = [
    csr::SCAUSE,
    csr::VSCAUSE,
    csr::SCOUNTEREN,
    csr::HCOUNTEREN,
    csr::MCOUNTEREN,
    csr::FRM,
    csr::FFLAGS,
    csr::FCSR,
];
/// Enables and pending bits, below bit 11.
const INTERRUPTS: [u16; 10] = [
    csr::SIE,
    csr::SIP,
    csr::HIE,
    csr::HIP,
    csr::HVIP,
    csr::VSIE,
    csr::VSIP,
    csr::MIE,
    csr::MIP,
    csr::SIE,
];
/// Numbers that nothing has.
const MISSING: [u16; 8] = [0x005, 0x1ff, 0x2ff, 0x5a0, 0x6ff, 0x7ff, 0xcff, 0x9ff];

/// Something of these.
pub fn make(mode: Mode, state: &State, random: &mut Random) -> Item {
    match random.below(40) {
        0..6 => read(random),
        6..10 => write_free(random),
        10..13 => write_small(random),
        13..20 => interrupt(random),
        20..24 => status(mode, random),
        24 => time(random),
        25..28 => fence(random),
        28 => Item::words("ecall", &[ECALL]),
        29 => {
            if random.chance(50) {
                Item::words("ebreak", &[0x0010_0073])
            } else {
                Item::new("c.ebreak", &[0x9002])
            }
        }
        30..33 => wild_jump(random),
        33..36 => leave("sret", csr::SEPC, SRET),
        36 if mode == Mode::Machine => leave("mret", csr::MEPC, MRET),
        36 => Item::words("mret", &[MRET]),
        37 if state.wait_traps => Item::words("wfi", &[super::wait::WAIT]),
        37 => Item::words("pause", &[PAUSE]),
        38 => {
            let (name, word) = random.pick(&[
                ("fence", 0x0ff0_000f),
                ("fence.i", FENCE_I),
                ("fence.tso", 0x8330_000f),
                ("sfence.w.inval", 0x1800_0073),
                ("sfence.inval.ir", 0x1810_0073),
            ]);
            Item::words(name, &[word])
        }
        _ => illegal(random),
    }
}

fn read(random: &mut Random) -> Item {
    let rd = destination(random);
    match random.below(10) {
        0 => {
            let number = random.pick(&COUNTERS);
            let text = format!("csrr x0, {}", csr::name(number));
            Item::words(text, &[csr_word(2, 0, number, 0)])
        }
        1 => {
            let number = random.pick(&MISSING);
            let text = format!("csrr x{rd}, {number:#x}");
            Item::words(text, &[csr_word(2, rd, number, 0)])
        }
        // A write of a read-only register: illegal everywhere.
        2 => {
            let number = random.pick(&[csr::HGEIP, csr::MHARTID, csr::CYCLE]);
            let text = format!("csrw {}, x{rd}", csr::name(number));
            Item::words(text, &[csr_word(1, 0, number, rd)])
        }
        _ => {
            let number = random.pick(&READ);
            let text = format!("csrr x{rd}, {}", csr::name(number));
            Item::words(text, &[csr_word(2, rd, number, 0)])
        }
    }
}

fn write_free(random: &mut Random) -> Item {
    let number = random.pick(&FREE);
    let (rd, rs1) = (destination(random), source(random));
    let funct3 = random.pick(&[1, 1, 2, 3]);
    let name = ["", "csrrw", "csrrs", "csrrc"][funct3 as usize];
    let text = format!("{name} x{rd}, {}, x{rs1}", csr::name(number));
    Item::words(text, &[csr_word(funct3, rd, number, rs1)])
}

fn write_small(random: &mut Random) -> Item {
    let number = random.pick(&SMALL);
    let (rd, value) = (destination(random), random.field(8));
    let funct3 = random.pick(&[5, 6, 7]);
    let name = ["csrrwi", "csrrsi", "csrrci"][funct3 as usize - 5];
    let text = format!("{name} x{rd}, {}, {value}", csr::name(number));
    Item::words(text, &[csr_word(funct3, rd, number, value)])
}

fn interrupt(random: &mut Random) -> Item {
    let number = random.pick(&INTERRUPTS);
    let rd = destination(random);
    let mask = random.pick(&[
        0x666, 0x222, 0x444, 0x002, 0x004, 0x020, 0x040, 0x200, 0x400,
    ]);
    // mie keeps M-mode's timer, which ends what waits for ever.
    let funct3 = match random.pick(&[1, 2, 2, 2, 3]) {
        1 if number == csr::MIE => 2,
        funct3 => funct3,
    };
    let name = ["", "csrrw", "csrrs", "csrrc"][funct3 as usize];
    let words = [
        addi(TEMPORARY, 0, mask),
        csr_word(funct3, rd, number, TEMPORARY),
    ];
    let text = format!("{name} x{rd}, {}, {mask:#x}", csr::name(number));
    Item::words(text, &words)
}

/// Sets or clears bits of a status register.
fn status(mode: Mode, random: &mut Random) -> Item {
    let number = random.pick(&[
        csr::SSTATUS,
        csr::SSTATUS,
        csr::VSSTATUS,
        csr::MSTATUS,
        csr::HSTATUS,
    ]);
    let rd = destination(random);
    let bit = match number {
        csr::HSTATUS => random.pick(&[7, 8, 9]),
        csr::MSTATUS if mode == Mode::Machine => {
            random.pick(&[1, 3, 5, 8, 11, 12, 13, 14, 17, 18, 19])
        }
        _ => random.pick(&[1, 5, 8, 13, 14, 18, 19]),
    };
    let funct3 = random.pick(&[2, 3]);
    let name = ["csrrs", "csrrc"][funct3 as usize - 2];
    let operand = if bit < 11 {
        addi(TEMPORARY, 0, 1 << bit)
    } else if bit == 11 {
        // 0x800 does not fit an ADDI: 0x1800 as a LUI and an ADDI does not fit the place.
        addi(TEMPORARY, 0, 0x400)
    } else {
        lui(TEMPORARY, 1 << (bit - 12))
    };
    let words = [operand, csr_word(funct3, rd, number, TEMPORARY)];
    Item::words(
        format!("{name} x{rd}, {}, bit {bit}", csr::name(number)),
        &words,
    )
}

/// A timer that is due, or never.
fn time(random: &mut Random) -> Item {
    let number = random.pick(&[csr::STIMECMP, csr::VSTIMECMP]);
    let value = random.pick(&[0, -1]);
    let words = [addi(TEMPORARY, 0, value), csr_word(1, 0, number, TEMPORARY)];
    Item::words(format!("csrw {}, {value}", csr::name(number)), &words)
}

fn fence(random: &mut Random) -> Item {
    let (name, funct7) = random.pick(&[
        ("sfence.vma", 0x09),
        ("hfence.vvma", 0x11),
        ("hfence.gvma", 0x31),
        ("sinval.vma", 0x0b),
        ("hinval.vvma", 0x13),
        ("hinval.gvma", 0x33),
    ]);
    let rs1 = if random.chance(50) {
        0
    } else {
        random.pick(&BASES)
    };
    let rs2 = if random.chance(50) { 0 } else { source(random) };
    let word = crate::assembler::r(funct7, rs2, rs1, 0, 0, 0x73);
    Item::words(format!("{name} x{rs1}, x{rs2}"), &[word])
}

/// A jump to nothing, or to the page of returns; the link register leads back.
fn wild_jump(random: &mut Random) -> Item {
    let base = random.pick(&BASES);
    let offset = random.pick(&[0, 2, 4, -2]);
    match random.below(3) {
        0 => {
            let words = [lui(TEMPORARY, 0x50), jalr(1, TEMPORARY, offset)];
            Item::words(format!("jalr x1, {offset}(0x50000)"), &words)
        }
        1 => {
            // Twice an address of data is never one.
            let words = [
                crate::assembler::r(0, base, base, 0, TEMPORARY, 0x33),
                jalr(1, TEMPORARY, offset),
            ];
            Item::words(format!("jalr x1, {offset}(2 * x{base})"), &words)
        }
        _ => {
            let pages = (layout::LANDING - layout::CODE) >> 12;
            let words = [auipc(TEMPORARY, pages as u32), jalr(1, TEMPORARY, offset)];
            Item::words(format!("jalr x1, {offset}(a return)"), &words)
        }
    }
}

/// SRET or MRET to the place behind it, in whatever mode the status registers say. A trap on the
/// way goes on at the next place.
fn leave(name: &str, register: u16, instruction: u32) -> Item {
    let words = [
        auipc(TEMPORARY, 0),
        addi(TEMPORARY, TEMPORARY, 24),
        addi(1, TEMPORARY, 0),
        csr_word(1, 0, register, TEMPORARY),
        instruction,
        addi(0, 0, 0),
    ];
    Item::words(
        format!("csrw {}, behind; {name}", csr::name(register)),
        &words,
    )
}

fn illegal(random: &mut Random) -> Item {
    let word = random.pick(&[
        0xffff_ffff_u32,
        0x0000_0000,
        0x0000_707f,
        0x0000_7003,
        0x0000_4023,
        0x0000_2063,
        0x0200_0053 | 5 << 12,
        0x3000_0073,
        0x1020_00f3,
        0x0020_0073,
    ]);
    Item::words(format!("illegal {word:#010x}"), &[word])
}
