//! Extensions that all harts have, or none uses.
//!
//! The first hart decides by the device tree and its own trials, before anything of them is used. A later hart that lacks one is refused.

use core::sync::atomic::{AtomicBool, Ordering};

static INTERRUPT_FILES: AtomicBool = AtomicBool::new(true);
static SUPERVISOR_TIMER: AtomicBool = AtomicBool::new(true);

/// Chooses: interrupt files with the registers of Ssaia, and timers of the supervisor level (Sstc).
pub fn choose(interrupt_files: bool, supervisor_timer: bool) {
    INTERRUPT_FILES.store(interrupt_files, Ordering::Relaxed);
    SUPERVISOR_TIMER.store(supervisor_timer, Ordering::Relaxed);
}

/// Returns true if harts have interrupt files, and the registers of Ssaia.
#[must_use]
#[inline]
pub fn has_interrupt_files() -> bool {
    INTERRUPT_FILES.load(Ordering::Relaxed)
}

/// Returns true if harts have `stimecmp` and `vstimecmp` (Sstc). Otherwise the firmware sets the harts' timers.
#[must_use]
#[inline]
pub fn has_supervisor_timer() -> bool {
    SUPERVISOR_TIMER.load(Ordering::Relaxed)
}
