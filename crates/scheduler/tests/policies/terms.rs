//! Slices and trapping waits (VTW).

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

/// Slice and `trap_waits` of the hart's terms.
fn terms(bench: &mut Bench, hart: u16) -> (Option<u64>, bool) {
    match bench.dispatch_with(hart, &[]) {
        Dispatch::Run {
            slice, trap_waits, ..
        } => (slice.map(Ticks::get), trap_waits),
        idle => panic!("{idle:?}"),
    }
}

#[test]
fn lone_vcpu_has_relaxed_terms() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 2, &[1]);
    assert_eq!(terms(&mut bench, 0), (None, false));
}

#[test]
fn another_ready_vcpu_brings_both() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[1, 1]);
    assert_eq!(terms(&mut bench, 0), (Some(5000), true));
}

#[test]
fn waiter_here_makes_waits_trap() {
    for (wait, sliced) in [
        (WaitPolicy::HostInterrupt, false),
        (WaitPolicy::SelfWait, true),
    ] {
        let mut bench = Bench::new(
            Config {
                wait,
                ..Config::new(FREQUENCY)
            },
            2,
            &[2],
        );
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench.leave(0, Leave::SelfWait);
        let (slice, trap_waits) = terms(&mut bench, 0);
        assert_eq!((slice.is_some(), trap_waits), (sliced, true), "{wait:?}");
        // On another hart it would not matter.
        let _ = bench.leave(0, Leave::Yield);
        assert_eq!(terms(&mut bench, 1), (None, false), "{wait:?}");
    }
}

#[test]
fn dedicated_harts_never_trap_waits() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 2, &[3]);
    let allocation = Allocation::Dedicated { harts: harts(&[1]) };
    let (vm, _) = bench
        .scheduler
        .add_vm(VmConfig {
            vcpus: 1,
            allocation,
        })
        .unwrap();
    let vcpu = bench.scheduler.vcpu(vm, 0).unwrap();
    let _ = bench.scheduler.start(vcpu, Ticks::ZERO);
    assert_eq!(terms(&mut bench, 1), (None, false));
    assert!(bench.scheduler.is_dedicated(vm));
}

#[test]
fn ready_vcpu_kicks_relaxed_harts() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 2, &[3]);
    let _ = bench.scheduler.stop(v(2));
    assert_eq!(
        terms(&mut bench, 0).0,
        Some(5000),
        "1 is ready until hart 1 takes it"
    );
    assert_eq!(terms(&mut bench, 1).0, None);
    let stay = bench.scheduler.reconsider(h(0), Ticks::ZERO);
    assert_eq!(
        stay,
        Continue::Stay {
            slice: None,
            trap_waits: false
        }
    );
    // Either may be in a WFI that has not trapped, so both are kicked.
    assert_eq!(
        bench.scheduler.start(v(2), Ticks::ZERO).harts(),
        harts(&[0, 1])
    );
    let stay = bench.scheduler.reconsider(h(0), Ticks::new(12_000));
    // 12 ms of slices of 5 ms unnoticed: 3 ms of the third are left.
    let expected = Continue::Stay {
        slice: Some(Ticks::new(3000)),
        trap_waits: true,
    };
    assert_eq!(stay, expected);
    let after = bench.scheduler.reconsider(h(0), Ticks::new(15_000));
    assert_eq!(after, Continue::Leave(Leave::SliceEnd));
}

#[test]
fn idle_hart_is_preferred_to_relaxed() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 2, &[2]);
    let _ = bench.scheduler.stop(v(1));
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), None);
    assert_eq!(
        bench.scheduler.start(v(1), Ticks::ZERO).harts(),
        harts(&[1])
    );
}

#[test]
fn terms_relax_when_others_have_left() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[2]);
    assert_eq!(terms(&mut bench, 0), (Some(5000), true));
    let _ = bench.scheduler.stop(v(1));
    let stay = bench.scheduler.reconsider(h(0), Ticks::new(5000));
    assert_eq!(
        stay,
        Continue::Stay {
            slice: None,
            trap_waits: false
        }
    );
}

#[test]
fn time_without_competition_is_free() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[1, 1]);
    let _ = bench.scheduler.stop(v(1));
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.scheduler.start(v(1), Ticks::ZERO);
    let long = 100 * bench.scheduler.config().slice.get();
    assert!(matches!(
        bench.scheduler.reconsider(h(0), Ticks::new(long)),
        Continue::Stay { .. }
    ));
    let _ = bench.leave_after(0, Leave::SliceEnd, long + 5000);
    assert_eq!(
        bench.queue(0),
        Some(Queue::TimeSliceEnd),
        "it is still in service"
    );
}

#[test]
fn strict_terms_spare_dedicated_harts() {
    let config = Config {
        relaxes: false,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[1]);
    assert_eq!(terms(&mut bench, 0), (Some(5000), true));
    let allocation = Allocation::Dedicated { harts: harts(&[1]) };
    let (vm, _) = bench
        .scheduler
        .add_vm(VmConfig {
            vcpus: 1,
            allocation,
        })
        .unwrap();
    let vcpu = bench.scheduler.vcpu(vm, 0).unwrap();
    let _ = bench.scheduler.start(vcpu, Ticks::ZERO);
    assert_eq!(terms(&mut bench, 1), (None, false));
    // Without another vCPU, the next slice is the first's again.
    let leave = bench.scheduler.reconsider(h(0), Ticks::new(5000));
    assert_eq!(leave, Continue::Leave(Leave::SliceEnd));
    let _ = bench.leave_after(0, Leave::SliceEnd, 5000);
    assert_eq!(terms(&mut bench, 0), (Some(5000), true));
}
