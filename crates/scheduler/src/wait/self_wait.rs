//! `self-wait`: pending interrupts are tested, and taken by the vCPU itself (paper 002 §3.3 to §3.5).

use super::Rules;

/// The one vCPU becomes ready that a message-signalled interrupt names.
pub(super) const ONE_VCPU: Rules = Rules {
    tests: true,
    in_place: true,
    grants_all: false,
    hurries: true,
    wakes_every_hart: false,
    polls: false,
    orders_by_service: true,
};

/// The paper's rule for interrupts that any vCPU of a virtual machine can take: all that wait become ready.
pub(super) const WHOLE_VM: Rules = Rules {
    // Where one's interrupt is a reason for all of them, all must be in the queue.
    in_place: false,
    grants_all: true,
    hurries: false,
    ..ONE_VCPU
};
