//! The registers that a change of vCPU must keep: floating point, and supervisor CSRs.

use core::arch::asm;

use riscv::csr::number;
use riscv::csr::status::FS_SHIFT;

/// Sets `sstatus.FS` (0 to 3).
pub fn set_floating_point_status(status: u64) {
    // SAFETY: the kernel itself uses no floating point.
    unsafe {
        asm!(
            "csrc sstatus, {clear}",
            "csrs sstatus, {set}",
            clear = in(reg) 3u64 << FS_SHIFT,
            set = in(reg) (status & 3) << FS_SHIFT,
            options(nostack),
        );
    }
}

/// Loads f0 to f31 and `fcsr`. FS must not be Off.
pub fn load_floating_point(values: &[u64; 32], control: u64) {
    // SAFETY: reads 32 words of the array; the kernel keeps nothing in these registers.
    unsafe {
        asm!(
            "fld f0, 0({values})",
            "fld f1, 8({values})",
            "fld f2, 16({values})",
            "fld f3, 24({values})",
            "fld f4, 32({values})",
            "fld f5, 40({values})",
            "fld f6, 48({values})",
            "fld f7, 56({values})",
            "fld f8, 64({values})",
            "fld f9, 72({values})",
            "fld f10, 80({values})",
            "fld f11, 88({values})",
            "fld f12, 96({values})",
            "fld f13, 104({values})",
            "fld f14, 112({values})",
            "fld f15, 120({values})",
            "fld f16, 128({values})",
            "fld f17, 136({values})",
            "fld f18, 144({values})",
            "fld f19, 152({values})",
            "fld f20, 160({values})",
            "fld f21, 168({values})",
            "fld f22, 176({values})",
            "fld f23, 184({values})",
            "fld f24, 192({values})",
            "fld f25, 200({values})",
            "fld f26, 208({values})",
            "fld f27, 216({values})",
            "fld f28, 224({values})",
            "fld f29, 232({values})",
            "fld f30, 240({values})",
            "fld f31, 248({values})",
            "csrw fcsr, {control}",
            values = in(reg) values.as_ptr(),
            control = in(reg) control,
            options(nostack, readonly),
        );
    }
}

/// Stores f0 to f31; returns `fcsr`. FS must not be Off.
pub fn store_floating_point(values: &mut [u64; 32]) -> u64 {
    let control;
    // SAFETY: writes 32 words of the array.
    unsafe {
        asm!(
            "fsd f0, 0({values})",
            "fsd f1, 8({values})",
            "fsd f2, 16({values})",
            "fsd f3, 24({values})",
            "fsd f4, 32({values})",
            "fsd f5, 40({values})",
            "fsd f6, 48({values})",
            "fsd f7, 56({values})",
            "fsd f8, 64({values})",
            "fsd f9, 72({values})",
            "fsd f10, 80({values})",
            "fsd f11, 88({values})",
            "fsd f12, 96({values})",
            "fsd f13, 104({values})",
            "fsd f14, 112({values})",
            "fsd f15, 120({values})",
            "fsd f16, 128({values})",
            "fsd f17, 136({values})",
            "fsd f18, 144({values})",
            "fsd f19, 152({values})",
            "fsd f20, 160({values})",
            "fsd f21, 168({values})",
            "fsd f22, 176({values})",
            "fsd f23, 184({values})",
            "fsd f24, 192({values})",
            "fsd f25, 200({values})",
            "fsd f26, 208({values})",
            "fsd f27, 216({values})",
            "fsd f28, 224({values})",
            "fsd f29, 232({values})",
            "fsd f30, 240({values})",
            "fsd f31, 248({values})",
            "csrr {control}, fcsr",
            values = in(reg) values.as_mut_ptr(),
            control = out(reg) control,
            options(nostack),
        );
    }
    control
}

/// Writes one of [`KEPT`] and returns what it then holds, as some bits of some may be read-only.
pub fn set_kept(number: usize, value: u64) -> u64 {
    // SAFETY: registers that neither the kernel nor the hardware uses while no trap is under way: the
    // trap's own are written by each trap, and read by its entry alone.
    unsafe {
        match number {
            0 => asm!("csrw sscratch, {}", in(reg) value, options(nostack)),
            1 => asm!("csrw scounteren, {}", in(reg) value, options(nostack)),
            2 => asm!("csrw senvcfg, {}", in(reg) value & 0xf0, options(nostack)),
            3 => asm!("csrw siselect, {}", in(reg) 0x70 + (value & 3) * 2, options(nostack)),
            _ => {
                asm!("csrw {1}, {0}", in(reg) value | 1 << 62, const number::STIMECMP, options(nostack))
            }
        }
    }
    kept(number)
}

/// Reads one of [`KEPT`].
pub fn kept(number: usize) -> u64 {
    let value;
    // SAFETY: reading these has no effect.
    unsafe {
        match number {
            0 => asm!("csrr {}, sscratch", out(reg) value, options(nostack)),
            1 => asm!("csrr {}, scounteren", out(reg) value, options(nostack)),
            2 => asm!("csrr {}, senvcfg", out(reg) value, options(nostack)),
            3 => asm!("csrr {}, siselect", out(reg) value, options(nostack)),
            _ => asm!("csrr {}, {}", out(reg) value, const number::STIMECMP, options(nostack)),
        }
    }
    value
}

/// The supervisor registers that no trap changes: the last is there with Sstc only.
pub const KEPT: [&str; 5] = ["sscratch", "scounteren", "senvcfg", "siselect", "stimecmp"];

/// Value of `stimecmp` after a sleep: the sleep's own, which only the sleep knows.
pub fn kept_after_sleep(has_sstc: bool) -> u64 {
    if has_sstc { kept(4) } else { 0 }
}
