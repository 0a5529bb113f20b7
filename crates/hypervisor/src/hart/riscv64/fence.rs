//! Fences over the guests' translations (privileged architecture, "Hypervisor Memory-Management Fence Instructions").
//!
//! HFENCE.GVMA need not drop what is known of the VS-stage alone. What leads through a G-stage translation that it names it does drop: "any
//! entry whose guest virtual address maps to a guest physical address that matches the HFENCE.GVMA's address and VMID arguments must
//! be flushed".

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

/// Drops those of them that lead from the page at the guest-virtual `address`; of the address space `asid` alone, if one is given.
#[inline]
pub fn guest_virtual_page(address: u64, asid: Option<u16>) {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        match asid {
            Some(asid) => core::arch::asm!(
                ".option push", ".option arch, +h", "hfence.vvma {0}, {1}", ".option pop",
                in(reg) address, in(reg) u64::from(asid), options(nostack)
            ),
            None => core::arch::asm!(
                ".option push", ".option arch, +h", "hfence.vvma {0}, zero", ".option pop",
                in(reg) address, options(nostack)
            ),
        }
    }
}

/// Drops those of them that belong to the address space `asid`.
#[inline]
pub fn guest_virtual_space(asid: u16) {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        core::arch::asm!(
            ".option push", ".option arch, +h", "hfence.vvma zero, {0}", ".option pop",
            in(reg) u64::from(asid), options(nostack)
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

/// Drops what leads to the page at the guest-physical `address` by `vmid`.
#[inline]
pub fn guest_physical_page(address: u64, vmid: u64) {
    // SAFETY: a fence only drops cached translations.
    unsafe {
        core::arch::asm!(
            ".option push", ".option arch, +h", "hfence.gvma {0}, {1}", ".option pop",
            in(reg) address >> 2, in(reg) vmid, options(nostack)
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

/// Orders accesses to memory and to devices, each with each.
#[inline]
pub fn devices() {
    // SAFETY: a fence changes nothing.
    unsafe { core::arch::asm!("fence iorw, iorw", options(nostack)) };
}
