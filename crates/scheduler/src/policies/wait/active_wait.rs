//! `active-wait-all`: the conventional method that paper 002 measured itself against (§2, §3.5, §5.3).
//!
//! As under `host-interrupt-all`, an interrupt to the hypervisor makes the waiting vCPU ready, and every idle hart searches for work. But an idle
//! hart does not sleep: with its interrupts enabled, it polls a word of its own that any hart sets for new work.

use super::host_interrupt;
use super::rules::Rules;

pub(super) const EVERY_HART: Rules = Rules {
    polls: true,
    ..host_interrupt::EVERY_HART
};
