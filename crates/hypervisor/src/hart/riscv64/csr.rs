//! Access to control and status registers.

/// Reads the register numbered `N`.
#[inline(always)]
#[must_use]
pub fn read<const N: u16>() -> u64 {
    let value: u64;
    // SAFETY: reading a CSR of HS-mode changes no memory; every number used stands in `number`. The block is not
    // marked `pure`, so reads of counters and pending bits are not merged or dropped.
    unsafe { core::arch::asm!("csrr {0}, {1}", out(reg) value, const N, options(nostack)) };
    value
}

/// Writes the register numbered `N`.
///
/// # Safety
/// The write must keep what the compiler relies on: no trap may be enabled whose handler is not in place, and no
/// translation of the hypervisor's own addresses may change.
#[inline(always)]
pub unsafe fn write<const N: u16>(value: u64) {
    // SAFETY: the caller answers for the effect of the register.
    unsafe { core::arch::asm!("csrw {1}, {0}", in(reg) value, const N, options(nostack)) };
}

/// Writes the register numbered `N` and returns its former value, in one instruction.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub unsafe fn swap<const N: u16>(value: u64) -> u64 {
    let old: u64;
    // SAFETY: the caller answers for the effect of the register.
    unsafe {
        core::arch::asm!("csrrw {0}, {2}, {1}", out(reg) old, in(reg) value, const N, options(nostack))
    };
    old
}

/// Sets the bits of `mask` in the register numbered `N`.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub unsafe fn set<const N: u16>(mask: u64) {
    // SAFETY: the caller answers for the effect of the register.
    unsafe { core::arch::asm!("csrs {1}, {0}", in(reg) mask, const N, options(nostack)) };
}

/// Clears the bits of `mask` in the register numbered `N`.
///
/// # Safety
/// As for [`write`].
#[inline(always)]
pub unsafe fn clear<const N: u16>(mask: u64) {
    // SAFETY: the caller answers for the effect of the register.
    unsafe { core::arch::asm!("csrc {1}, {0}", in(reg) mask, const N, options(nostack)) };
}
