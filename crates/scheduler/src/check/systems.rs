//! Systems that are explored in every test run, most of them whole and without any reduction.

use super::world::Environment;
use super::{System, strict};
use crate::config::{Config, Migration, Placement};
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// Depth far beyond that of the small systems: all of their states.
pub(super) const WITHOUT_LIMIT: usize = 10_000;

/// System of two harts, each state for itself.
pub(super) fn whole(config: Config, vms: &'static [u16], disturbances: u8) -> System {
    System {
        config,
        environment: Environment::default(),
        harts: 2,
        vms,
        disturbances,
        reduced: false,
        numbered: false,
    }
}

/// System of two harts, one state for all that differ in numbers only.
pub(super) fn reduced(config: Config, vms: &'static [u16], disturbances: u8) -> System {
    System {
        reduced: true,
        ..whole(config, vms, disturbances)
    }
}

#[test]
fn small_system_is_explored_whole() {
    let strict = strict(SpinPolicy::Wapd, WaitPolicy::SelfWait);
    whole(strict, &[2, 1], 0).explore();
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn host_interrupt_policies_are_explored_whole() {
    for spin in SpinPolicy::ALL {
        if spin == SpinPolicy::Reservation {
            continue;
        }
        whole(strict(spin, WaitPolicy::HostInterrupt), &[2, 1], 1).explore();
    }
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn self_wait_policies_are_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::SelfWait),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Rslp, WaitPolicy::SelfWaitAll),
    ] {
        whole(strict(spin, wait), &[2, 1], 1).explore();
    }
}

/// Every hart tests the interrupt files of all.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn global_test_is_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Wopd, WaitPolicy::SelfWaitAll),
    ] {
        let system = whole(strict(spin, wait), &[2, 1], 1);
        let environment = Environment {
            tests_any_file: true,
            ..Environment::default()
        };
        System {
            environment,
            ..system
        }
        .explore();
    }
}

/// A vCPU leaves and the next one is dispatched in one step.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn leaving_and_dispatching_together_is_explored() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::HostInterrupt),
        (SpinPolicy::NotSame, WaitPolicy::SelfWait),
        (SpinPolicy::Directed, WaitPolicy::SelfWaitAll),
    ] {
        let environment = Environment {
            together: true,
            ..Environment::default()
        };
        System {
            environment,
            ..whole(strict(spin, wait), &[2, 1], 1)
        }
        .explore();
    }
}

/// No vCPU is dispatched twice in a row on one hart.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn constant_migration_is_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Rslp, WaitPolicy::SelfWait),
    ] {
        let config = Config {
            migration: Migration::Always,
            ..strict(spin, wait)
        };
        whole(config, &[2, 1], 1).explore();
    }
}

/// Each vCPU has one hart, which it shares.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn fixed_placement_is_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Directed, WaitPolicy::HostInterrupt),
    ] {
        let config = Config {
            placement: Placement::Fixed,
            ..strict(spin, wait)
        };
        whole(config, &[2, 1], 1).explore();
    }
}

/// The operator chooses other policies, shares and slices.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn changes_of_policy_are_explored_whole() {
    let environment = Environment {
        spins: &[SpinPolicy::Wapd, SpinPolicy::NotSame],
        waits: &[WaitPolicy::HostInterrupt, WaitPolicy::SelfWait],
        parameters: true,
        ..Environment::default()
    };
    let system = reduced(strict(SpinPolicy::Wapd, WaitPolicy::SelfWait), &[2, 1], 1);
    System {
        environment,
        ..system
    }
    .explore();
}

/// Slots of a matrix in the place of queues: a row for each VM, and an alternate beside the smaller one.
#[test]
fn small_matrix_is_explored_whole() {
    let strict = strict(SpinPolicy::Gang, WaitPolicy::SelfWait);
    whole(strict, &[2, 1], 0).explore();
}

/// Interrupts that tests find, those of all vCPUs of the VM, pinned vCPUs, and changes to and from another policy.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn gang_is_explored_whole() {
    for wait in [WaitPolicy::SelfWait, WaitPolicy::SelfWaitAll] {
        let system = whole(strict(SpinPolicy::Gang, wait), &[2, 1], 1);
        let environment = Environment {
            tests_any_file: wait == WaitPolicy::SelfWaitAll,
            spins: &[SpinPolicy::Gang, SpinPolicy::Wapd],
            parameters: true,
            ..Environment::default()
        };
        System {
            environment,
            ..system
        }
        .explore();
    }
    let pinned = Config {
        placement: Placement::Fixed,
        ..strict(SpinPolicy::Gang, WaitPolicy::SelfWait)
    };
    whole(pinned, &[2, 1], 1).explore();
    let host_interrupt = strict(SpinPolicy::Gang, WaitPolicy::HostInterrupt);
    whole(host_interrupt, &[2, 2], 0).explore();
}

/// Words to wait for, with a holder that is known or not. The soak explores them whole without disturbances, and deeper
/// with one.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn reservation_is_explored() {
    let strict = strict(SpinPolicy::Reservation, WaitPolicy::SelfWait);
    reduced(strict, &[2, 1], 0).explore_to_depth(6);
    reduced(strict, &[2, 1], 1).explore_to_depth(5);
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_vms_of_two_vcpus_are_explored() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
    ] {
        whole(strict(spin, wait), &[2, 2], 0).explore();
        reduced(strict(spin, wait), &[2, 2], 1).explore_to_depth(12);
    }
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn three_harts_are_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
    ] {
        let system = reduced(strict(spin, wait), &[2, 2], 0);
        System { harts: 3, ..system }.explore();
    }
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_vms_of_three_vcpus_are_explored() {
    for (spin, wait, steps) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait, 4),
        (SpinPolicy::Rslp, WaitPolicy::HostInterruptAll, 4),
        (SpinPolicy::Directed, WaitPolicy::SelfWait, 4),
        // Any VM may be boosted at each search.
        (SpinPolicy::Reservation, WaitPolicy::SelfWaitAll, 3),
    ] {
        reduced(strict(spin, wait), &[3, 3], 2).explore_to_depth(steps);
    }
}
