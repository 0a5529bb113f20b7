//! Code of every hart besides its exercises: start, wait, barrier, traps, end.

use riscv::instruction;

use super::memory::{CELLS, MEETING, RESULTS, ROOTS};
use crate::assembler::{Code, MRET, Register, addi, csr, csrr, csrw, i, ld, r, s, sd};
use crate::csr as number;
use crate::layout::{PAGE, TOHOST};
use crate::random::Random;

/// Registers for what is needed for a moment.
pub const A: Register = 5;
pub const B: Register = 6;
pub const C: Register = 7;
pub const D: Register = 28;
/// The cells.
pub const SHARED: Register = 8;
/// Where the next result goes.
pub const OWN: Register = 9;
/// Interprocessor interrupts that have been taken.
pub const TAKEN: Register = 21;
/// The hart's own word of MSWI.
const PENDING: Register = 22;
/// The cell at which harts meet, and what it holds once all have come.
const PLACE: Register = 19;
const EXPECTED: Register = 20;
/// One.
pub const ONE: Register = 23;
/// The trap handler's own.
const E: Register = 30;
const F: Register = 31;

const EQUAL: u32 = 0;
const NOT_LESS: u32 = 7;
const LESS: u32 = 6;
const SIGNED_LESS: u32 = 4;

/// MSIP of hart 0, as on a SiFive CLINT; four bytes for each hart.
pub const MSWI: u32 = 0x200_0000;
const FINISHER: u32 = 0x10_0000;
const FINISH: u32 = riscv::finisher::PASS;
/// WRS.NTO and WRS.STO.
const WAIT_FOR_STORE: [u32; 2] = [instruction::WRS_NTO, instruction::WRS_STO];
/// WFI.
pub const WAIT: u32 = instruction::WFI;
/// MSIE, MSIP and mstatus.MIE are all bit 3.
pub const SOFTWARE: u32 = 8;

/// LR.D with acquire order.
pub const fn load_reserved(rd: Register, address: Register) -> u32 {
    r(0x02 << 2 | 2, 0, address, 3, rd, 0x2f)
}

/// AMO on doublewords with both orders.
pub const fn amo(funct5: u32, rd: Register, value: Register, address: Register) -> u32 {
    r(funct5 << 2 | 3, value, address, 3, rd, 0x2f)
}

/// Loads 64 bits.
pub fn value(code: &mut Code, rd: Register, value: u64) {
    code.constant(rd, (value >> 32) as u32);
    code.constant(D, value as u32);
    code.emit(i(32, rd, 1, rd, 0x13));
    code.emit(r(0, D, rd, 6, rd, 0x33));
}

/// Keeps a register as a result.
pub fn keep(code: &mut Code, register: Register) {
    code.emit(sd(register, OWN, 0));
    code.emit(addi(OWN, OWN, 8));
}

/// Waits until the doubleword at `address` is at least `least`, unsigned. Uses C.
pub fn wait_for(code: &mut Code, address: Register, least: Register, random: &mut Random) {
    let (again, done) = (code.label(), code.label());
    code.place(again);
    if random.chance(40) {
        code.emit(ld(C, address, 0));
        code.branch(LESS, C, least, again);
    } else {
        code.emit(load_reserved(C, address));
        code.branch(NOT_LESS, C, least, done);
        code.emit(random.pick(&WAIT_FOR_STORE));
        code.jump(again);
    }
    code.place(done);
    // What was written before is seen from here on.
    code.emit(0x0ff0_000f);
}

/// Waits for all harts.
pub fn meet(code: &mut Code, harts: u32, random: &mut Random) {
    code.emit(0x0ff0_000f);
    code.emit(amo(0, 0, ONE, PLACE));
    code.emit(addi(EXPECTED, EXPECTED, harts.cast_signed()));
    wait_for(code, PLACE, EXPECTED, random);
}

