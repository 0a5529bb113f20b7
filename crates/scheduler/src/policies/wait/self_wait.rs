//! `self-wait`: pending interrupts are tested, and taken by the vCPU itself (paper 002 §3.3 to §3.5).

use super::rules::Rules;

/// The vCPU that a message-signalled interrupt names becomes ready.
pub(super) const ONE_VCPU: Rules = Rules {
    tests: true,
    in_place: true,
    grants_all: false,
    preempts_on_wake: true,
    wakes_every_hart: false,
    polls: false,
    orders_by_service: true,
};

/// All waiting vCPUs of the VM become ready: the paper's rule for interrupts that any vCPU can take.
pub(super) const WHOLE_VM: Rules = Rules {
    // All waiting vCPUs must be in the queue to become ready together.
    in_place: false,
    grants_all: true,
    preempts_on_wake: false,
    ..ONE_VCPU
};
