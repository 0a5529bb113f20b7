//! The papers' proposed hardware, where the computer has it (docs/extensions.md).
//!
//! Every one of these is an illegal instruction on a hart that does not have the extension: the callers look first
//! (`capabilities`).

use super::{csr, isa};

/// hplegap: cycles after which a PAUSE begins a new loop.
const GAP: u16 = 0x6C0;
/// hplewindow: cycles after which a loop exits; 0 is never.
const WINDOW: u16 = 0x6C1;

/// hpurge: the harts where the running vCPU must not use what was cached before, a bit for each mhartid.
const PURGE_MASK: u16 = 0x6C2;

/// Xen's and KVM's values (paper 004 §3).
const USUAL_GAP: u64 = 128;
const USUAL_WINDOW: u64 = 4096;

/// Sets how close PAUSEs must follow each other to be one loop.
///
/// # Safety
/// The hart must have [`PauseLoopExit`](super::capabilities::Capability::PauseLoopExit).
pub unsafe fn open_pause_loops() {
    // SAFETY: the caller answers for the register's being there; it concerns guests alone.
    unsafe { csr::write::<GAP>(USUAL_GAP) };
}

/// Lets pause loops exit, or not.
///
/// # Safety
/// The hart must have [`PauseLoopExit`](super::capabilities::Capability::PauseLoopExit).
pub unsafe fn set_pause_loops(exit: bool) {
    // SAFETY: as for `open_pause_loops`.
    unsafe { csr::write::<WINDOW>(if exit { USUAL_WINDOW } else { 0 }) };
}

/// Sets what the hart remembers of the fences of the vCPU that it runs.
///
/// # Safety
/// The hart must have [`PurgeMask`](super::capabilities::Capability::PurgeMask).
pub unsafe fn set_purge_mask(mask: u64) {
    // SAFETY: as for `open_pause_loops`.
    unsafe { csr::write::<PURGE_MASK>(mask) };
}

/// What the hart remembers of the fences of the vCPU that it runs. Only a hart that has
/// [`PurgeMask`](super::capabilities::Capability::PurgeMask) may be asked.
#[must_use]
pub fn purge_mask() -> u64 {
    csr::read::<PURGE_MASK>()
}

/// hgeip of the hart whose mhartid is `hart`: OTPI of paper 002 for the guest files of any hart.
///
/// # Safety
/// The hart that runs this must have [`PendingTest`](super::capabilities::Capability::PendingTest).
#[must_use]
pub unsafe fn guest_files_pending(hart: u64) -> u64 {
    // SAFETY: the caller answers for the extension.
    unsafe { isa::guest_files_pending(hart) }
}
