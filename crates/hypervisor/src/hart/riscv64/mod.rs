//! The instructions of a RISC-V hart: all of the hypervisor's assembly.

pub mod copy;
pub mod csr;
pub mod device;
pub mod entry;
pub mod fence;
pub mod trial;
mod unprivileged;
mod vector;
mod world;

pub use unprivileged::fetch_halfword;
pub use vector::{vector_restore, vector_save, vector_save_control};
pub use world::{enter_guest, float_restore, float_save, trap_vector};

/// Stops the hart until an interrupt that `sie` enables is pending; none is taken, since sstatus.SIE stays 0.
#[inline]
pub fn wait_for_interrupt() {
    // SAFETY: WFI only stalls; with sstatus.SIE = 0 it resumes without a trap (privileged architecture, "WFI").
    unsafe { core::arch::asm!("wfi", options(nomem, nostack)) };
}

/// Counts down to zero with two instructions a step, at least one step.
#[inline(always)]
pub fn count_down(steps: u64) {
    // SAFETY: the loop changes one register, which it owns, and ends after its steps.
    unsafe {
        core::arch::asm!(
            "2: addi {left}, {left}, -1",
            "bnez {left}, 2b",
            left = inout(reg) steps.max(1) => _,
            options(nomem, nostack),
        );
    }
}

/// Value of this hart's last [`set_pointer`].
#[inline]
#[must_use]
pub fn pointer() -> *const () {
    let pointer;
    // SAFETY: reading tp changes nothing; it is written by `set_pointer` and by the first instructions of a hart only.
    unsafe {
        core::arch::asm!("mv {0}, tp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// Keeps a pointer for this hart.
pub fn set_pointer(pointer: *const ()) {
    // SAFETY: tp is reserved for this (the hypervisor has no thread-local storage).
    unsafe { core::arch::asm!("mv tp, {0}", in(reg) pointer, options(nostack)) };
}

/// Calls the firmware: a0 and a1 as it leaves them (SBI, "Binary Encoding").
#[must_use]
pub fn call_firmware(extension: u64, function: u64, arguments: [u64; 5]) -> (i64, u64) {
    let error: i64;
    let value: u64;
    // SAFETY: an SBI call preserves all registers but a0 and a1; the functions used here touch no memory of ours, or
    // read only what their arguments name.
    unsafe {
        core::arch::asm!(
            "ecall",
            inlateout("a0") arguments[0] => error,
            inlateout("a1") arguments[1] => value,
            in("a2") arguments[2],
            in("a3") arguments[3],
            in("a4") arguments[4],
            in("a6") function,
            in("a7") extension,
            options(nostack)
        );
    }
    (error, value)
}

/// Stores to memory come before what is then stored to a device.
#[inline]
pub fn memory_before_devices() {
    // SAFETY: a fence changes no memory.
    unsafe { core::arch::asm!("fence w, o", options(nostack)) };
}

/// A store to a device comes before what is then stored to memory.
#[inline]
pub fn devices_before_memory() {
    // SAFETY: a fence changes no memory.
    unsafe { core::arch::asm!("fence o, w", options(nostack)) };
}

/// Stalls while the doubleword at `address` is `value`, at most for the short time of WRS.STO.
///
/// # Safety
/// The address must be that of an aligned doubleword of memory, and the hart must have Zawrs.
pub unsafe fn stall_on_doubleword(address: u64, value: u64) {
    // SAFETY: LR only reads, and leaves a reservation behind; WRS.STO only stalls.
    unsafe {
        core::arch::asm!(
            ".option push", ".option arch, +a, +zawrs",
            "lr.d {0}, ({1})", "bne {0}, {2}, 1f", "wrs.sto", "1:", ".option pop",
            out(reg) _, in(reg) address, in(reg) value, options(nostack)
        );
    }
}

/// Stalls like [`stall_on_doubleword`], on a word; `value` is sign-extended.
///
/// # Safety
/// The address must be that of an aligned word of memory, and the hart must have Zawrs.
pub unsafe fn stall_on_word(address: u64, value: u64) {
    // SAFETY: as for `stall_on_doubleword`.
    unsafe {
        core::arch::asm!(
            ".option push", ".option arch, +a, +zawrs",
            "lr.w {0}, ({1})", "bne {0}, {2}, 1f", "wrs.sto", "1:", ".option pop",
            out(reg) _, in(reg) address, in(reg) value, options(nostack)
        );
    }
}

/// hgeip of the hart whose mhartid is `hart`, by the papers' proposed instruction.
///
/// # Safety
/// The hart that runs this must have the extension.
#[must_use]
pub unsafe fn guest_files_pending(hart: u64) -> u64 {
    let pending: u64;
    // SAFETY: the instruction changes nothing but its destination; the caller answers for its being there.
    unsafe {
        core::arch::asm!(
            ".insn r 0x73, 0, 0x56, {0}, {1}, x0",
            out(reg) pending, in(reg) hart, options(nomem, nostack)
        );
    }
    pending
}
