//! One account of virtual time a VM.

use scheduler::*;

use crate::bench::{Bench, FREQUENCY, h, harts, v};

const SLICE: u64 = FREQUENCY / 200;

fn config() -> Config {
    Config {
        spin: SpinPolicy::VirtualTime,
        wait: WaitPolicy::SelfWait,
        ..Config::new(FREQUENCY)
    }
}

/// Ticks that each VM has had.
fn used(bench: &Bench, vms: u16) -> Vec<u64> {
    let vm = |vm| bench.scheduler.used(VmId::new(vm).unwrap()).get();
    (0..vms).map(vm).collect()
}

#[test]
fn vm_that_has_had_less_is_next() {
    let mut bench = Bench::new(config(), 1, &[1, 1, 1]);
    let mut order = Vec::new();
    let mut next = bench.dispatch(0);
    for _ in 0..6 {
        order.push(next.unwrap());
        let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
        next = bench.dispatch(0);
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

/// Two harts choose at the same time: the second knows of the slice that the first has begun.
#[test]
fn slices_are_paid_for_when_they_begin() {
    let mut bench = Bench::new(config(), 2, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(2));
}

#[test]
fn unused_time_is_given_back() {
    let mut bench = Bench::new(config(), 1, &[2, 1]);
    for _ in 0..2 {
        assert!(bench.dispatch(0).is_some());
        let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
    }
    // The first VM uses a hundredth of its slice, and the other a whole one.
    assert!(bench.dispatch(0) < Some(2));
    let _ = bench.leave_after(0, Leave::Yield, SLICE / 100);
    assert_eq!(bench.dispatch(0), Some(2));
    let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
    for _ in 0..10 {
        assert!(bench.dispatch(0) < Some(2), "it has had less");
        let _ = bench.leave_after(0, Leave::Yield, SLICE / 100);
    }
}

/// A vCPU that wakes, runs briefly and sleeps keeps its VM below its share: a vCPU that computes is preempted for it, and loses nothing by it.
#[test]
fn woken_vcpu_of_a_due_vm_preempts() {
    let mut bench = Bench::new(config(), 1, &[1, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::SelfWait, 10);
    for _ in 0..4 {
        assert!(bench.dispatch(0) > Some(0));
        let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
    }
    assert!(bench.dispatch(0) > Some(0));
    bench.now += 100;
    let kicks = bench.scheduler.wake(v(0), Ticks::new(bench.now));
    assert_eq!(kicks.harts(), harts(&[0]));
    let goes = bench.scheduler.reconsider(h(0), Ticks::new(100));
    assert_eq!(goes, Continue::Leave(Leave::Preempted));
    let _ = bench.leave_after(0, Leave::Preempted, 0);
    assert_eq!(bench.dispatch(0), Some(0));
}

#[test]
fn sleep_earns_no_more_than_the_bound() {
    let mut bench = Bench::new(config(), 1, &[1, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::SelfWait, 10);
    for _ in 0..100 {
        assert!(bench.dispatch(0) > Some(0));
        let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
    }
    let before = used(&bench, 2);
    let _ = bench.scheduler.wake(v(0), Ticks::new(bench.now));
    for _ in 0..20 {
        assert!(bench.dispatch(0).is_some());
        let _ = bench.leave_after(0, Leave::SliceEnd, SLICE);
    }
    let after = used(&bench, 2);
    let slept = after[0] - before[0];
    assert!(slept >= 10 * SLICE, "{slept}");
    assert!(slept <= 13 * SLICE, "{slept}");
}

/// The first VM leaves at a lock again and again, and the second computes. Returns true if a vCPU of the first has preempted one of the second while a
/// partner ran.
fn fight(bench: &mut Bench, rounds: usize) -> bool {
    let mut running = [0, 1].map(|hart| bench.dispatch(hart));
    let mut gathered = false;
    for round in 0..rounds {
        let hart = round % 2;
        let other = 1 - hart;
        let number = |hart: usize| u16::try_from(hart).unwrap();
        let (cause, ran) = match running[hart] {
            Some(0 | 1) => (Leave::SpinForTurn, SLICE / 20),
            _ => (Leave::SliceEnd, SLICE),
        };
        bench.now += ran;
        let left = Left {
            round_trip: Ticks::new(SLICE / 50),
            ..Left::new(cause, Ticks::new(ran))
        };
        let now = Ticks::new(bench.now);
        let _ = bench.scheduler.leave(h(number(hart)), left, now);
        let Dispatch::Run { vcpu, kicks, .. } = bench.dispatch_with(number(hart), &[]) else {
            unreachable!("two VMs have four vCPUs");
        };
        running[hart] = Some(vcpu.get());
        if kicks.harts().contains(h(number(other))) {
            let goes = bench.scheduler.reconsider(h(number(other)), Ticks::new(10));
            if goes == Continue::Leave(Leave::Preempted) {
                let before = running[other];
                let _ = bench.leave_after(number(other), Leave::Preempted, 10);
                running[other] = bench.dispatch(number(other));
                let both = running.iter().all(|vcpu| *vcpu < Some(2));
                gathered |= before >= Some(2) && both;
            }
        }
    }
    gathered
}

#[test]
fn vm_losing_at_locks_gets_harts_together() {
    let mut bench = Bench::new(config(), 2, &[2, 2]);
    assert!(fight(&mut bench, 2000));
}

/// Leaving at locks for nothing gains no time beyond the share and the bound.
#[test]
fn pretended_need_gains_no_time() {
    let mut bench = Bench::new(config(), 2, &[2, 2]);
    let _ = fight(&mut bench, 4000);
    let used = used(&bench, 2);
    let bound = 2 * 2 * SLICE;
    assert!(used[0] <= used[1] + 2 * bound, "{used:?}");
}
