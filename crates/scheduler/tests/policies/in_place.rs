//! Waiting in place, and what ends it.

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

fn bench(wait: WaitPolicy, harts: u64, vms: &[u16]) -> Bench {
    let usual = Config::new(FREQUENCY);
    Bench::new(
        Config {
            wait,
            affinity: 0,
            ..usual
        },
        harts,
        vms,
    )
}

impl Bench {
    fn wait_in_place(&mut self, hart: u16) -> InPlace {
        let now = Ticks::new(self.now);
        let answer = self.scheduler.wait_in_place(h(hart), Ticks::ZERO, now);
        self.scheduler.check().unwrap();
        answer
    }
}

#[test]
fn waiting_in_place_needs_an_unwanted_hart() {
    for wait in WaitPolicy::ALL {
        let mut alone = bench(wait, 1, &[1]);
        assert_eq!(alone.dispatch(0), Some(0));
        let expected = match wait {
            WaitPolicy::SelfWait => InPlace::With(VcpuSet::EMPTY),
            _ => InPlace::No,
        };
        assert_eq!(alone.wait_in_place(0), expected, "{wait:?}");

        let mut contended = bench(wait, 1, &[1, 1]);
        assert_eq!(contended.dispatch(0), Some(0));
        assert_eq!(contended.wait_in_place(0), InPlace::No, "{wait:?}");
    }
}

#[test]
fn waiting_in_place_watches_waiters_and_continues() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    assert_eq!(bench.wait_in_place(0), InPlace::With(VcpuSet::only(v(0))));
    let answer = bench.scheduler.end_wait_in_place(h(0), Ticks::new(100));
    let expected = Continue::Stay {
        slice: Some(Ticks::new(4900)),
        trap_waits: true,
    };
    assert_eq!(answer, expected, "of 5 ms");
    assert_eq!(bench.state(1), VcpuState::Running(h(0)));
}

#[test]
fn a_slice_that_ended_meanwhile_begins_anew() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    let _ = bench.wait_in_place(0);
    let answer = bench.scheduler.end_wait_in_place(h(0), Ticks::new(7000));
    let expected = Continue::Stay {
        slice: Some(Ticks::new(5000)),
        trap_waits: true,
    };
    assert_eq!(
        answer, expected,
        "those beside it were watched all the time"
    );
}

#[test]
fn whoever_becomes_ready_takes_the_hart() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    let _ = bench.wait_in_place(0);
    let kicks = bench.scheduler.wake(v(0), Ticks::ZERO);
    assert_eq!(kicks.harts(), harts(&[0]));
    bench.scheduler.check().unwrap();
    // Its own interrupt may come at the same time: the hart was kicked, and must ask.
    let answer = bench.scheduler.end_wait_in_place(h(0), Ticks::ZERO);
    assert_eq!(answer, Continue::Leave(Leave::SelfWait));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(0));
}

#[test]
fn one_ready_vcpu_kicks_one_hart() {
    let mut bench = bench(WaitPolicy::SelfWait, 3, &[3, 1]);
    let _ = bench.scheduler.stop(v(3));
    for hart in 0..3 {
        assert_eq!(bench.dispatch(hart), Some(hart));
        let _ = bench.wait_in_place(hart);
    }
    let kicks = bench.scheduler.start(v(3), Ticks::ZERO);
    assert_eq!(kicks.harts().count(), 1);
    // A second event does not kick another hart for the same vCPU.
    let kicks = bench.scheduler.wake(v(3), Ticks::ZERO);
    assert_eq!(kicks, Kicks::NONE);
    bench.scheduler.check().unwrap();
}

#[test]
fn earlier_wakeup_ends_waiting_in_place() {
    let mut bench = bench(WaitPolicy::SelfWait, 1, &[1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.scheduler.wake(v(0), Ticks::ZERO), Kicks::NONE);
    assert_eq!(bench.wait_in_place(0), InPlace::Woken);
    assert_eq!(bench.wait_in_place(0), InPlace::With(VcpuSet::EMPTY));
}

#[test]
fn stops_pauses_and_other_policies_end_it() {
    for event in 0..3 {
        let mut bench = bench(WaitPolicy::SelfWait, 1, &[1]);
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench.wait_in_place(0);
        let (kicks, reason) = match event {
            0 => (bench.scheduler.stop(v(0)), Leave::Stopped),
            1 => (bench.scheduler.pause(v(0)), Leave::Preempted),
            _ => {
                let to = WaitPolicy::HostInterrupt;
                (bench.scheduler.set_wait(to), Leave::SelfWait)
            }
        };
        assert_eq!(kicks.harts(), harts(&[0]));
        let answer = bench.scheduler.reconsider(h(0), Ticks::ZERO);
        assert_eq!(answer, Continue::Leave(reason));
    }
}

/// Two VMs on two harts: 0 and 1 wait on hart 0, 1 in place; hart 1 has been idle since the beginning.
fn crowded() -> Bench {
    let mut bench = bench(WaitPolicy::SelfWait, 2, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    assert_eq!(bench.dispatch(1), None);
    bench
}

#[test]
fn one_of_two_busy_waiters_spreads() {
    let mut bench = crowded();
    bench.now += 1000;
    let _ = bench.wait_in_place(0);
    let now = Ticks::new(bench.now + 20);
    let kicks = bench.scheduler.spread(h(0), v(0), now);
    assert_eq!(kicks.map(Kicks::harts), Some(harts(&[1])));
    bench.scheduler.check().unwrap();
    assert_eq!(bench.dispatch(1), Some(0));
    // The other one continues to wait where it was.
    let answer = bench.scheduler.end_wait_in_place(h(0), Ticks::ZERO);
    assert!(matches!(answer, Continue::Stay { .. }), "{answer:?}");
}

#[test]
fn no_waiter_spreads_without_need_or_room() {
    // A vCPU that has waited for long is not busy.
    let mut bench = crowded();
    bench.now += 1000;
    let _ = bench.wait_in_place(0);
    let now = Ticks::new(bench.now + 5000);
    assert_eq!(bench.scheduler.spread(h(0), v(0), now), None);

    // The other hart has just become idle.
    let mut bench = crowded();
    let _ = bench.wait_in_place(0);
    let now = Ticks::new(bench.now + 20);
    assert_eq!(bench.scheduler.spread(h(0), v(0), now), None);
}

#[test]
fn waiter_spreads_to_a_longer_idle_hart() {
    for (rested, sent) in [(350, false), (450, true)] {
        let mut bench = crowded();
        // Found after 100 ticks of waiting: the other hart must have been idle for four times as long.
        bench.now += rested - 100;
        let _ = bench.wait_in_place(0);
        let now = Ticks::new(bench.now + 100);
        let kicks = bench.scheduler.spread(h(0), v(0), now);
        assert_eq!(kicks.is_some(), sent, "the other has rested for {rested}");
    }
}
