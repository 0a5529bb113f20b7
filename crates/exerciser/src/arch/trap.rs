//! The kernel's own trap entry: interrupts, and exceptions that should not have happened.

use core::arch::{asm, global_asm};

use riscv::interrupt::{self, cause};

global_asm!(
    r#"
    .section .text
    .balign 4
    .global _trap_entry
_trap_entry:
    addi    sp, sp, -144
    sd      ra, 0(sp)
    sd      t0, 8(sp)
    sd      t1, 16(sp)
    sd      t2, 24(sp)
    sd      t3, 32(sp)
    sd      t4, 40(sp)
    sd      t5, 48(sp)
    sd      t6, 56(sp)
    sd      a0, 64(sp)
    sd      a1, 72(sp)
    sd      a2, 80(sp)
    sd      a3, 88(sp)
    sd      a4, 96(sp)
    sd      a5, 104(sp)
    sd      a6, 112(sp)
    sd      a7, 120(sp)
    csrr    a0, scause
    csrr    a1, sepc
    csrr    a2, stval
    mv      a3, ra
    call    _trap
    ld      ra, 0(sp)
    ld      t0, 8(sp)
    ld      t1, 16(sp)
    ld      t2, 24(sp)
    ld      t3, 32(sp)
    ld      t4, 40(sp)
    ld      t5, 48(sp)
    ld      t6, 56(sp)
    ld      a0, 64(sp)
    ld      a1, 72(sp)
    ld      a2, 80(sp)
    ld      a3, 88(sp)
    ld      a4, 96(sp)
    ld      a5, 104(sp)
    ld      a6, 112(sp)
    ld      a7, 120(sp)
    addi    sp, sp, 144
    sret
    "#
);

unsafe extern "C" {
    fn _trap_entry();
}

/// Points `stvec` at the kernel's entry.
pub fn install() {
    // SAFETY: the entry keeps every register and returns by SRET.
    unsafe { asm!("csrw stvec, {}", in(reg) (_trap_entry as *const ()).addr(), options(nostack)) };
}

/// `scause` of the supervisor timer interrupt.
pub const TIMER_INTERRUPT: u64 = cause(interrupt::SUPERVISOR_TIMER);
/// `scause` of the supervisor external interrupt.
pub const EXTERNAL_INTERRUPT: u64 = cause(interrupt::SUPERVISOR_EXTERNAL);
/// `scause` of the supervisor software interrupt.
pub const SOFTWARE_INTERRUPT: u64 = cause(interrupt::SUPERVISOR_SOFTWARE);
/// `scause` of the hypervisor's notification.
const NOTIFICATION_INTERRUPT: u64 = cause(abi::sbi::NOTIFICATION_INTERRUPT);

#[unsafe(no_mangle)]
extern "C" fn _trap(cause: u64, pc: u64, value: u64, caller: u64) {
    match cause {
        TIMER_INTERRUPT => crate::interrupts::timer(),
        EXTERNAL_INTERRUPT => crate::interrupts::external(),
        SOFTWARE_INTERRUPT => crate::interrupts::software(),
        NOTIFICATION_INTERRUPT => crate::exercises::allocation::notified(),
        _ => crate::start::unexpected_trap(cause, pc, value, caller),
    }
}
