//! The ready queue (paper 000 §3.2.2, 1), affinity, and wake-ups.

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

#[test]
fn subqueues_follow_in_the_papers_order() {
    let mut bench = Bench::with(SpinPolicy::None, 1, &[1, 1, 1]);
    let config = *bench.scheduler.config();
    let quantity = config.slice.get() * u64::from(config.round) / 3;
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::SliceEnd, quantity + 1);
    assert_eq!(bench.queue(0), Some(Queue::OutService));
    for vcpu in [1, 2, 1, 2] {
        assert_eq!(bench.dispatch(0), Some(vcpu), "0 is out of service");
        let _ = bench.leave_after(0, Leave::SliceEnd, config.slice.get());
        assert_eq!(bench.queue(vcpu), Some(Queue::TimeSliceEnd));
    }
    // If no other vCPU is in service, the next round begins, and all have a quantity again.
    for vcpu in [1, 2] {
        let _ = bench.scheduler.stop(v(vcpu));
    }
    assert_eq!(bench.dispatch(0), Some(0));
    for vcpu in [1, 2] {
        let _ = bench.scheduler.start(v(vcpu), Ticks::ZERO);
    }
    let _ = bench.leave_after(0, Leave::SliceEnd, config.slice.get());
    assert_eq!(bench.queue(0), Some(Queue::TimeSliceEnd));
}

#[test]
fn preempted_vcpu_is_first_for_its_rest() {
    let mut bench = Bench::with(SpinPolicy::None, 1, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::Preempted, 2000);
    match bench.dispatch_with(0, &[]) {
        Dispatch::Run { vcpu, slice, .. } => {
            assert_eq!((vcpu, slice), (v(0), Some(Ticks::new(3000))));
        }
        idle => panic!("{idle:?}"),
    }
    assert_eq!(bench.turn(0, Leave::Yield), Some(1));
}

#[test]
fn affinity_is_preferred_but_bounded() {
    for affinity in [0u8, 1, 3] {
        let config = Config {
            affinity,
            spin: SpinPolicy::None,
            ..Config::new(FREQUENCY)
        };
        let mut bench = Bench::new(config, 2, &[5]);
        // 4 ran on hart 1, all others on hart 0.
        let _ = bench.scheduler.pause(v(4));
        for _ in 0..4 {
            assert!(bench.dispatch(0).is_some());
            let _ = bench.leave(0, Leave::SelfWait);
        }
        let _ = bench.scheduler.resume(v(4), Ticks::ZERO);
        assert_eq!(bench.dispatch(1), Some(4));
        let _ = bench.leave(1, Leave::SelfWait);
        for vcpu in [4, 0, 1, 2, 3] {
            let _ = bench.scheduler.wake(v(vcpu), Ticks::ZERO);
        }
        for turn in 0..=affinity {
            let vcpu = bench.dispatch(0);
            if turn == affinity {
                assert_eq!(vcpu, Some(4), "it was passed over {affinity} times");
            } else {
                assert_ne!(vcpu, Some(4));
            }
            let _ = bench.leave(0, Leave::SelfWait);
        }
    }
}

#[test]
fn last_hart_holds_the_interrupt_file() {
    let mut bench = Bench::with(SpinPolicy::None, 2, &[1]);
    assert_eq!(bench.scheduler.last_hart(v(0)), None);
    for hart in [0, 1, 1] {
        assert_eq!(bench.dispatch(hart), Some(0));
        let _ = bench.leave(hart, Leave::Yield);
        assert_eq!(bench.scheduler.last_hart(v(0)), Some(h(hart)));
    }
}

#[test]
fn one_workload_wakes_the_last_hart() {
    let mut bench = Bench::with(SpinPolicy::None, 3, &[2]);
    assert_eq!(bench.dispatch(1), Some(0));
    let _ = bench.leave(1, Leave::SelfWait);
    assert_eq!(bench.dispatch(2), Some(1));
    let _ = bench.leave(2, Leave::SelfWait);
    for hart in 0..3 {
        assert_eq!(bench.dispatch(hart), None);
    }
    assert_eq!(bench.scheduler.wake(v(1), Ticks::ZERO).harts(), harts(&[2]));
    assert_eq!(bench.scheduler.wake(v(1), Ticks::ZERO), Kicks::NONE);
    assert_eq!(bench.scheduler.wake(v(0), Ticks::ZERO).harts(), harts(&[1]));
}

