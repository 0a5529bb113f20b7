//! Switches to a partner whose turn has come.

use super::bench::{Bench, h, v};
use super::reservation::Word;
use scheduler::*;

/// Two harts, a VM of 0 and 1, and one of three vCPUs. 1 has hart 0; 0 waits after `reason` and ran last on hart `last`. With `others`, hart 1 runs a
/// vCPU of the other VM, and else none.
fn partner_waits(reason: Leave, last: u16, others: bool) -> Bench {
    let mut bench = Bench::with(SpinPolicy::Reservation, 2, &[2, 3]);
    if !others {
        (2..5).for_each(|vcpu| {
            let _ = bench.scheduler.stop(v(vcpu));
        });
    }
    assert_eq!(bench.dispatch(last), Some(0));
    assert_eq!(bench.dispatch(1 - last), Some(1));
    let wait = |bench: &mut Bench| {
        let now = Ticks::new(bench.now);
        let left = Left::new(reason, Ticks::ZERO);
        let _ = bench.scheduler.leave(h(last), left, now);
        let _ = bench.scheduler.dispatch(h(last), now, &mut Word(false));
    };
    wait(&mut bench);
    if last == 0 {
        // Both leave their harts, and 1 gets the one on which 0 ran.
        let _ = bench.leave(1, Leave::Preempted);
        let _ = bench.leave(0, Leave::SliceEnd);
        let now = Ticks::new(bench.now);
        let _ = bench.scheduler.dispatch(h(0), now, &mut Word(false));
        let _ = bench.scheduler.dispatch(h(1), now, &mut Word(false));
    }
    bench
}

/// Waiting partners of the vCPU on `hart` that no other hart polls.
fn unpolled(bench: &Bench, hart: HartId) -> VcpuSet {
    bench
        .scheduler
        .unpolled(bench.scheduler.waiting_partners(hart))
}

#[test]
fn partner_whose_turn_came_gets_the_hart() {
    let mut bench = partner_waits(Leave::SpinForTurn, 1, true);
    let hart = h(0);
    assert_eq!(bench.state(1), VcpuState::Running(hart));
    assert_eq!(bench.scheduler.waiting_partners(hart), VcpuSet::only(v(0)));
    assert_eq!(unpolled(&bench, hart), VcpuSet::only(v(0)));
    let now = Ticks::new(1_000);
    let ran = Ticks::new(400);
    let left = Left::new(Leave::Preempted, ran);
    let (_, next) = bench
        .scheduler
        .leave_and_dispatch(hart, &left, now, &mut Word(true));
    assert!(matches!(next, Dispatch::Run { vcpu, .. } if vcpu == v(0)));
    // The preempted vCPU is the next, with the rest of its slice.
    let left = Left::new(Leave::SelfWait, Ticks::ZERO);
    let (_, next) = bench
        .scheduler
        .leave_and_dispatch(hart, &left, now, &mut Word(false));
    let rest = bench.scheduler.config().slice - ran;
    assert!(
        matches!(next, Dispatch::Run { vcpu, slice, .. } if vcpu == v(1) && slice == Some(rest)),
        "{next:?}"
    );
}

#[test]
fn plain_word_is_polled_with_affinity_alone() {
    let bench = partner_waits(Leave::SpinOnWord, 1, true);
    assert_eq!(bench.scheduler.waiting_partners(h(0)), VcpuSet::EMPTY);
    let bench = partner_waits(Leave::SpinOnWord, 0, true);
    let hart = h(0);
    assert_eq!(bench.state(1), VcpuState::Running(hart));
    assert_eq!(bench.scheduler.waiting_partners(hart), VcpuSet::only(v(0)));
    assert_eq!(
        bench.scheduler.waiting_partners(h(1)),
        VcpuSet::EMPTY,
        "no partner runs there"
    );
}

#[test]
fn idle_hart_polls_for_the_others() {
    let bench = partner_waits(Leave::SpinForTurn, 1, false);
    assert_eq!(bench.scheduler.waiting_partners(h(0)), VcpuSet::only(v(0)));
    assert_eq!(unpolled(&bench, h(0)), VcpuSet::EMPTY);
}
