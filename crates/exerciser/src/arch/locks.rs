//! The instructions by which a spinning hart waits, and a system call from user mode.

use core::arch::asm;
use core::sync::atomic::AtomicU32;

/// Waits while `word` holds `seen`, as Linux does for its ticket locks: LR, compare, WRS.NTO (Zawrs). May
/// return for no reason. The sequence is the one that Linux compiles to: four bytes of LR and two of each of
/// the compressed XOR and BNEZ, so that the LR stands eight bytes before the WRS.NTO.
pub fn wait_on_reservation(word: &AtomicU32, seen: u32) {
    // SAFETY: LR reads an aligned word that the reference keeps alive; WRS.NTO changes nothing.
    unsafe {
        asm!(
            "lr.w   a4, (a3)",
            "xor    a4, a4, a5",
            "bnez   a4, 1f",
            ".4byte 0x00d00073", // wrs.nto
            "1:",
            in("a3") word.as_ptr(),
            in("a5") i64::from(seen.cast_signed()),
            out("a4") _,
            options(nostack),
        );
    }
}

/// Waits, perhaps for no time at all, while `ticket` is not served by the ticket lock `word`, which held `seen`. It is one
/// turn of Linux's loop, instruction for instruction: the wait, then the look at the lower half of the word.
pub fn wait_for_ticket(word: &AtomicU32, seen: u32, ticket: u32) {
    // SAFETY: LR and LW read an aligned word that the reference keeps alive; WRS.NTO changes nothing.
    unsafe {
        asm!(
            "lr.w   a4, (a3)",
            "xor    a4, a4, a5",
            "bnez   a4, 1f",
            ".4byte 0x00d00073", // wrs.nto
            "1:",
            "lw     a5, 0(a3)",
            "slli   a4, a5, 48",
            "srli   a4, a4, 48",
            "sext.w a5, a5",
            "bne    a2, a4, 2f",
            "2:",
            in("a3") word.as_ptr(),
            inout("a5") i64::from(seen.cast_signed()) => _,
            in("a2") u64::from(ticket & 0xffff),
            out("a4") _,
            options(nostack),
        );
    }
}

/// Waits until `ticket` is served by the ticket lock `word`, by Linux's loop where harts have no Zawrs: PAUSE, then the look at the lower
/// half of the word.
pub fn pause_for_ticket(word: &AtomicU32, ticket: u32) {
    // SAFETY: LW reads an aligned word that the reference keeps alive; PAUSE changes nothing.
    unsafe {
        asm!(
            "1:",
            ".4byte 0x0100000f", // pause
            "lw     a5, 0(a3)",
            "slli   a4, a5, 48",
            "srli   a4, a4, 48",
            "sext.w a5, a5",
            "bne    a2, a4, 1b",
            in("a3") word.as_ptr(),
            in("a2") u64::from(ticket & 0xffff),
            out("a4") _,
            out("a5") _,
            options(nostack),
        );
    }
}

/// Waits while `word` holds `seen`, by PAUSE.
pub fn pause_while(word: &AtomicU32, seen: u32) {
    // SAFETY: LW reads an aligned word that the reference keeps alive; PAUSE changes nothing.
    unsafe {
        asm!(
            "1:",
            ".4byte 0x0100000f", // pause
            "lw     a5, 0(a3)",
            "beq    a5, a2, 1b",
            in("a3") word.as_ptr(),
            in("a2") i64::from(seen.cast_signed()),
            out("a5") _,
            options(nostack),
        );
    }
}

/// Goes to user mode, which does nothing but call the system, and comes back: a system call's two mode
/// changes. Interrupts stay closed, in user mode too.
pub fn user_call() {
    // SAFETY: user mode runs one ECALL, here, with every register as it is; the trap comes back here with
    // stvec, sie and sstatus put back. Translation is off or shows this page to no user: the exercises that
    // call this run with translation off.
    unsafe {
        asm!(
            "csrr   {vector}, stvec",
            "csrr   {status}, sstatus",
            "csrrw  {enables}, sie, zero",
            "la     {address}, 2f",
            "csrw   stvec, {address}",
            "la     {address}, 1f",
            "csrw   sepc, {address}",
            "csrc   sstatus, {previous}",
            "sret",
            ".balign 4",
            "1:",
            "ecall",
            ".balign 4",
            "2:",
            "csrw   stvec, {vector}",
            "csrw   sie, {enables}",
            "csrw   sstatus, {status}",
            vector = out(reg) _,
            status = out(reg) _,
            enables = out(reg) _,
            address = out(reg) _,
            // SPP and SPIE off: back to user mode, interrupts as closed as before.
            previous = in(reg) 0x120u64,
            options(nostack),
        );
    }
}

/// So many turns of a loop of two instructions.
pub fn turn(turns: u64) {
    // SAFETY: counts a register down.
    unsafe {
        asm!(
            "beqz   {count}, 2f",
            "1:",
            "addi   {count}, {count}, -1",
            "bnez   {count}, 1b",
            "2:",
            count = inout(reg) turns => _,
            options(nomem, nostack),
        );
    }
}
