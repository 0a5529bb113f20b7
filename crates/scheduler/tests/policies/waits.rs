//! Waits and wake-ups (paper 002 §3).

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

fn bench(wait: WaitPolicy, harts: u64, vms: &[u16]) -> Bench {
    let usual = Config::new(FREQUENCY);
    Bench::new(
        Config {
            wait,
            affinity: 0,
            self_wait_budget: 2,
            ..usual
        },
        harts,
        vms,
    )
}

fn runs(answer: Dispatch) -> Option<u16> {
    match answer {
        Dispatch::Run { vcpu, .. } => Some(vcpu.get()),
        Dispatch::Idle { .. } => None,
    }
}

#[test]
fn wakeup_before_a_wait_ends_it() {
    for wait in WaitPolicy::ALL {
        let mut bench = bench(wait, 1, &[1]);
        assert_eq!(bench.dispatch(0), Some(0));
        assert_eq!(bench.scheduler.wake(v(0), Ticks::ZERO), Kicks::NONE);
        let _ = bench.leave(0, Leave::SelfWait);
        assert_eq!(bench.state(0), VcpuState::Ready);
        // It is remembered once.
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench.leave(0, Leave::SelfWait);
        assert_eq!(bench.state(0), VcpuState::SelfWait);
    }
}

#[test]
fn wakeup_during_a_pause_is_kept() {
    let mut bench = bench(WaitPolicy::HostInterrupt, 1, &[1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SelfWait);
    let _ = bench.scheduler.pause(v(0));
    let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
    assert_eq!(bench.dispatch(0), None);
    assert_eq!(
        bench.scheduler.resume(v(0), Ticks::ZERO).harts(),
        harts(&[0])
    );
    assert_eq!(bench.dispatch(0), Some(0));
}

#[test]
fn stop_by_an_operator_ends_a_pause() {
    let mut bench = bench(WaitPolicy::HostInterrupt, 1, &[1]);
    let _ = bench.scheduler.pause(v(0));
    let _ = bench.scheduler.stop(v(0));
    let _ = bench.scheduler.start(v(0), Ticks::ZERO);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.scheduler.pause(v(0));
    let _ = bench.leave(0, Leave::Stopped);
    let _ = bench.scheduler.start(v(0), Ticks::ZERO);
    assert_eq!(bench.state(0), VcpuState::Paused);
    let _ = bench.scheduler.resume(v(0), Ticks::ZERO);
    assert_eq!(bench.dispatch(0), Some(0));
}

#[test]
fn the_conventional_method_tests_nothing() {
    let mut bench = bench(WaitPolicy::HostInterrupt, 1, &[1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SelfWait);
    let answer = bench.dispatch_with(0, &[0]);
    assert!(
        matches!(answer, Dispatch::Idle { poll: false, .. }),
        "{answer:?}"
    );
}

#[test]
fn self_waiting_vcpus_precede_ready_ones() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[4]);
    for vcpu in [0, 1, 2] {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let _ = bench.leave(0, Leave::SelfWait);
    }
    assert_eq!(
        runs(bench.dispatch_with(0, &[2, 1])),
        Some(1),
        "the first that has an interrupt"
    );
    let _ = bench.leave(0, Leave::SelfWait);
    assert_eq!(
        runs(bench.dispatch_with(0, &[1, 2])),
        Some(2),
        "1 is behind 2 now"
    );
}

#[test]
fn self_wait_all_readies_the_whole_vm() {
    for (wait, others) in [
        (WaitPolicy::SelfWait, None),
        (WaitPolicy::SelfWaitAll, Some(1)),
    ] {
        let mut bench = bench(wait, 2, &[2, 1]);
        for vcpu in [0, 1, 2] {
            assert_eq!(bench.dispatch(0), Some(vcpu));
            let _ = bench.leave(0, Leave::SelfWait);
        }
        assert_eq!(bench.dispatch(1), None);
        match bench.dispatch_with(0, &[0]) {
            Dispatch::Run { vcpu, kicks, .. } => {
                assert_eq!(vcpu, v(0));
                let expected = others.map_or(Kicks::NONE, |_| Kicks(harts(&[1])));
                assert_eq!(kicks, expected, "{wait:?}");
            }
            idle => panic!("{idle:?}"),
        }
        assert_eq!(bench.dispatch(1), others, "{wait:?}");
    }
}

