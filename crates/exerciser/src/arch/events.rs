//! Handler of supervisor software events (SBI SSE), which counts them.

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use riscv::csr::status;
use riscv::sbi::SSE;
use riscv::sbi::software_events::COMPLETE;

/// Events that a handler has taken. Its address is the handler's argument.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Taken {
    /// Number of the events.
    count: AtomicU64,
    /// Address of the instruction that the last one interrupted.
    interrupted: AtomicU64,
    /// Bytes by which the handler moves that address on.
    skipped: AtomicU64,
    saved: AtomicU64,
}

impl Taken {
    /// No events; after each the hart goes on `skipped` bytes behind the interrupted instruction.
    pub const fn skipping(skipped: u64) -> Self {
        Self {
            count: AtomicU64::new(0),
            interrupted: AtomicU64::new(0),
            skipped: AtomicU64::new(skipped),
            saved: AtomicU64::new(0),
        }
    }

    /// Number of the events.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Address of the instruction that the last one interrupted.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Arguments of a registration: the handler's address, and this.
    pub fn registration(&'static self) -> [u64; 2] {
        let handler = (&raw const _event_handler).addr() as u64;
        [handler, core::ptr::from_ref(self).addr() as u64]
    }
}

// a6 is the hart's id, a7 the argument. All other registers are the interrupted code's; the completion restores these two.
global_asm!(
    r#"
    .section .text
    .balign 4
    .global _event_handler
_event_handler:
    sd      t0, {saved}(a7)
    ld      t0, {count}(a7)
    addi    t0, t0, 1
    sd      t0, {count}(a7)
    csrr    t0, sepc
    sd      t0, {interrupted}(a7)
    ld      a6, {skipped}(a7)
    add     t0, t0, a6
    csrw    sepc, t0
    ld      t0, {saved}(a7)
    li      a6, {complete}
    li      a7, {sse}
    ecall
1:  j       1b
    "#,
    count = const offset_of!(Taken, count),
    interrupted = const offset_of!(Taken, interrupted),
    skipped = const offset_of!(Taken, skipped),
    saved = const offset_of!(Taken, saved),
    complete = const COMPLETE,
    sse = const SSE,
);

unsafe extern "C" {
    static _event_handler: u8;
}

/// Traps where no trap may be taken (sstatus.SDT), and returns the instruction's address, if a handler of double traps goes on four bytes behind it.
pub fn trap_twice() -> u64 {
    let at: u64;
    // SAFETY: the handler keeps all registers; sstatus is restored.
    unsafe {
        asm!(
            "la {at}, 1f",
            "csrs sstatus, {double_trap}",
            // EBREAK. Illegal instructions would go by the firmware, which knows no double traps.
            "1: .4byte 0x00100073",
            "csrc sstatus, {double_trap}",
            at = out(reg) at,
            double_trap = in(reg) status::SDT,
        );
    }
    at
}