#[test]
fn the_old_custom_wakes_every_idle_hart() {
    for (wait, polls) in [
        (WaitPolicy::HostInterruptAll, false),
        (WaitPolicy::ActiveWaitAll, true),
    ] {
        let config = Config {
            wait,
            ..Config::new(FREQUENCY)
        };
        let mut bench = Bench::new(config, 3, &[1]);
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench.leave(0, Leave::SelfWait);
        for hart in 0..3 {
            let answer = bench.dispatch_with(hart, &[]);
            let waits = matches!(answer, Dispatch::Idle { active, .. } if active == polls);
            assert!(waits, "{answer:?}");
        }
        assert_eq!(
            bench.scheduler.wake(v(0), Ticks::ZERO).harts(),
            harts(&[0, 1, 2])
        );
        // The one vCPU goes to the first hart that comes; the others have come in vain.
        assert_eq!(bench.dispatch(1), Some(0));
        assert_eq!(bench.dispatch(2), None);
    }
}

#[test]
fn dedicated_harts_are_left_to_their_vcpus() {
    let mut bench = Bench::with(SpinPolicy::None, 2, &[3]);
    let harts = harts(&[1]);
    assert!(bench.dispatch(1).is_some());
    let dedicated = VmConfig {
        vcpus: 1,
        allocation: Allocation::Dedicated { harts },
    };
    let (vm, kicks) = bench.scheduler.add_vm(dedicated).unwrap();
    assert_eq!(kicks.harts(), harts, "who runs there must go");
    let leave = bench.scheduler.reconsider(h(1), Ticks::new(10));
    assert_eq!(leave, Continue::Leave(Leave::Preempted));
    let _ = bench.leave(1, Leave::Preempted);
    assert_eq!(bench.dispatch(1), None);
    let vcpu = bench.scheduler.vcpu(vm, 0).unwrap();
    assert_eq!(bench.scheduler.start(vcpu, Ticks::ZERO).harts(), harts);
    assert_eq!(bench.dispatch(1), Some(vcpu.get()));
    assert!(bench.dispatch(0).is_some_and(|vcpu| vcpu < 3));
}

#[test]
fn what_cannot_be_had_is_refused() {
    let mut bench = Bench::with(SpinPolicy::None, 2, &[1]);
    let dedicated = |vcpus, indices: &[u16]| VmConfig {
        vcpus,
        allocation: Allocation::Dedicated {
            harts: harts(indices),
        },
    };
    let shared = |vcpus, share| VmConfig {
        vcpus,
        allocation: Allocation::Shared { share },
    };
    let before = bench.scheduler.clone();
    for (config, error) in [
        (dedicated(2, &[1]), ConfigError::DedicatedCount),
        (dedicated(1, &[5]), ConfigError::DedicatedOffline),
        (dedicated(2, &[0, 1]), ConfigError::NoSharedHart),
        (shared(0, 1), ConfigError::NoVcpus),
        (shared(1, 0), ConfigError::Share),
        (shared(1, 10_001), ConfigError::Share),
        (shared(64, 1), ConfigError::TooManyVcpus),
    ] {
        assert_eq!(bench.scheduler.add_vm(config), Err(error));
    }
    assert_eq!(bench.scheduler, before);
    let _ = bench.scheduler.add_vm(dedicated(1, &[1])).unwrap();
    assert_eq!(
        bench.scheduler.add_vm(dedicated(1, &[1])),
        Err(ConfigError::DedicatedTwice)
    );
}

