//! The code around the programs: sets the state before, records traps, stores the state after.
//!
//! It runs in M-mode without translation. Traps that are delegated come here too: the
//! supervisors' handlers consist of an ECALL, which is never delegated, and an SRET.

use crate::assembler::{Code, Label, MRET, addi, csr, csrr, csrw, fld, fsd, i, jalr, ld, r, s, sd};
use crate::csr::{self as number, COMPARED, RECORDED, SET, VECTOR_COMPARED};
use crate::layout::{self, context};

/// The test finisher's word, and what switches the computer off.
const FINISHER: u32 = 0x10_0000;
const FINISH: u32 = riscv::finisher::PASS;
const MTIMECMP: u32 = 0x200_4000;
const MTIME: u32 = 0x200_bff8;
/// How far ahead M-mode's timer is set, in ticks of 100 ns: long after a program has ended, unless
/// it waits for what never comes.
const PATIENCE: u32 = 20_000;
/// How often that timer may interrupt a program before it is ended: one may fault for ever at its own handlers.
const MAX_TIMERS: i32 = 8;

// Registers of the harness; the program's are saved by then.
const SLOT: u32 = 31;
const A: u32 = 5;
const B: u32 = 6;
const C: u32 = 7;
const CAUSE: u32 = 8;
const AT: u32 = 9;
const CODE: u32 = 10;
const CURRENT: u32 = 11;

const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const LESS: u32 = 6;
const NOT_LESS: u32 = 7;

/// Bits 14:13 of mstatus: floating point on.
fn float_on(code: &mut Code) {
    code.constant(A, 3 << 13);
    code.emit(csr(2, 0, number::MSTATUS, A));
}

/// `srli rd, rd, shift`.
const fn shift_right(rd: u32, shift: i32) -> u32 {
    i(shift, rd, 5, rd, 0x13)
}

/// `slli rd, rd, shift`.
const fn shift_left(rd: u32, shift: i32) -> u32 {
    i(shift, rd, 1, rd, 0x13)
}

const fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0, rs2, rs1, 0, rd, 0x33)
}

/// `sfence.vma`, `hfence.vvma`, `hfence.gvma` with both operands x0.
const FENCES: [u32; 3] = [0x1200_0073, 0x2200_0073, 0x6200_0073];

/// Bits 10:9 of mstatus: vectors on.
fn vectors_on(code: &mut Code) {
    code.constant(A, 3 << 9);
    code.emit(csr(2, 0, number::MSTATUS, A));
}

/// Moves all vector registers to or from the slot: whole registers, eight at a time.
fn move_vectors(code: &mut Code, length: u16, opcode: u32) {
    code.constant(A, (layout::VECTORS - layout::CONTEXT) as u32);
    code.emit(add(A, SLOT, A));
    for group in 0..4 {
        code.emit(7 << 29 | 1 << 25 | 8 << 20 | A << 15 | (8 * group) << 7 | opcode);
        code.emit(addi(A, A, i32::from(length)));
    }
}

/// Sets the vector unit as a program wants it.
fn set_vectors(code: &mut Code, length: u16) {
    vectors_on(code);
    move_vectors(code, length, 0x07);
    code.emit(ld(A, SLOT, context::VECTOR));
    code.emit(ld(B, SLOT, context::VECTOR + 8));
    // VSETVL.
    code.emit(r(0x40, A, B, 7, A, 0x57));
    for (place, number) in [(16, number::VCSR), (24, number::VSTART)] {
        code.emit(ld(A, SLOT, context::VECTOR + place));
        code.emit(csrw(number, A));
    }
}

/// Stores the vector unit's state.
fn store_vectors(code: &mut Code, length: u16) {
    vectors_on(code);
    for (index, &csr) in (COMPARED.len() as i32..).zip(&VECTOR_COMPARED) {
        code.emit(csrr(A, csr));
        code.emit(sd(A, SLOT, context::CSRS_AFTER + 8 * index));
    }
    code.emit(csrw(number::VSTART, 0));
    move_vectors(code, length, 0x27);
}

/// The harness for `programs` programs whose slots begin at `slots`, with vector registers of `vectors` bits unless that is 0.
#[must_use]
pub fn build(slots: u64, programs: u64, vectors: u16) -> Vec<u32> {
    let mut code = Code::default();
    let (next, trap, finish) = (code.label(), code.label(), code.label());

    // From reset. Harts other than the first wait for ever.
    code.emit(csrw(number::MIE, 0));
    let first = code.label();
    code.emit(csrr(A, number::MHARTID));
    code.branch(EQUAL, A, 0, first);
    let asleep = code.label();
    code.place(asleep);
    code.jump(asleep);
    code.place(first);
    code.address(A, trap);
    code.emit(csrw(number::MTVEC, A));
    code.constant(CURRENT, slots as u32);
    let end = slots + programs * layout::SLOT;
    start(&mut code, next, finish, end, vectors);
    handle(&mut code, trap, next, vectors);

    code.place(finish);
    code.constant(A, layout::TOHOST as u32);
    code.emit(addi(B, 0, 1));
    code.emit(sd(B, A, 0));
    // Where nobody listens to tohost there is a test finisher.
    let again = code.label();
    code.constant(A, FINISHER);
    code.constant(B, FINISH);
    code.place(again);
    code.emit(s(0, B, A, 2, 0x23));
    code.jump(again);
    code.finish()
}

