//! The control and status registers that the exerciser itself uses, by number (privileged specification
//! table of supervisor CSRs; AIA §2.2; Sstc).

use core::arch::asm;

use riscv::csr::{number, status};

/// Reads a CSR by number.
macro_rules! read {
    ($number:ident) => {{
        let value: u64;
        // SAFETY: reading this register has no effect on memory or control flow.
        unsafe { asm!("csrr {}, {}", out(reg) value, const number::$number, options(nostack)) };
        value
    }};
}

/// Writes a CSR by number.
macro_rules! write {
    ($number:ident, $value:expr) => {{
        let value: u64 = $value;
        // SAFETY: the callers in this module write values that keep the kernel's own invariants.
        unsafe { asm!("csrw {1}, {0}", in(reg) value, const number::$number, options(nostack)) };
    }};
}

pub use riscv::csr::interrupt::{SEI as EXTERNAL, SSI as SOFTWARE, STI as TIMER};

/// Time, in ticks of the timebase.
pub fn time() -> u64 {
    read!(TIME)
}

/// Sets the floating-point unit to Initial, so that sandboxed instructions may use it.
pub fn enable_floating_point() {
    // SAFETY: FS is the guest's own to set; the kernel itself uses no floating point.
    unsafe { asm!("csrs sstatus, {}", in(reg) status::FS_INITIAL, options(nostack)) };
}

/// Sets the next timer interrupt (Sstc); `u64::MAX` means never.
pub fn set_timer_compare(ticks: u64) {
    write!(STIMECMP, ticks);
}

/// Interrupts enabled one by one.
pub fn interrupt_enables() -> u64 {
    read!(SIE)
}

/// Sets which interrupts are enabled; they are taken only while [`take_interrupts`] runs or SIE is on.
pub fn set_interrupt_enables(mask: u64) {
    write!(SIE, mask);
}

/// Clears pending bits that software can clear.
pub fn clear_pending(mask: u64) {
    // SAFETY: fewer pending interrupts disturb nothing.
    unsafe { asm!("csrc sip, {}", in(reg) mask, options(nostack)) };
}

/// Sets pending bits that software can set.
pub fn set_pending(mask: u64) {
    // SAFETY: interrupts are taken by handlers that expect them at any time, or not at all.
    unsafe { asm!("csrs sip, {}", in(reg) mask, options(nostack)) };
}

/// Lets pending interrupts be taken, then closes them again.
pub fn take_interrupts() {
    // SAFETY: the trap entry keeps every register; handlers touch only atomics and the interrupt file.
    unsafe { asm!("csrsi sstatus, 2", "nop", "csrci sstatus, 2") };
}

/// Opens interrupts; returns whether they were open.
pub fn open_interrupts() -> bool {
    let before: u64;
    // SAFETY: as for `take_interrupts`.
    unsafe { asm!("csrrsi {}, sstatus, 2", out(reg) before) };
    before & status::SIE != 0
}

/// Closes interrupts; returns whether they were open.
pub fn close_interrupts() -> bool {
    let before: u64;
    // SAFETY: closing interrupts breaks nothing.
    unsafe { asm!("csrrci {}, sstatus, 2", out(reg) before) };
    before & status::SIE != 0
}

/// Waits until an enabled interrupt is pending (or for no reason at all); takes none. The instruction is not the last one of its page: there QEMU 10.0
/// reports an address that is a page too high if it traps, and the guest goes on at the wrong place.
pub fn wait_for_interrupt() {
    // SAFETY: WFI changes no state.
    unsafe { asm!(".balign 8", "wfi") };
}

/// A hint that this hart spins (Zihintpause; a fence elsewhere).
pub fn pause() {
    // SAFETY: a hint without effect on state. The encoding is PAUSE: FENCE with pred = W, succ = 0.
    unsafe { asm!(".word 0x0100000f", options(nomem, nostack)) };
}

/// Orders instruction fetches of this hart after its earlier stores.
pub fn fence_instructions() {
    // SAFETY: a fence only.
    unsafe { asm!("fence.i") };
}

/// `sip`'s software bit off.
pub fn clear_software_interrupt() {
    // SAFETY: clears this hart's own pending bit.
    unsafe { asm!("csrc sip, {}", in(reg) SOFTWARE, options(nostack)) };
}

/// Translation off (`satp` = 0) or on with the given `satp` value. Nothing is fenced.
///
/// # Safety
/// The table must map the running code, its stack and its data to where they are.
pub unsafe fn set_translation(satp: u64) {
    // SAFETY: by the caller's promise the next fetch, load and store find what they found before.
    unsafe { asm!("csrw satp, {}", in(reg) satp) };
}

/// As many local fences as `turns` says, at least one: three instructions each, and a few that are always the same.
#[inline(never)]
pub fn fence_often(turns: u64) {
    // SAFETY: fences, and a register of the block's own.
    unsafe {
        asm!(
            "2: sfence.vma",
            "addi {0}, {0}, -1",
            "bnez {0}, 2b",
            inout(reg) turns.max(1) => _,
            options(nostack)
        );
    }
}

/// Interrupts pending one by one.
pub fn pending() -> u64 {
    read!(SIP)
}

/// The counters that have passed zero, a bit each (`scountovf`; Sscofpmf).
pub fn counter_overflows() -> u64 {
    read!(SCOUNTOVF)
}

/// `satp` as it is.
pub fn translation() -> u64 {
    read!(SATP)
}

/// Local fence of one address space, or of one page in every address space, or of everything.
pub fn fence_translation(address: Option<u64>, asid: Option<u64>) {
    // SAFETY: fences only.
    unsafe {
        match (address, asid) {
            (Some(address), Some(asid)) => {
                asm!("sfence.vma {}, {}", in(reg) address, in(reg) asid);
            }
            (Some(address), None) => asm!("sfence.vma {}, zero", in(reg) address),
            (None, Some(asid)) => asm!("sfence.vma zero, {}", in(reg) asid),
            (None, None) => asm!("sfence.vma"),
        }
    }
}

/// The indirect register `select` of this hart's interrupt file (AIA §2.1).
pub fn read_indirect(select: u64) -> u64 {
    write!(SISELECT, select);
    read!(SIREG)
}

/// Writes the indirect register `select` of this hart's interrupt file.
pub fn write_indirect(select: u64, value: u64) {
    write!(SISELECT, select);
    write!(SIREG, value);
}

/// Claims the most urgent pending and enabled external interrupt of this hart's file; 0 when there is none
/// (AIA §3.9: `stopei`, identity in bits 26:16).
pub fn claim_external() -> u64 {
    let value: u64;
    // SAFETY: claiming clears a pending bit of this hart's own interrupt file.
    unsafe { asm!("csrrw {}, {}, zero", out(reg) value, const number::STOPEI, options(nostack)) };
    value >> riscv::imsic::TOPEI_IDENTITY_SHIFT
}
