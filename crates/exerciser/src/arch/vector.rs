//! The vector registers, which a change of vCPU must keep.

use core::arch::asm;

use riscv::csr::status::VS_SHIFT;

/// The largest vector registers that are checked, in bytes.
pub const MAX_LENGTH: usize = 128;
/// Doublewords of all registers of that length.
pub const MAX_WORDS: usize = 32 * MAX_LENGTH / 8;

/// The vector CSRs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Control {
    pub vstart: u64,
    pub vcsr: u64,
    pub vl: u64,
    pub vtype: u64,
}

/// Sets `sstatus.VS` (0 to 3).
pub fn set_status(status: u64) {
    // SAFETY: the kernel itself uses no vectors.
    unsafe {
        asm!(
            "csrc sstatus, {clear}",
            "csrs sstatus, {set}",
            clear = in(reg) 3u64 << VS_SHIFT,
            set = in(reg) (status & 3) << VS_SHIFT,
            options(nostack),
        );
    }
}

/// Bytes of a vector register. VS must not be Off.
pub fn length() -> usize {
    let bytes: usize;
    // SAFETY: reading vlenb has no effect.
    unsafe {
        asm!(
            ".option push", ".option arch, +v",
            "csrr {}, vlenb",
            ".option pop",
            out(reg) bytes,
            options(nomem, nostack),
        );
    }
    bytes
}

/// Loads v0 to v31 and the CSRs, with the longest `vl` up to `control.vl` that `control.vtype` allows; returns what the CSRs then hold.
/// VS must not be Off.
pub fn load(values: &[u64; MAX_WORDS], control: Control) -> Control {
    let mut held = Control::default();
    // SAFETY: reads 32 registers, which the array has room for where registers are not longer than MAX_LENGTH; the kernel keeps
    // nothing in these registers.
    unsafe {
        asm!(
            ".option push", ".option arch, +v",
            "csrw vstart, zero",
            "vl8re8.v v0, ({at})",
            "add {at}, {at}, {eight}",
            "vl8re8.v v8, ({at})",
            "add {at}, {at}, {eight}",
            "vl8re8.v v16, ({at})",
            "add {at}, {at}, {eight}",
            "vl8re8.v v24, ({at})",
            "vsetvl {vl}, {vl}, {vtype}",
            "csrr {vtype}, vtype",
            "csrw vcsr, {vcsr}",
            "csrr {vcsr}, vcsr",
            "csrw vstart, {vstart}",
            "csrr {vstart}, vstart",
            ".option pop",
            at = inout(reg) values.as_ptr() => _,
            eight = in(reg) 8 * length(),
            vl = inout(reg) control.vl => held.vl,
            vtype = inout(reg) control.vtype => held.vtype,
            vcsr = inout(reg) control.vcsr => held.vcsr,
            vstart = inout(reg) control.vstart => held.vstart,
            options(nostack, readonly),
        );
    }
    held
}

/// Writes `value` to all elements of v0 to v31. VS must not be Off.
pub fn write(value: u64) {
    // SAFETY: the kernel keeps nothing in these registers.
    unsafe {
        asm!(
            ".option push", ".option arch, +v",
            "vsetvli {vl}, zero, e64, m8, ta, ma",
            "vmv.v.x v0, {value}",
            "vmv.v.x v8, {value}",
            "vmv.v.x v16, {value}",
            "vmv.v.x v24, {value}",
            ".option pop",
            vl = out(reg) _,
            value = in(reg) value,
            options(nomem, nostack),
        );
    }
}

/// Stores v0 to v31; returns the CSRs. VS must not be Off.
pub fn store(values: &mut [u64; MAX_WORDS]) -> Control {
    let mut held = Control::default();
    // SAFETY: writes 32 registers, which the array has room for where registers are not longer than MAX_LENGTH.
    unsafe {
        asm!(
            ".option push", ".option arch, +v",
            "csrr {vstart}, vstart",
            "csrr {vcsr}, vcsr",
            "csrr {vl}, vl",
            "csrr {vtype}, vtype",
            "csrw vstart, zero",
            "vs8r.v v0, ({at})",
            "add {at}, {at}, {eight}",
            "vs8r.v v8, ({at})",
            "add {at}, {at}, {eight}",
            "vs8r.v v16, ({at})",
            "add {at}, {at}, {eight}",
            "vs8r.v v24, ({at})",
            ".option pop",
            at = inout(reg) values.as_mut_ptr() => _,
            eight = in(reg) 8 * length(),
            vl = out(reg) held.vl,
            vtype = out(reg) held.vtype,
            vcsr = out(reg) held.vcsr,
            vstart = out(reg) held.vstart,
            options(nostack),
        );
    }
    held
}
