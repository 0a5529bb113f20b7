//! The papers' proposed hardware: docs/reference/extensions.md.

/// hplegap: greatest number of cycles between two PAUSEs of a loop.
pub const HPLEGAP: usize = 0x6c0;
/// hplewindow: greatest number of cycles that a loop of PAUSEs may last.
pub const HPLEWINDOW: usize = 0x6c1;
/// hpurge: the harts that must purge a vCPU's translations.
pub const HPURGE: usize = 0x6c2;

/// PAUSE, as a pause-loop exit reports it.
pub const PAUSE: u64 = 0x0100_000f;

/// The global pending test: hgeip of any hart, or the cause of the exception.
pub fn pending_of(hart: u64) -> crate::csr::Access {
    crate::trap::clear();
    let value: u64;
    // SAFETY: writes its destination register only; an exception is skipped by the trap handler.
    unsafe {
        core::arch::asm!("li {0}, 0", ".insn r 0x73, 0, 0x56, {0}, {1}, x0",
            out(reg) value, in(reg) hart);
    }
    crate::trap::taken().map_or(Ok(value), |trap| Err(trap.cause))
}

/// The broadcast fence of everything; the cause of the exception, if there was one.
pub fn fence_everywhere() -> Option<u64> {
    crate::trap::clear();
    // SAFETY: drops translations; an exception is skipped by the trap handler.
    unsafe { core::arch::asm!(".insn r 0x73, 0, 0x57, x0, x0, x0") };
    crate::trap::taken().map(|trap| trap.cause)
}

/// Executes `count` PAUSEs, one in each round of a loop of three instructions; `true` if one of
/// them raised an exception.
pub fn pause(count: u64) -> bool {
    crate::trap::clear();
    // SAFETY: changes nothing but its operand.
    unsafe {
        core::arch::asm!(".balign 64", "1:", ".4byte 0x0100000f", "addi {0}, {0}, -1", "bnez {0}, 1b",
            inout(reg) count => _);
    }
    crate::trap::taken().is_some()
}
