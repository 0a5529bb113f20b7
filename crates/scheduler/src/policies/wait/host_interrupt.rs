//! `host-interrupt`: an interrupt to the hypervisor makes the waiting vCPU ready (paper 002 §2).

use super::rules::Rules;

/// One idle hart is woken for each workload.
pub(super) const ONE_HART: Rules = Rules {
    tests: false,
    in_place: false,
    grants_all: false,
    preempts_on_wake: false,
    wakes_every_hart: false,
    polls: false,
    orders_by_service: false,
};

/// Every idle hart is woken, as was the custom (paper 002 §3.5).
pub(super) const EVERY_HART: Rules = Rules {
    wakes_every_hart: true,
    ..ONE_HART
};
