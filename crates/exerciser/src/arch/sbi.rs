//! Calls to the supervisor execution environment (SBI specification 2.0, chapter 3: binary encoding).

use core::arch::asm;
use exerciser::sbi::Return;
use riscv::sbi::base;
use riscv::sbi::reset::{COLD_REBOOT, SYSTEM_RESET};
use riscv::sbi::{DBCN, HSM, SRST, TIME};

/// Calls function `function` of extension `extension`.
///
/// Registers other than a0 and a1 are kept by the callee (§3).
pub fn call(extension: u64, function: u64, arguments: [u64; 6]) -> Return {
    let [a0, a1, a2, a3, a4, a5] = arguments;
    let (error, value): (u64, u64);
    // SAFETY: the environment keeps all registers but a0 and a1. A call may read or write memory that its
    // arguments name; every caller in the kernel names its own, and the hostile exercises name scrap.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") a0 => error,
            inlateout("a1") a1 => value,
            in("a2") a2, in("a3") a3, in("a4") a4, in("a5") a5,
            in("a6") function, in("a7") extension,
        );
    }
    Return {
        error: error.cast_signed(),
        value,
    }
}

/// Tests whether the environment has this extension (Base, function 3).
pub fn probe(extension: u64) -> bool {
    let answer = call(
        riscv::sbi::BASE,
        base::PROBE_EXTENSION,
        [extension, 0, 0, 0, 0, 0],
    );
    answer.error == 0 && answer.value != 0
}

/// Which implementation the environment is (Base, function 1).
pub fn implementation() -> u64 {
    call(riscv::sbi::BASE, base::IMPLEMENTATION_ID, [0; 6]).value
}

/// Writes bytes to the debug console; returns how many were taken.
pub fn console_write(bytes: &[u8]) -> Option<usize> {
    let address = bytes.as_ptr().addr() as u64;
    let answer = call(DBCN, 0, [bytes.len() as u64, address, 0, 0, 0, 0]);
    (answer.error == 0).then_some(answer.value as usize)
}

/// Reads at most one byte from the debug console.
pub fn console_read() -> Option<u8> {
    let mut byte = 0u8;
    let answer = call(DBCN, 1, [1, (&raw mut byte).addr() as u64, 0, 0, 0, 0]);
    (answer.error == 0 && answer.value == 1).then(|| core::hint::black_box(byte))
}

/// Sets the timer where Sstc is not offered.
pub fn set_timer(ticks: u64) {
    call(TIME, 0, [ticks, 0, 0, 0, 0, 0]);
}

/// Starts a hart at `address` with `opaque` in a1.
pub fn hart_start(hart: u64, address: u64, opaque: u64) -> Return {
    call(HSM, 0, [hart, address, opaque, 0, 0, 0])
}

/// Stops this hart; returns only where that fails.
pub fn hart_stop() -> Return {
    call(HSM, 1, [0; 6])
}

/// The state of a hart (HSM function 2): 0 started, 1 stopped, 2 and 3 on the way.
pub fn hart_status(hart: u64) -> Return {
    call(HSM, 2, [hart, 0, 0, 0, 0, 0])
}

/// Turns the computer off. Where that fails this hart sleeps.
pub fn shutdown() -> ! {
    call(SRST, 0, [0; 6]);
    loop {
        super::csr::wait_for_interrupt();
    }
}

/// Asks for a cold reboot; returns only where that fails.
pub fn reboot() -> Return {
    reset(COLD_REBOOT)
}

/// Asks for a reset of this type; returns only where that fails.
pub fn reset(kind: u64) -> Return {
    call(SRST, SYSTEM_RESET, [kind, 0, 0, 0, 0, 0])
}
