//! Wake-up preemption: vCPUs of VMs that lag do not wait for the end of others' slices.

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

/// Two VMs of one vCPU on a hart; 0 has waited for an interrupt since the beginning, and 1 has had the hart for most of a slice, and has it again.
fn one_waits_and_one_works(wait: WaitPolicy) -> Bench {
    let config = Config {
        wait,
        affinity: 0,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    let most = slice(&bench) * 3 / 4;
    let _ = bench.leave_after(0, Leave::SliceEnd, most);
    assert_eq!(bench.dispatch(0), Some(1));
    bench
}

fn slice(bench: &Bench) -> u64 {
    bench.scheduler.config().slice.get()
}

/// Harts that are kicked when 0 is woken `ran` ticks after the dispatch of 1.
fn wake_after(bench: &mut Bench, ran: u64) -> HartSet {
    let now = Ticks::new(bench.now + ran);
    let kicks = bench.scheduler.wake(v(0), now);
    bench.scheduler.check().unwrap();
    kicks.harts()
}

fn reconsider(bench: &mut Bench, ran: u64) -> Continue {
    bench.scheduler.reconsider(h(0), Ticks::new(ran))
}

#[test]
fn woken_vcpu_preempts_a_vm_ahead() {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    let ran = slice(&bench) / 2;
    assert_eq!(wake_after(&mut bench, ran), harts(&[0]));
    let leaves = Continue::Leave(Leave::Preempted);
    assert_eq!(reconsider(&mut bench, ran), leaves);
    let _ = bench.leave_after(0, Leave::Preempted, ran);
    assert_eq!(bench.dispatch(0), Some(0));
    // The other one has the rest of its slice afterwards.
    let _ = bench.leave(0, Leave::SelfWait);
    let Dispatch::Run { vcpu, slice, .. } = bench.dispatch_with(0, &[]) else {
        panic!("nothing runs");
    };
    assert_eq!(vcpu, v(1));
    assert!(slice.is_some_and(|slice| slice <= Ticks::new(ran)));
}

#[test]
fn small_lag_does_not_preempt() {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    let ran = slice(&bench) / 8;
    assert_eq!(wake_after(&mut bench, ran), HartSet::EMPTY);
    let stays = reconsider(&mut bench, ran);
    assert!(matches!(stays, Continue::Stay { .. }), "{stays:?}");
}

#[test]
fn papers_wait_policies_do_not_preempt() {
    for wait in WaitPolicy::ALL {
        if wait == WaitPolicy::SelfWait {
            continue;
        }
        let mut bench = one_waits_and_one_works(wait);
        let ran = slice(&bench) / 2;
        let _ = wake_after(&mut bench, ran);
        let stays = reconsider(&mut bench, ran);
        assert!(
            matches!(stays, Continue::Stay { .. }),
            "{wait:?}: {stays:?}"
        );
        assert_eq!(bench.scheduler.waiters_to_watch(h(0)), VcpuSet::EMPTY);
    }
}

#[test]
fn a_partner_keeps_its_hart() {
    let config = Config {
        wait: WaitPolicy::SelfWait,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 1, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    let ran = slice(&bench) / 2;
    let _ = wake_after(&mut bench, ran);
    let stays = reconsider(&mut bench, ran);
    assert!(matches!(stays, Continue::Stay { .. }), "{stays:?}");
}

#[test]
fn idle_hart_comes_before_preemption() {
    let config = Config {
        wait: WaitPolicy::SelfWait,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    assert_eq!(bench.dispatch(1), None);
    let ran = slice(&bench) / 2;
    assert_eq!(wake_after(&mut bench, ran), harts(&[1]));
}

#[test]
fn only_lagging_waiters_are_watched() {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    assert_eq!(bench.scheduler.waiters_to_watch(h(0)), VcpuSet::EMPTY);
    let slice = slice(&bench);
    let _ = bench.leave_after(0, Leave::SliceEnd, slice);
    assert_eq!(bench.dispatch(0), Some(1));
    assert_eq!(bench.scheduler.waiters_to_watch(h(0)), VcpuSet::only(v(0)));
}

#[test]
fn an_interrupt_wakes_who_hurries_alone() {
    for (ran, preempts_on_wake) in [(8, false), (2, true)] {
        let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
        let now = Ticks::new(bench.now + slice(&bench) / ran);
        let kicks = bench.scheduler.interrupt_waiter(v(0), now).harts();
        let (told, state) = match preempts_on_wake {
            // Its hart finds it at the next test.
            false => (HartSet::EMPTY, VcpuState::SelfWait),
            true => (harts(&[0]), VcpuState::Ready),
        };
        assert_eq!((kicks, bench.state(0)), (told, state));
    }
    let mut bench = one_waits_and_one_works(WaitPolicy::HostInterrupt);
    let _ = bench
        .scheduler
        .interrupt_waiter(v(0), Ticks::new(bench.now));
    assert_eq!(bench.state(0), VcpuState::Ready);
}

#[test]
fn stopped_or_paused_vcpu_does_not_preempt() {
    for pauses in [false, true] {
        let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
        let ran = slice(&bench) / 2;
        assert_eq!(wake_after(&mut bench, ran), harts(&[0]));
        let _ = match pauses {
            true => bench.scheduler.pause(v(0)),
            false => bench.scheduler.stop(v(0)),
        };
        let stays = reconsider(&mut bench, ran);
        assert!(matches!(stays, Continue::Stay { .. }), "{stays:?}");
    }
}

/// Times on the hart of 1, and of 0 with its context switches: 0 works for a tick, waits, and is woken `between` ticks later, again and again, with
/// `round_trip` for two switches.
fn storm(round_trip: u64, between: u64, times: u32) -> (u64, u64) {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    let (mut worked, mut lost) = (0, 0);
    let mut ran = 0;
    for _ in 0..times {
        ran += between;
        worked += between;
        let _ = wake_after(&mut bench, ran);
        let reason = match reconsider(&mut bench, ran) {
            Continue::Stay { .. } => continue,
            Continue::Leave(reason) => reason,
        };
        let _ = bench.leave_after(0, reason, ran);
        ran = 0;
        if bench.dispatch(0) == Some(1) {
            continue;
        }
        bench.now += 1;
        let left = Left {
            round_trip: Ticks::new(round_trip),
            ..Left::new(Leave::SelfWait, Ticks::new(1))
        };
        let now = Ticks::new(bench.now);
        let _ = bench.scheduler.leave(h(0), left, now);
        lost += 1 + round_trip;
        assert_eq!(bench.dispatch(0), Some(1));
    }
    (worked, lost)
}

#[test]
fn constant_wakeups_pay_for_context_switches() {
    // Without the charge, it would have three quarters, switches included.
    let (worked, lost) = storm(5, 1, 200_000);
    let part = lost * 100 / (worked + lost);
    assert!(
        (40..=53).contains(&part),
        "{part} % of the time, {worked} {lost}"
    );
}

#[test]
fn long_sleep_earns_two_slices_at_most() {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    let slice = slice(&bench);
    for _ in 0..100 {
        let _ = bench.leave_after(0, Leave::SliceEnd, slice);
        assert_eq!(bench.dispatch(0), Some(1));
    }
    // It takes the hart, and continues to work. The other one is woken again and again: by then it lags.
    assert_eq!(wake_after(&mut bench, slice / 2), harts(&[0]));
    let _ = bench.leave_after(0, Leave::Preempted, slice / 2);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::SliceEnd, 3 * slice);
    assert_eq!(bench.dispatch(0), Some(1));
    let _ = bench.leave_after(0, Leave::SelfWait, 1);
    assert_eq!(bench.dispatch(0), Some(0));
    let now = Ticks::new(bench.now + slice / 2);
    assert_eq!(bench.scheduler.wake(v(1), now).harts(), harts(&[0]));
}

#[test]
fn device_work_wakes_by_the_same_rule() {
    for (ran, preempts_on_wake) in [(8, false), (2, true)] {
        let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
        let now = Ticks::new(bench.now + slice(&bench) / ran);
        let kicks = bench.scheduler.wake_for_devices(v(0), now);
        let (told, state) = match preempts_on_wake {
            // Its hart finds the work at the next test.
            false => (HartSet::EMPTY, VcpuState::SelfWait),
            true => (harts(&[0]), VcpuState::Ready),
        };
        let kicks = kicks.map(Kicks::harts);
        assert_eq!((kicks, bench.state(0)), (Some(told), state));
    }
    let mut bench = one_waits_and_one_works(WaitPolicy::HostInterrupt);
    let now = Ticks::new(bench.now);
    assert!(bench.scheduler.wake_for_devices(v(0), now).is_some());
    assert_eq!(bench.state(0), VcpuState::Ready);
}

#[test]
fn device_work_gets_an_idle_hart() {
    let config = Config {
        wait: WaitPolicy::SelfWait,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    assert_eq!(bench.dispatch(1), None);
    let kicks = bench.scheduler.wake_for_devices(v(0), Ticks::ZERO);
    assert_eq!(kicks.map(Kicks::harts), Some(harts(&[1])));
}

#[test]
fn stopped_vcpu_does_no_device_work() {
    let mut bench = one_waits_and_one_works(WaitPolicy::SelfWait);
    let _ = bench.scheduler.stop(v(0));
    assert_eq!(bench.scheduler.wake_for_devices(v(0), Ticks::ZERO), None);
}