#[test]
fn removed_vm_leaves_its_place() {
    let mut bench = Bench::with(SpinPolicy::None, 1, &[2, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let vm = bench.scheduler.vm_of(v(0)).unwrap();
    assert_eq!(
        bench.scheduler.remove_vm(vm),
        Err(ConfigError::StillRunning)
    );
    assert_eq!(bench.scheduler.stop(v(0)).harts(), harts(&[0]));
    assert_eq!(bench.state(0), VcpuState::Stopping(h(0)));
    let leave = bench.scheduler.reconsider(h(0), Ticks::ZERO);
    assert_eq!(leave, Continue::Leave(Leave::Stopped));
    let _ = bench.leave(0, Leave::Stopped);
    let _ = bench.scheduler.remove_vm(vm).unwrap();
    assert_eq!(bench.state(0), VcpuState::Absent);
    assert_eq!(bench.dispatch(0), Some(2));
    let again = VmConfig {
        vcpus: 2,
        allocation: Allocation::Shared { share: 1 },
    };
    assert_eq!(bench.scheduler.add_vm(again).map(|(vm, _)| vm), Ok(vm));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let usual = Config::new(FREQUENCY);
    let online = harts(&[0]);
    let refused = |config: Config| Scheduler::new(config, online).unwrap_err();
    let slice = |ticks| Config {
        slice: Ticks::new(ticks),
        ..usual
    };
    assert_eq!(refused(slice(999)), ConfigError::Slice);
    assert_eq!(refused(slice(10_001)), ConfigError::Slice);
    assert!(Scheduler::new(slice(1000), online).is_ok());
    assert!(Scheduler::new(slice(10_000), online).is_ok());
    for round in [0, Config::ROUND.start() - 1, Config::ROUND.end() + 1] {
        let error = refused(Config { round, ..usual });
        assert_eq!(error, ConfigError::Round);
        assert_eq!(error.to_string(), "round must be from 2 to 1024 slices");
    }
    assert_eq!(
        refused(Config {
            affinity: 65,
            ..usual
        }),
        ConfigError::Affinity
    );
    assert_eq!(
        refused(Config {
            self_wait_budget: 0,
            ..usual
        }),
        ConfigError::SelfWaitBudget
    );
    assert_eq!(
        refused(Config {
            self_wait_budget: 1025,
            ..usual
        }),
        ConfigError::SelfWaitBudget
    );
    let limited = |ticks| Config {
        reservation_limit: Ticks::new(ticks),
        ..usual
    };
    for ticks in [0, usual.slice.get() - 1, FREQUENCY + 1, u64::MAX] {
        assert_eq!(refused(limited(ticks)), ConfigError::ReservationLimit);
    }
    assert!(Scheduler::new(limited(usual.slice.get()), online).is_ok());
    assert!(Scheduler::new(limited(FREQUENCY), online).is_ok());
    for (round, affinity, self_wait_budget) in [(2, 0, 1), (1024, 64, 1024)] {
        let outermost = Config {
            round,
            affinity,
            self_wait_budget,
            ..usual
        };
        assert!(Scheduler::new(outermost, online).is_ok());
    }
    assert_eq!(
        refused(Config {
            frequency: 1,
            ..usual
        }),
        ConfigError::Frequency
    );
    assert_eq!(
        Scheduler::new(usual, HartSet::EMPTY).unwrap_err(),
        ConfigError::NoHarts
    );
    let moving = Config {
        migration: Migration::Always,
        ..usual
    };
    assert_eq!(refused(moving), ConfigError::Migration);
    assert!(Scheduler::new(moving, harts(&[0, 1])).is_ok());
    let fixed = Config {
        placement: Placement::Fixed,
        ..moving
    };
    let refused = Scheduler::new(fixed, harts(&[0, 1])).unwrap_err();
    assert_eq!(refused, ConfigError::Migration);
}

/// Three vCPUs on two harts, with every reason to leave.
#[test]
fn constant_migration_never_repeats_a_hart() {
    for wait in WaitPolicy::ALL {
        let config = Config {
            migration: Migration::Always,
            spin: SpinPolicy::None,
            wait,
            ..Config::new(FREQUENCY)
        };
        let mut bench = Bench::new(config, 2, &[2, 1]);
        let mut last = [None; 3];
        let mut dispatches = 0;
        for turn in 0..60 {
            let hart = turn % 2;
            // Each waiting vCPU has an interrupt; under host interrupts that is a wake-up.
            for vcpu in (0..3).filter(|_| !wait.tests()) {
                let _ = bench.scheduler.wake(v(vcpu), Ticks::new(bench.now));
            }
            if let Dispatch::Run { vcpu, .. } = bench.dispatch_with(hart, &[0, 1, 2]) {
                let before = last[usize::from(vcpu.get())].replace(hart);
                assert_ne!(before, Some(hart), "{wait:?}, turn {turn}");
                dispatches += 1;
                let reason = [
                    Leave::SelfWait,
                    Leave::Yield,
                    Leave::SliceEnd,
                    Leave::Preempted,
                ];
                let _ = bench.leave(hart, reason[usize::from(turn / 2 % 4)]);
            }
        }
        assert!(dispatches > 40, "{wait:?}: only {dispatches}");
    }
}

#[test]
fn constant_migration_excludes_waiting_in_place() {
    for (migration, stays) in [(Migration::AsNeeded, true), (Migration::Always, false)] {
        let config = Config {
            migration,
            wait: WaitPolicy::SelfWait,
            ..Config::new(FREQUENCY)
        };
        let mut bench = Bench::new(config, 2, &[1]);
        assert_eq!(bench.dispatch(0), Some(0));
        let answer = bench
            .scheduler
            .wait_in_place(h(0), Ticks::new(5), Ticks::new(5));
        assert_eq!(matches!(answer, InPlace::With(_)), stays, "{migration:?}");
    }
}

/// With one shared hart left there is no other to migrate to.
#[test]
fn constant_migration_needs_two_harts() {
    let config = Config {
        migration: Migration::Always,
        spin: SpinPolicy::None,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[1, 1]);
    let own = Allocation::Dedicated { harts: harts(&[1]) };
    let vm = bench.scheduler.vm_of(v(1)).unwrap();
    let _ = bench.scheduler.set_allocation(vm, own).unwrap();
    for _ in 0..3 {
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench.leave(0, Leave::Yield);
        assert_eq!(bench.dispatch(1), Some(1));
        let _ = bench.leave(1, Leave::Yield);
    }
    // With two shared harts, they migrate again.
    let shared = Allocation::Shared { share: 1 };
    let _ = bench.scheduler.set_allocation(vm, shared).unwrap();
    assert_eq!(bench.dispatch(0), Some(1));
    assert_eq!(bench.dispatch(1), Some(0));
}

#[test]
fn default_slice_is_fifty_context_switches() {
    // A billion instructions a second, 45 million, 2.5 million, nothing at all, and a clock that did not move.
    let cases = [
        ((1_000, 1), 1_000),
        ((45, 1), 5_000),
        ((2_500, 1_000), 10_000),
        ((0, 7), 10_000),
        ((1_000, 0), 1_000),
        ((u64::MAX, u64::MAX), 10_000),
    ];
    for ((instructions, microseconds), slice) in cases {
        let usual = Config::usual_slice_us(instructions, microseconds);
        assert_eq!(usual, slice, "{instructions} in {microseconds} us");
        assert!(Config::SLICE_US.contains(&usual.into()));
    }
}

#[test]
fn default_round_is_ten_milliseconds() {
    for (slice, round) in [(1_000, 10), (2_000, 5), (5_000, 2), (10_000, 2), (0, 1024)] {
        assert_eq!(Config::usual_round(slice), round);
        assert!(Config::ROUND.contains(&round));
    }
}

/// Two VMs with equal shares compute. A tenth of each stay of one goes to devices of the other, which pays for it.
#[test]
fn time_for_devices_is_their_vms() {
    let mut bench = Bench::with(SpinPolicy::None, 1, &[1, 1]);
    let slice = bench.scheduler.config().slice.get();
    let lent = slice / 10;
    let mut own = [0_u64; 2];
    let mut owed = 0;
    for _ in 0..2000 {
        let vcpu = bench.dispatch(0).unwrap();
        bench.now += slice;
        let mut left = Left::new(Leave::SliceEnd, Ticks::new(slice));
        if vcpu == 0 {
            left.by_others = Ticks::new(core::mem::take(&mut owed));
            own[0] += slice;
        } else {
            left.for_others = Ticks::new(lent);
            owed += lent;
            own[1] += slice - lent;
        }
        let now = Ticks::new(bench.now);
        let _ = bench.scheduler.leave(h(0), left, now);
    }
    // The first has its own stays and what was lent to it: as much as the second has.
    let lent = 2000 * slice - own[0] - own[1];
    let part = (own[0] + lent) as f64 / own[1] as f64;
    assert!((part - 1.0).abs() < 0.01, "{own:?}, {lent} lent");
}
