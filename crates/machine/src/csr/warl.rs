//! Which values WARL registers keep.

use riscv::csr::address_translation::{MODE, PPN, VMID_MAX, VMID_SHIFT};

use super::field::{envcfg, hstatus, status};
use crate::base::Paging;

/// A status value with SD as FS and VS make it.
pub const fn with_sd(value: u64) -> u64 {
    if value & status::FS == status::FS || value & status::VS == status::VS {
        value | status::SD
    } else {
        value
    }
}

/// Replaces the bits of a mask.
pub const fn replace(register: &mut u64, mask: u64, value: u64) {
    *register = *register & !mask | value & mask;
}

/// mstatus, of which the fields of a mask exist: the reserved encoding of MPP leaves MPP unchanged.
pub const fn machine_status(old: u64, value: u64, mask: u64) -> u64 {
    let value = without_interrupts(value & mask);
    if value & status::MPP == 2 << status::MPP_SHIFT {
        value & !status::MPP | old & status::MPP
    } else {
        value
    }
}

/// A status value in which SIE and MIE are zero while SDT and MDT disable traps ("Double Trap Control in `mstatus` Register").
pub const fn without_interrupts(value: u64) -> u64 {
    let mut cleared = 0;
    if value & status::SDT != 0 {
        cleared |= status::SIE;
    }
    if value & status::MDT != 0 {
        cleared |= status::MIE;
    }
    value & !cleared
}

/// satp and vsatp: a write with an unsupported mode has no effect at all.
pub const fn space(old: u64, value: u64, paging: Paging) -> u64 {
    if paging.supports(value) { value } else { old }
}

/// hgatp.VMID, of which 14 bits exist, and hgatp.PPN without its two low bits: the root table is 16 KiB.
const HGATP_FIELDS: u64 = VMID_MAX << VMID_SHIFT | PPN & !3;

/// hgatp: unlike satp's, the other fields are written whatever the mode; an unsupported mode leaves
/// the present one.
pub const fn guest_space(old: u64, value: u64, paging: Paging) -> u64 {
    let mode = if paging.supports(value) { value } else { old };
    mode & MODE | value & HGATP_FIELDS
}

/// A field of two bits of which an encoding is reserved: it leaves the field unchanged.
const fn without(old: u64, value: u64, field: u64, reserved: u64) -> u64 {
    if value & field == reserved {
        value & !field | old & field
    } else {
        value
    }
}

/// hstatus: the reserved encoding 1 of HUPMM is not kept.
pub const fn hypervisor_status(old: u64, value: u64) -> u64 {
    let value = value & hstatus::WRITABLE;
    without(old, value, hstatus::HUPMM, 1 << hstatus::HUPMM_SHIFT)
}

/// mseccfg, of which the fields of a mask exist.
pub const fn security(old: u64, value: u64, mask: u64) -> u64 {
    without(old, value & mask, envcfg::PMM, 1 << envcfg::PMM_SHIFT)
}

/// An envcfg register: the reserved encodings 2 of CBIE and 1 of PMM are not kept.
pub const fn environment(old: u64, value: u64, mask: u64) -> u64 {
    let value = without(old, value & mask, envcfg::PMM, 1 << envcfg::PMM_SHIFT);
    without(old, value, envcfg::CBIE, 2 << envcfg::CBIE_SHIFT)
}
