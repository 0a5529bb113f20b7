//! `active-wait-all`: the conventional method that paper 002 measured itself against (§2, §3.5, §5.3).
//!
//! As under `host-interrupt-all`, an interrupt to the hypervisor makes the waiting vCPU ready, and every idle hart looks for
//! work then. But an idle hart does not sleep: with its interrupts open, it tests a word of its own that says whether
//! something has happened, and whoever has work sets the words of all.

use super::{Rules, host_interrupt};

pub(super) const EVERY_HART: Rules = Rules {
    polls: true,
    ..host_interrupt::EVERY_HART
};
