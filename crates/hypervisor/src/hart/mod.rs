//! The thin layer over one hart: registers, fences, world switch, firmware calls.

pub mod copy;
pub mod counters;
pub mod csr;
pub mod custom;
pub mod fence;
pub mod firmware;
pub mod interrupt_file;
pub mod unprivileged;
pub mod world;

/// Stops the hart until an interrupt that `sie` enables is pending; none is taken, since sstatus.SIE stays 0.
#[inline]
pub fn wait_for_interrupt() {
    // SAFETY: WFI only stalls; with sstatus.SIE = 0 it resumes without a trap (privileged architecture, "WFI").
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) };
}

/// The hart's cycle counter.
#[inline]
#[must_use]
pub fn cycles() -> u64 {
    csr::read::<{ csr::number::CYCLE }>()
}

/// The board's time, in ticks of the timebase.
#[inline]
#[must_use]
pub fn time() -> u64 {
    csr::read::<{ csr::number::TIME }>()
}
