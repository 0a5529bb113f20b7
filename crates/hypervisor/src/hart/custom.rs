//! The papers' proposed hardware, where the computer has it (docs/reference/extensions.md).
//!
//! Every one of these is an illegal instruction on a hart that does not have the extension: the callers look first
//! (`capabilities`).

use super::csr::{self, number};
use super::isa;

/// Lets pause loops exit whose PAUSEs follow each other within `gap` cycles, once they are `window` cycles old; never where that is 0.
///
/// # Safety
/// The hart must have [`PauseLoopExit`](super::capabilities::Capability::PauseLoopExit).
pub unsafe fn set_pause_loops(gap: u32, window: u32) {
    // SAFETY: the caller answers for the registers' being there; they concern guests alone.
    unsafe {
        csr::write::<{ number::HPLEGAP }>(gap.into());
        csr::write::<{ number::HPLEWINDOW }>(window.into());
    }
}

/// Sets the mask of the fences that the hart's vCPU executed.
///
/// # Safety
/// The hart must have [`PurgeMask`](super::capabilities::Capability::PurgeMask).
pub unsafe fn set_purge_mask(mask: u64) {
    // SAFETY: as for `set_pause_loops`.
    unsafe { csr::write::<{ number::HPURGE }>(mask) };
}

/// Mask of the fences that the hart's vCPU executed. The hart must have
/// [`PurgeMask`](super::capabilities::Capability::PurgeMask).
#[must_use]
pub fn purge_mask() -> u64 {
    csr::read::<{ number::HPURGE }>()
}

/// The VMID of the vCPU that holds the lock whose word is at the host-physical address `lock`, or whose turn it is there; 0 if that is not
/// known.
///
/// # Safety
/// The hart must have [`LockHolder`](super::capabilities::Capability::LockHolder).
#[must_use]
pub unsafe fn lock_holder(lock: u64) -> u64 {
    // SAFETY: the caller answers for the register's being there; the machine reads the word and changes nothing.
    unsafe { csr::write::<{ number::HLOCKHOLDER }>(lock) };
    csr::read::<{ number::HLOCKHOLDER }>()
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
