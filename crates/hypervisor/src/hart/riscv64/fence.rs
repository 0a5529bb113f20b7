//! Fences over the guests' translations (privileged architecture, "Hypervisor Memory-Management Fence Instructions").
//!
//! HFENCE.GVMA need not drop entries that hold a whole VS-stage translation, so a change of the G-stage is always
//! followed by both fences.

/// Drops every VS-stage translation of the hart that is tagged with the VMID in hgatp.
#[inline]
pub fn guest_virtual_all() {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        core::arch::asm!(
            ".option push",
            ".option arch, +h",
            "hfence.vvma zero, zero",
            ".option pop",
            options(nostack)
        );
    }
}

/// Drops every G-stage translation of `vmid`.
#[inline]
pub fn guest_physical_of(vmid: u64) {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        core::arch::asm!(
            ".option push", ".option arch, +h", "hfence.gvma zero, {0}", ".option pop",
            in(reg) vmid, options(nostack)
        );
    }
}

/// Drops every G-stage translation of every VMID.
#[inline]
pub fn guest_physical_all() {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        core::arch::asm!(
            ".option push",
            ".option arch, +h",
            "hfence.gvma zero, zero",
            ".option pop",
            options(nostack)
        );
    }
}

/// Makes instructions written by this hart visible to its own fetches (FENCE.I).
#[inline]
pub fn instructions() {
    // SAFETY: a fence changes no memory.
    unsafe { core::arch::asm!("fence.i", options(nostack)) };
}
