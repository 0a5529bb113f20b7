//! Instructions that may not be there. Each stands where the trap vector steps over what faults (see `unprivileged.rs`), so
//! that a trial tells by `None` that there is no such thing.

use crate::hart::outcome::Outcome;

macro_rules! trials {
    ($($(#[$doc:meta])* $name:ident($argument:ident) = $symbol:literal;)+) => {
        $(
            unsafe extern "C" {
                #[link_name = $symbol]
                fn $argument(argument: u64) -> Outcome;
            }

            $(#[$doc])*
            #[must_use]
            fn $name(argument: u64) -> Option<u64> {
                // SAFETY: the routine changes three temporary registers; what its instruction changes is said where it is
                // offered below. A fault sets the flag and nothing else.
                let outcome = unsafe { $argument(argument) };
                (outcome.faulted == 0).then_some(outcome.value)
            }
        )+
    };
}

trials! {
    try_wait(raw_wait) = "hypervisor_try_wait";
    try_timer(raw_timer) = "hypervisor_try_timer";
    try_state_enable(raw_state_enable) = "hypervisor_try_state_enable";
    try_overflow(raw_overflow) = "hypervisor_try_overflow";
    try_hypervisor(raw_hypervisor) = "hypervisor_try_hypervisor";
    try_interrupt_file(raw_interrupt_file) = "hypervisor_try_interrupt_file";
    try_zero(raw_zero) = "hypervisor_try_zero";
    try_seed(raw_seed) = "hypervisor_try_seed";
    try_pending_test(raw_pending_test) = "hypervisor_try_pending_test";
    try_pause_loop(raw_pause_loop) = "hypervisor_try_pause_loop";
    try_purge_mask(raw_purge_mask) = "hypervisor_try_purge_mask";
    try_lock_holder(raw_lock_holder) = "hypervisor_try_lock_holder";
    try_vector_length(raw_vector_length) = "hypervisor_try_vector_length";
}

/// WRS.STO, without a reservation: it ends at once.
#[must_use]
pub fn wait_on_reservation() -> Option<u64> {
    try_wait(0)
}

/// stimecmp.
#[must_use]
pub fn timer() -> Option<u64> {
    try_timer(0)
}

/// hstateen0.
#[must_use]
pub fn state_enable() -> Option<u64> {
    try_state_enable(0)
}

/// scountovf.
#[must_use]
pub fn counter_overflow() -> Option<u64> {
    try_overflow(0)
}

/// vlenb, while sstatus.VS is not Off.
#[must_use]
pub fn vector_length() -> Option<u64> {
    try_vector_length(0)
}

/// hgatp.
#[must_use]
pub fn hypervisor() -> Option<u64> {
    try_hypervisor(0)
}

/// stopei, which is only read: nothing is claimed.
#[must_use]
pub fn interrupt_file() -> Option<u64> {
    try_interrupt_file(0)
}

/// CBO.ZERO on the block at the start of a page.
#[must_use]
pub fn zero_block(page: *mut [u8; 4096]) -> Option<u64> {
    try_zero(page.addr() as u64)
}

/// The seed register, written as it must be.
#[must_use]
pub fn seed() -> Option<u64> {
    try_seed(0)
}

/// The pending test of hart 0.
#[must_use]
pub fn pending_test() -> Option<u64> {
    try_pending_test(0)
}

/// hpurge.
#[must_use]
pub fn purge_mask() -> Option<u64> {
    try_purge_mask(0)
}

/// hplegap.
#[must_use]
pub fn pause_loop() -> Option<u64> {
    try_pause_loop(0)
}

/// hlockholder.
#[must_use]
pub fn lock_holder() -> Option<u64> {
    try_lock_holder(0)
}