/// Sets M-mode's timer, as on a SiFive CLINT, to the time when a program has waited long enough.
fn set_timer(code: &mut Code) {
    code.constant(A, MTIME);
    code.emit(ld(B, A, 0));
    code.constant(A, PATIENCE);
    code.emit(add(B, B, A));
    code.constant(A, MTIMECMP);
    code.emit(sd(B, A, 0));
}

/// Starts the program whose slot CURRENT is, or finishes if that is the end.
fn start(code: &mut Code, next: Label, finish: Label, end: u64, vectors: u16) {
    code.place(next);
    code.constant(A, end as u32);
    code.branch(NOT_LESS, CURRENT, A, finish);
    code.constant(SLOT, layout::CONTEXT as u32);
    code.emit(add(SLOT, CURRENT, SLOT));
    float_on(code);
    // A reservation of the program before must not be met: SC without LR.
    code.emit(addi(A, SLOT, context::X));
    code.emit(r(0x03 << 2, 0, A, 3, 0, 0x2f));
    for register in 0..32_u32 {
        code.emit(fld(register, SLOT, context::F + 8 * register.cast_signed()));
    }
    if vectors != 0 {
        set_vectors(code, vectors);
    }
    // Timers that the program before left due are put off, while they can be.
    code.emit(addi(A, 0, 1));
    code.emit(shift_left(A, 63));
    code.emit(csrw(number::MENVCFG, A));
    code.emit(csrw(number::HENVCFG, A));
    code.emit(addi(A, 0, -1));
    code.emit(csrw(number::STIMECMP, A));
    code.emit(csrw(number::VSTIMECMP, A));
    set_timer(code);
    for (index, &csr) in (0..).zip(&SET) {
        code.emit(ld(A, SLOT, context::CSRS + 8 * index));
        code.emit(csrw(csr, A));
    }
    for fence in FENCES {
        code.emit(fence);
    }
    code.emit(csrw(number::MSCRATCH, SLOT));
    for register in 1..32_u32 {
        code.emit(ld(register, SLOT, context::X + 8 * register.cast_signed()));
    }
    code.emit(MRET);
}

/// Records a trap and goes on, or ends the program.
fn handle(code: &mut Code, trap: Label, next: Label, vectors: u16) {
    let (end, out, full, room) = (code.label(), code.label(), code.label(), code.label());
    code.place(trap);
    record(code, full);
    code.jump(room);
    // No room for another record: the end. The program's temporary register may hold the time.
    code.place(full);
    code.emit(sd(0, SLOT, context::X_AFTER + 8 * 31));
    code.jump(end);
    code.place(room);
    dispatch(code, end, out);

    code.place(out);
    for register in 1..31_u32 {
        let place = context::X_AFTER + 8 * register.cast_signed();
        code.emit(ld(register, SLOT, place));
    }
    code.emit(ld(SLOT, SLOT, context::X_AFTER + 8 * 31));
    code.emit(MRET);

    code.place(end);
    store_state(code, next, vectors);
}

/// Stores the integer registers and a record of the trap; goes to `full` if there is no room for another one. Leaves the slot's
/// address in CODE.
fn record(code: &mut Code, full: Label) {
    code.emit(csr(1, SLOT, number::MSCRATCH, SLOT));
    for register in 1..31_u32 {
        let place = context::X_AFTER + 8 * register.cast_signed();
        code.emit(sd(register, SLOT, place));
    }
    code.emit(csr(1, A, number::MSCRATCH, SLOT));
    code.emit(sd(A, SLOT, context::X_AFTER + 8 * 31));

    code.emit(ld(B, SLOT, context::NEXT));
    for (index, &csr) in (0..).zip(&RECORDED) {
        code.emit(csrr(A, csr));
        code.emit(sd(A, B, 8 * index));
    }
    code.emit(addi(B, B, 8 * RECORDED.len() as i32));
    code.emit(sd(B, SLOT, context::NEXT));
    // Each record shows its own trap's values only.
    for value in [number::STVAL, number::HTVAL, number::HTINST, number::VSTVAL] {
        code.emit(csrw(value, 0));
    }
    code.emit(ld(CODE, SLOT, context::SLOT));
    code.constant(
        A,
        (layout::LOG + layout::LOG_SIZE) as u32 - 8 * RECORDED.len() as u32,
    );
    code.emit(add(A, CODE, A));
    code.branch(NOT_LESS, B, A, full);
}