/// The whole code: each hart's part is made by `body`.
pub fn start(code: &mut Code, harts: u32, mut body: impl FnMut(&mut Code, u32)) {
    let (handler, finish, asleep) = (code.label(), code.label(), code.label());
    code.emit(csrw(number::MIE, 0));
    code.address(A, handler);
    code.emit(csrw(number::MTVEC, A));
    for (csr, root) in [(number::VSATP, ROOTS[0]), (number::HGATP, ROOTS[1])] {
        value(code, A, root);
        code.emit(csrw(csr, A));
    }
    // Memory protection permits everything: HLV and HSV are not M-mode's accesses.
    value(code, A, u64::MAX >> 10);
    code.emit(csrw(number::PMPADDR0, A));
    code.emit(addi(A, 0, 0x1f));
    code.emit(csrw(number::PMPCFG0, A));
    // HLV and HSV act as in VS-mode, on pages of users too: hstatus.SPVP and vsstatus.SUM.
    code.constant(A, 1 << 8);
    code.emit(csrw(number::HSTATUS, A));
    code.constant(A, 1 << 18);
    code.emit(csrw(number::VSSTATUS, A));
    code.emit(0x2200_0073);
    code.emit(0x6200_0073);
    code.constant(SHARED, CELLS as u32);
    code.constant(PLACE, MEETING as u32);
    code.emit(addi(EXPECTED, 0, 0));
    code.emit(addi(TAKEN, 0, 0));
    code.emit(addi(ONE, 0, 1));
    let labels: Vec<_> = (0..harts).map(|_| code.label()).collect();
    code.emit(csrr(A, number::MHARTID));
    for (&label, hart) in labels.iter().zip(0..) {
        let next = code.label();
        code.emit(addi(B, 0, hart));
        code.branch(1, A, B, next);
        code.jump(label);
        code.place(next);
    }
    code.place(asleep);
    code.emit(WAIT);
    code.jump(asleep);

    for (&label, hart) in labels.iter().zip(0_u32..) {
        code.place(label);
        code.constant(OWN, (RESULTS + u64::from(hart) * PAGE) as u32);
        code.constant(PENDING, MSWI + 4 * hart);
        code.emit(addi(A, 0, SOFTWARE.cast_signed()));
        code.emit(csrw(number::MIE, A));
        body(code, hart);
        keep(code, TAKEN);
        code.emit(0x0ff0_000f);
        code.emit(amo(0, 0, ONE, PLACE));
        let end = if hart == 0 { finish } else { asleep };
        code.jump(end);
    }

    // Hart 0 ends once all have: the last meeting counts each hart once more.
    code.place(finish);
    code.emit(addi(EXPECTED, EXPECTED, harts.cast_signed()));
    let again = code.label();
    code.place(again);
    code.emit(ld(C, PLACE, 0));
    code.branch(LESS, C, EXPECTED, again);
    code.constant(A, TOHOST as u32);
    code.emit(sd(ONE, A, 0));
    let forever = code.label();
    code.constant(A, FINISHER);
    code.constant(B, FINISH);
    code.place(forever);
    code.emit(s(0, B, A, 2, 0x23));
    code.jump(forever);

    handle(code, handler);
}

/// The trap handler: counts interprocessor interrupts; keeps the cause, the address and the guest's
/// address of an exception and goes on behind it.
fn handle(code: &mut Code, handler: crate::assembler::Label) {
    // mtvec's low two bits are the mode: an address is a multiple of four anyway.
    code.place(handler);
    let interrupt = code.label();
    code.emit(csrr(E, number::MCAUSE));
    code.branch(SIGNED_LESS, E, 0, interrupt);
    keep(code, E);
    for csr in [number::MTVAL, number::MTVAL2] {
        code.emit(csrr(E, csr));
        keep(code, E);
    }
    code.emit(csrr(F, number::MEPC));
    code.emit(addi(F, F, 4));
    code.emit(csrw(number::MEPC, F));
    code.emit(MRET);
    code.place(interrupt);
    code.emit(s(0, 0, PENDING, 2, 0x23));
    code.emit(addi(TAKEN, TAKEN, 1));
    code.emit(MRET);
}

/// Waits until so many interprocessor interrupts have been taken as A says; uses C.
pub fn wait_for_interrupts(code: &mut Code, with_handler: bool) {
    let (again, done) = (code.label(), code.label());
    code.place(again);
    code.branch(EQUAL, TAKEN, A, done);
    code.emit(WAIT);
    if with_handler {
        // Taken here, and nowhere else, so that none slips between the look and the wait.
        code.emit(csr(6, 0, number::MSTATUS, SOFTWARE));
        code.emit(csr(7, 0, number::MSTATUS, SOFTWARE));
    } else {
        code.emit(csrr(C, number::MIP));
        code.emit(i(SOFTWARE.cast_signed(), C, 7, C, 0x13));
        code.branch(EQUAL, C, 0, again);
        code.emit(s(0, 0, PENDING, 2, 0x23));
        code.emit(addi(TAKEN, TAKEN, 1));
    }
    code.jump(again);
    code.place(done);
}
