//! Suspension of the computer (SBI SUSP): the calling hart goes on with its registers restored from memory.

use core::arch::global_asm;
use core::mem::offset_of;

use riscv::csr::status;
use riscv::sbi::SUSP;
use riscv::sbi::suspend::{SUSPEND_TO_RAM, SYSTEM_SUSPEND};

/// Registers that a call keeps, and what the hart found when it resumed.
#[derive(Debug, Default)]
#[repr(C)]
struct Record {
    registers: [u64; 16],
    hart: u64,
    satp: u64,
    sstatus: u64,
}

// ra, sp, gp, tp and s0 to s11 are kept. a0 has the record's address at the call, the hart's id after the suspension; a1 is the opaque
// value, the record's address (SBI, table "SUSP System Resume Register State").
global_asm!(
    r#"
    .section .text
    .balign 4
    .global _suspend
_suspend:
    sd      ra, 0(a0)
    sd      sp, 8(a0)
    sd      gp, 16(a0)
    sd      tp, 24(a0)
    sd      s0, 32(a0)
    sd      s1, 40(a0)
    sd      s2, 48(a0)
    sd      s3, 56(a0)
    sd      s4, 64(a0)
    sd      s5, 72(a0)
    sd      s6, 80(a0)
    sd      s7, 88(a0)
    sd      s8, 96(a0)
    sd      s9, 104(a0)
    sd      s10, 112(a0)
    sd      s11, 120(a0)
    mv      a2, a0
    la      a1, 1f
    li      a0, {suspend_to_ram}
    li      a6, {system_suspend}
    li      a7, {susp}
    ecall
    ret
    .balign 4
1:  sd      a0, {hart}(a1)
    csrr    t0, satp
    sd      t0, {satp}(a1)
    csrr    t0, sstatus
    sd      t0, {sstatus}(a1)
    ld      ra, 0(a1)
    ld      sp, 8(a1)
    ld      gp, 16(a1)
    ld      tp, 24(a1)
    ld      s0, 32(a1)
    ld      s1, 40(a1)
    ld      s2, 48(a1)
    ld      s3, 56(a1)
    ld      s4, 64(a1)
    ld      s5, 72(a1)
    ld      s6, 80(a1)
    ld      s7, 88(a1)
    ld      s8, 96(a1)
    ld      s9, 104(a1)
    ld      s10, 112(a1)
    ld      s11, 120(a1)
    li      a0, 0
    ret
    "#,
    suspend_to_ram = const SUSPEND_TO_RAM,
    system_suspend = const SYSTEM_SUSPEND,
    susp = const SUSP,
    hart = const offset_of!(Record, hart),
    satp = const offset_of!(Record, satp),
    sstatus = const offset_of!(Record, sstatus),
);

unsafe extern "C" {
    fn _suspend(record: *mut Record) -> i64;
}

/// Findings of a hart that has resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Hart id in a0.
    pub hart: u64,
    pub satp: u64,
    /// Interrupts were open.
    pub open: bool,
}

/// Suspends the computer until an enabled interrupt. Interrupts must be closed and translation off.
///
/// # Errors
/// The error of the call, which has returned.
pub fn suspend() -> Result<Resumed, i64> {
    let mut record = Record::default();
    // SAFETY: the routine keeps what a function keeps in the record, which outlives the call, and restores it where the hart goes on.
    let error = unsafe { _suspend(&raw mut record) };
    if error != 0 {
        return Err(error);
    }
    super::trap::install();
    super::csr::enable_floating_point();
    let Record {
        hart,
        satp,
        sstatus,
        ..
    } = core::hint::black_box(record);
    Ok(Resumed {
        hart,
        satp,
        open: sstatus & status::SIE != 0,
    })
}
