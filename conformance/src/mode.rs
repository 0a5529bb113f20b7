//! Running a function in a less privileged mode.

use core::arch::global_asm;

/// A privilege mode below M.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// HS-mode.
    Supervisor,
    /// U-mode with V = 0.
    User,
    /// VS-mode.
    VirtualSupervisor,
    /// VU-mode.
    VirtualUser,
}

impl Mode {
    /// The bits of mstatus that an mret to this mode wants: MPP and MPV.
    const fn status(self) -> u64 {
        const SUPERVISOR: u64 = 1 << 11;
        const VIRTUAL: u64 = 1 << 39;
        match self {
            Self::Supervisor => SUPERVISOR,
            Self::User => 0,
            Self::VirtualSupervisor => SUPERVISOR | VIRTUAL,
            Self::VirtualUser => VIRTUAL,
        }
    }
}

global_asm!(
    r#"
    .macro callee_saved op
    \op ra, 0(sp)
    \op s0, 8(sp)
    \op s1, 16(sp)
    \op s2, 24(sp)
    \op s3, 32(sp)
    \op s4, 40(sp)
    \op s5, 48(sp)
    \op s6, 56(sp)
    \op s7, 64(sp)
    \op s8, 72(sp)
    \op s9, 80(sp)
    \op s10, 88(sp)
    \op s11, 96(sp)
    .endm

    .text
    .globl run_in_mode
run_in_mode:
    addi sp, sp, -112
    callee_saved sd
    csrr t0, mscratch
    sd sp, 256(t0)
    // MPP and MPV, and MPIE: or MIE would be set after the next mret to M-mode.
    li t1, 0x8000001880
    csrc mstatus, t1
    csrs mstatus, a0
    csrw mepc, a1
    la ra, 1f
    mret
1:  li a7, 0x6c656176
    ecall
    .globl run_in_mode_return
run_in_mode_return:
    callee_saved ld
    addi sp, sp, 112
    ret
    "#
);

unsafe extern "C" {
    fn run_in_mode(status: u64, function: extern "C" fn() -> u64) -> u64;
    fn run_in_mode_return();
}

/// Where the ecall that ends [`run`] comes back to.
pub(crate) fn return_address() -> u64 {
    run_in_mode_return as *const () as u64
}

/// Runs `function` in `mode`, on the same stack with translation off, and gives what it returns.
pub fn run(mode: Mode, function: extern "C" fn() -> u64) -> u64 {
    // SAFETY: the assembly above saves what the calling convention wants saved, and the trap
    // handler comes back to it from the ecall.
    unsafe { run_in_mode(mode.status(), function) }
}

/// Result of [`attempt`] for an access that raised no exception.
pub const NO_EXCEPTION: u64 = u64::MAX;

/// The cause of an access's exception, as a number that [`run`] can return.
pub fn cause(access: crate::csr::Access) -> u64 {
    access.err().unwrap_or(NO_EXCEPTION)
}

/// Runs `function` in `mode`, which is to return [`cause`]; gives the exception code, if any.
pub fn attempt(mode: Mode, function: extern "C" fn() -> u64) -> Option<u64> {
    Some(run(mode, function)).filter(|&code| code != NO_EXCEPTION)
}