/// Finds out whose trap it was, and sets where that mode goes on; an exception behind the program's last place goes to `end`.
fn dispatch(code: &mut Code, end: Label, out: Label) {
    let (skip, disable) = (code.label(), code.label());
    let (supervisor, virtual_supervisor) = (code.label(), code.label());
    // Delegated: an ECALL out of a supervisor's handlers.
    code.emit(csrr(CAUSE, number::MCAUSE));
    code.emit(csrr(AT, number::MEPC));
    code.constant(A, layout::HANDLERS as u32);
    code.emit(add(A, CODE, A));
    code.emit(r(0x20, A, AT, 0, B, 0x33));
    code.emit(addi(C, 0, layout::HANDLERS_SIZE as i32));
    code.branch(LESS, B, C, supervisor);
    code.emit(addi(B, B, -(layout::VIRTUAL_HANDLERS as i32)));
    code.branch(LESS, B, C, virtual_supervisor);

    // To M-mode itself.
    code.emit(i(0, CAUSE, 2, A, 0x13));
    code.branch(NOT_EQUAL, A, 0, disable);
    resume(code, end, skip);
    code.emit(csrw(number::MEPC, AT));
    code.jump(out);
    code.place(disable);
    // The timer that ends what waits for ever: once more.
    let other = code.label();
    code.emit(addi(B, 0, 14));
    code.emit(i(1, CAUSE, 1, A, 0x13));
    code.branch(NOT_EQUAL, A, B, other);
    set_timer(code);
    code.emit(ld(B, SLOT, context::TIMERS));
    code.emit(addi(B, B, 1));
    code.emit(sd(B, SLOT, context::TIMERS));
    code.emit(addi(A, 0, MAX_TIMERS));
    code.branch(LESS, B, A, out);
    code.jump(end);
    code.place(other);
    // An interrupt: not again. It comes back to where it was.
    clear_enable(code, number::MIE, 0);
    code.jump(out);

    let leave_handler = code.label();
    for (label, cause, epc, shift) in [
        (supervisor, number::SCAUSE, number::SEPC, 0),
        (virtual_supervisor, number::VSCAUSE, number::VSEPC, 1),
    ] {
        let (interrupt, go_on) = (code.label(), code.label());
        code.place(label);
        code.emit(csrr(CAUSE, cause));
        code.emit(csrr(AT, epc));
        code.emit(i(0, CAUSE, 2, A, 0x13));
        code.branch(NOT_EQUAL, A, 0, interrupt);
        resume(code, end, go_on);
        code.emit(csrw(epc, AT));
        code.jump(leave_handler);
        code.place(interrupt);
        clear_enable(code, number::MIE, shift);
        code.jump(leave_handler);
    }
    code.place(leave_handler);
    code.constant(A, (layout::HANDLERS + layout::HANDLER_RETURN) as u32);
    code.emit(add(A, CODE, A));
    code.emit(csrw(number::MEPC, A));
}

/// Stores what a program has left, and goes on to the next one.
fn store_state(code: &mut Code, next: Label, vectors: u16) {
    for (index, &csr) in (0..).zip(&COMPARED) {
        if csr == number::FCSR {
            float_on(code);
        }
        code.emit(csrr(A, csr));
        code.emit(sd(A, SLOT, context::CSRS_AFTER + 8 * index));
    }
    for register in 0..32_u32 {
        let place = context::F_AFTER + 8 * register.cast_signed();
        code.emit(fsd(register, SLOT, place));
    }
    if vectors != 0 {
        store_vectors(code, vectors);
    }
    code.emit(addi(A, 0, 1));
    code.emit(sd(A, SLOT, context::DONE));
    code.emit(ld(CURRENT, SLOT, context::SLOT));
    code.constant(A, layout::SLOT as u32);
    code.emit(add(CURRENT, CURRENT, A));
    code.emit(csrw(number::MIE, 0));
    code.address(A, next);
    code.emit(jalr(0, A, 0));
}

/// Puts into AT where to go on after an exception at AT: the next place if it lies in the code,
/// else the next place after the return address; at the end of the program, to `end`.
fn resume(code: &mut Code, end: Label, done: Label) {
    let outside = code.label();
    code.emit(r(0x20, CODE, AT, 0, B, 0x33));
    code.constant(C, layout::PAGE as u32);
    code.branch(NOT_LESS, B, C, outside);
    code.emit(ld(C, SLOT, context::END));
    code.branch(NOT_LESS, AT, C, end);
    let round = code.label();
    code.emit(addi(AT, AT, layout::PLACE as i32));
    code.jump(round);
    code.place(outside);
    code.emit(ld(AT, SLOT, context::X_AFTER + 8));
    code.emit(addi(AT, AT, layout::PLACE as i32 - 1));
    code.place(round);
    let bits = layout::PLACE.trailing_zeros() as i32;
    code.emit(shift_right(AT, bits));
    code.emit(shift_left(AT, bits));
    code.place(done);
}

/// Takes bit CAUSE + `shift` out of an enable register.
fn clear_enable(code: &mut Code, register: u16, shift: i32) {
    code.emit(addi(A, 0, 1));
    // SLL takes the low six bits of the count.
    code.emit(addi(B, CAUSE, shift));
    code.emit(r(0, B, A, 1, A, 0x33));
    code.emit(csr(3, 0, register, A));
}
