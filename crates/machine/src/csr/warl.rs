//! Which values WARL registers keep.

use super::field::{envcfg, status};

/// A status value with SD as FS makes it.
pub(super) const fn with_sd(value: u64) -> u64 {
    if value & status::FS == status::FS {
        value | status::SD
    } else {
        value
    }
}

/// Replaces the bits of a mask.
pub(super) const fn replace(register: &mut u64, mask: u64, value: u64) {
    *register = *register & !mask | value & mask;
}

/// mstatus: the reserved encoding of MPP leaves MPP unchanged.
pub(super) const fn machine_status(old: u64, value: u64) -> u64 {
    let value = value & status::MACHINE;
    if value & status::MPP == 2 << status::MPP_SHIFT {
        value & !status::MPP | old & status::MPP
    } else {
        value
    }
}

/// satp's modes: Bare, Sv39, Sv48. The same numbers are hgatp's.
const fn mode_is_supported(atp: u64) -> bool {
    matches!(atp >> 60, 0 | 8 | 9)
}

/// satp and vsatp: a write with an unsupported mode has no effect at all.
pub(super) const fn space(old: u64, value: u64) -> u64 {
    if mode_is_supported(value) { value } else { old }
}

/// hgatp: fourteen bits of VMID; the root table is 16 KiB, so its page number's two low bits read
/// as zero.
pub(super) const fn guest_space(old: u64, value: u64) -> u64 {
    if mode_is_supported(value) {
        value & !(3 << 58) & !3
    } else {
        old
    }
}

/// An envcfg register: the reserved CBIE encoding 2 is not kept.
pub(super) const fn environment(old: u64, value: u64, mask: u64) -> u64 {
    let value = value & mask;
    if value & envcfg::CBIE == 2 << envcfg::CBIE_SHIFT {
        value & !envcfg::CBIE | old & envcfg::CBIE
    } else {
        value
    }
}
