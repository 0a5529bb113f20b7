//! Traps to M-mode: exceptions are noted and skipped, interrupts noted and masked.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

// The frame that mscratch points to: x1 to x31 in words 1 to 31, then the stack pointer that
// `mode::run` saved. The trap stack lies right below it.
global_asm!(
    r#"
    .macro registers op
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \op x\n, 8*\n(sp)
    .endr
    .endm

    .text
    .balign 4
    .globl trap_entry
trap_entry:
    csrrw sp, mscratch, sp
    registers sd
    csrr t0, mscratch
    sd t0, 16(sp)
    csrw mscratch, sp
    mv a0, sp
    call trap_taken
    csrr sp, mscratch
    registers ld
    ld sp, 16(sp)
    mret
    "#
);

/// A trap to M-mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// mcause: exception code, or interrupt number with bit 63.
    pub cause: u64,
    /// mtval.
    pub value: u64,
}

/// The code of an ecall that leaves a lower mode, in a7.
pub const LEAVE: u64 = 0x6c65_6176;

/// Cause of the last trap of each hart; `NONE` for no trap.
static CAUSE: [AtomicU64; 8] = [const { AtomicU64::new(NONE) }; 8];
static VALUE: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
const NONE: u64 = u64::MAX;

/// The hart's number, which its stack tells in every mode.
pub fn hart() -> usize {
    unsafe extern "C" {
        static stacks_end: u8;
    }
    let here: usize;
    // SAFETY: reads the stack pointer.
    unsafe { core::arch::asm!("mv {0}, sp", out(reg) here) };
    (&raw const stacks_end as usize - here) / 0x8000
}

/// Forgets the hart's last trap.
pub fn clear() {
    CAUSE[hart() & 7].store(NONE, Ordering::SeqCst);
}

/// The hart's last trap since [`clear`].
pub fn taken() -> Option<Trap> {
    let cause = CAUSE[hart() & 7].load(Ordering::SeqCst);
    let value = VALUE[hart() & 7].load(Ordering::SeqCst);
    (cause != NONE).then_some(Trap { cause, value })
}

/// The interrupt that the hart took last, if it took one since [`clear`].
pub fn interrupt() -> Option<u64> {
    let cause = taken()?.cause;
    (cause >> 63 != 0).then_some(cause & !(1 << 63))
}

#[unsafe(no_mangle)]
extern "C" fn trap_taken(frame: &mut [u64; 33]) {
    let (cause, value, mut resume): (u64, u64, u64);
    // SAFETY: reads what the trap left; the handler runs in M-mode.
    unsafe {
        core::arch::asm!("csrr {0}, mcause", "csrr {1}, mtval", "csrr {2}, mepc",
            out(reg) cause, out(reg) value, out(reg) resume);
    }
    let is_call = (8..=11).contains(&cause);
    if is_call && frame[17] == LEAVE {
        // Back to where `mode::run` was called, in M-mode.
        frame[2] = frame[32];
        resume = crate::mode::return_address();
        // SAFETY: MPP = 3, MPV = 0: the mret that follows goes to M-mode.
        unsafe {
            core::arch::asm!("csrs mstatus, {0}", "csrc mstatus, {1}",
                in(reg) 3_u64 << 11, in(reg) 1_u64 << 39);
        }
    } else {
        let hart = hart() & 7;
        CAUSE[hart].store(cause, Ordering::SeqCst);
        VALUE[hart].store(value, Ordering::SeqCst);
        if cause >> 63 != 0 {
            // A level that nobody takes away would come back for ever.
            // SAFETY: masks the interrupt that was taken.
            unsafe { core::arch::asm!("csrc mie, {0}", in(reg) 1_u64 << (cause & 63)) };
        } else {
            // SAFETY: translation is off in all modes, so the address is physical, and an
            // instruction was fetched from it.
            let low = unsafe { (resume as *const u16).read_volatile() };
            resume += if low & 3 == 3 { 4 } else { 2 };
        }
    }
    // SAFETY: an instruction boundary of the program.
    unsafe { core::arch::asm!("csrw mepc, {0}", in(reg) resume) };
}
