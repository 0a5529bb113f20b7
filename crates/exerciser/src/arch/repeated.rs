//! Instructions one after the other, sixteen at a time, so that the loop around them does not count.

use core::arch::asm;

use riscv::csr::address_translation::ASID_SHIFT;
use riscv::csr::number;

use super::csr;

/// How many are done at a time.
pub const AT_A_TIME: u64 = 16;

/// Sixteen instructions that do nothing.
pub fn nothing() {
    // SAFETY: they change no state.
    unsafe { asm!(".rept 16", "nop", ".endr", options(nomem, nostack)) };
}

/// Interrupts closed, open and closed again, sixteen times. Interrupts are closed before.
pub fn mask() {
    // SAFETY: the trap entry keeps every register, as for `csr::take_interrupts`.
    unsafe {
        asm!(
            ".rept 16",
            "csrsi sstatus, 2",
            "csrci sstatus, 2",
            ".endr",
            options(nostack)
        );
    }
}

/// Sixteen fences of an address space.
pub fn fence(asid: u64) {
    // SAFETY: fences only.
    unsafe {
        asm!(".rept 16", "sfence.vma zero, {0}", ".endr", in(reg) asid, options(nostack));
    }
}

/// Sixteen fences of one page of an address space.
pub fn fence_page(address: u64, asid: u64) {
    // SAFETY: fences only.
    unsafe {
        asm!(
            ".rept 16",
            "sfence.vma {0}, {1}",
            ".endr",
            in(reg) address,
            in(reg) asid,
            options(nostack)
        );
    }
}

/// The same by SFENCE.W.INVAL, SINVAL.VMA and SFENCE.INVAL.IR, sixteen times. The hart must have Svinval.
pub fn invalidate(address: u64, asid: u64) {
    // SAFETY: fences only, and the caller has seen that the hart has them.
    unsafe {
        asm!(
            ".option push",
            ".option arch, +svinval",
            ".rept 16",
            "sfence.w.inval",
            "sinval.vma {0}, {1}",
            "sfence.inval.ir",
            ".endr",
            ".option pop",
            in(reg) address,
            in(reg) asid,
            options(nostack)
        );
    }
}

/// A bit of the address space identifier in satp ("Supervisor Address Translation and Protection Register").
const IDENTIFIER_BIT: u64 = 1 << (ASID_SHIFT + 3);

/// Sixteen writes of satp, which change the address space identifier and end with the one that it had.
pub fn change_space() {
    let now = csr::translation();
    let other = now ^ IDENTIFIER_BIT;
    // SAFETY: the two values differ in the identifier alone, so both translate by the tables that are in use.
    unsafe {
        asm!(
            ".rept 8",
            "csrw satp, {0}",
            "csrw satp, {1}",
            ".endr",
            in(reg) other,
            in(reg) now,
            options(nostack)
        );
    }
}

/// The timer set sixteen times to a time that does not come (Sstc). The hart must have it.
pub fn set_timer_compare() {
    // SAFETY: no interrupt comes of it.
    unsafe {
        asm!(".rept 16", "csrw {1}, {0}", ".endr", in(reg) u64::MAX, const number::STIMECMP, options(nostack))
    };
}

/// Sixteen WFI, each with the software interrupt pending and enabled. Interrupts are closed.
pub fn wait_with_pending() {
    let enabled = csr::interrupt_enables();
    csr::set_interrupt_enables(enabled | csr::SOFTWARE);
    csr::set_pending(csr::SOFTWARE);
    // SAFETY: WFI changes no state.
    unsafe { asm!(".balign 128", ".rept 16", "wfi", ".endr", options(nostack)) };
    csr::clear_software_interrupt();
    csr::set_interrupt_enables(enabled);
}