#[test]
fn idle_hart_tests_its_own_files() {
    let mut bench = bench(WaitPolicy::SelfWait, 2, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    let _ = bench.leave(0, Leave::SelfWait);
    let _ = bench.leave(1, Leave::SelfWait);
    for hart in 0..2 {
        match bench.dispatch_with(hart, &[]) {
            Dispatch::Idle { watch, poll, .. } => {
                assert_eq!(watch, VcpuSet::only(v(hart)));
                assert!(poll);
            }
            run => panic!("{run:?}"),
        }
    }
}

#[test]
fn self_waiting_vcpu_does_not_end_slices() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SelfWait);
    match bench.dispatch_with(0, &[]) {
        Dispatch::Run { vcpu, slice, .. } => {
            assert_eq!((vcpu, slice), (v(1), Some(Ticks::new(5000))));
        }
        idle => panic!("{idle:?}"),
    }
    let leave = bench.scheduler.reconsider(h(0), Ticks::new(5000));
    assert_eq!(leave, Continue::Leave(Leave::SliceEnd));
    let _ = bench.leave_after(0, Leave::SliceEnd, 5000);
    assert_eq!(runs(bench.dispatch_with(0, &[0])), Some(0));
}

#[test]
fn a_budget_lets_the_ready_through() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[2, 1]);
    for vcpu in [0, 1] {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let _ = bench.leave(0, Leave::SelfWait);
    }
    // Interrupts without end for 0 and 1; 2 is ready, and has its turn after two of them.
    for expected in [0, 1, 2] {
        assert_eq!(runs(bench.dispatch_with(0, &[0, 1])), Some(expected));
        let _ = bench.leave(
            0,
            if expected == 2 {
                Leave::SliceEnd
            } else {
                Leave::SelfWait
            },
        );
    }
    // vCPUs that were found meanwhile are ready, and lost nothing.
    assert_eq!(bench.state(0), VcpuState::Ready);
    assert_eq!(bench.dispatch(0), Some(0));
}

#[test]
fn interrupts_respect_the_service_quantity() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1, 1]);
    let config = *bench.scheduler.config();
    let quantity = config.slice.get() * u64::from(config.round) / 2;
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::SelfWait, quantity);
    assert_eq!(runs(bench.dispatch_with(0, &[0])), Some(1));
    assert_eq!(bench.queue(0), Some(Queue::OutService));
}

#[test]
fn slice_ends_are_ordered_by_service() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1, 1, 1]);
    for (vcpu, ran) in [(0, 5000), (1, 3000), (2, 4000)] {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let _ = bench.leave_after(0, Leave::SliceEnd, ran);
    }
    let order = [(); 3].map(|()| {
        let vcpu = bench.dispatch(0);
        let _ = bench.leave(0, Leave::SelfWait);
        vcpu
    });
    assert_eq!(
        order,
        [Some(1), Some(2), Some(0)],
        "who has had least comes first"
    );
}

#[test]
fn a_change_of_policy_tells_every_hart() {
    let mut bench = bench(WaitPolicy::HostInterrupt, 2, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    let _ = bench.leave(1, Leave::SelfWait);
    assert_eq!(bench.dispatch(1), None);
    assert_eq!(
        bench.scheduler.set_wait(WaitPolicy::SelfWait).harts(),
        harts(&[0, 1])
    );
    assert_eq!(runs(bench.dispatch_with(1, &[1])), Some(1));
}

/// A hart between two vCPUs has to set `hgeie` by the new policy too, or an earlier interrupt would be missed.
#[test]
fn policy_change_kicks_a_searching_hart() {
    let mut bench = bench(WaitPolicy::SelfWait, 2, &[1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SelfWait);
    assert_eq!(bench.dispatch(1), None);
    let kicks = bench.scheduler.set_wait(WaitPolicy::HostInterrupt);
    assert_eq!(kicks.harts(), harts(&[0, 1]));
}
