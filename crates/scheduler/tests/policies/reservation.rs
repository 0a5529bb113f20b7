//! Reservation wait: the spin policy that knows the word.

use super::bench::{Bench, FREQUENCY, h, v};
use scheduler::*;

/// A probe that finds no interrupts, and words that have changed or not.
pub struct Word(pub bool);

impl Probe for Word {
    fn pending(&mut self, _: VcpuId) -> bool {
        false
    }

    fn changed(&mut self, _: VcpuId) -> bool {
        self.0
    }
}

#[test]
fn reservation_waits_for_a_changed_word() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[1]);
    let hart = HartId::new(0).unwrap();
    let now = Ticks::new(1000);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench
        .scheduler
        .leave(hart, Left::new(Leave::SpinOnWord, Ticks::ZERO), now);
    assert_eq!(bench.state(0), VcpuState::SelfWait);
    let idle = bench.scheduler.dispatch(hart, now, &mut Word(false));
    assert!(
        matches!(idle, Dispatch::Idle { poll: true, .. }),
        "nobody else will look: {idle:?}"
    );
    let run = bench.scheduler.dispatch(hart, now, &mut Word(true));
    assert!(matches!(run, Dispatch::Run { .. }));
}

#[test]
fn reservation_ends_by_wakeup_or_limit() {
    for by_limit in [false, true] {
        let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[1]);
        let hart = HartId::new(0).unwrap();
        assert_eq!(bench.dispatch(0), Some(0));
        let _ = bench
            .scheduler
            .leave(hart, Left::new(Leave::SpinOnWord, Ticks::ZERO), Ticks::ZERO);
        let limit = bench.scheduler.config().reservation_limit;
        if !by_limit {
            let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
        }
        let then = if by_limit { limit } else { Ticks::ZERO };
        let run = bench.scheduler.dispatch(hart, then, &mut Word(false));
        assert!(matches!(run, Dispatch::Run { .. }), "{run:?}");
    }
}

#[test]
fn reservation_yields_to_a_preempted_kernel() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    let _ = bench.leave(0, Leave::SpinForTurn);
    let hart = HartId::new(0).unwrap();
    match bench
        .scheduler
        .dispatch(hart, Ticks::ZERO, &mut Word(false))
    {
        Dispatch::Run { vcpu, .. } => assert_eq!(vcpu, v(0), "though 2 and 3 are before it"),
        idle => panic!("{idle:?}"),
    }
}

/// One hart, one VM of four. 1 and 2 have been preempted, 2 with its interrupts disabled; 0 spins on a word, and the next on the hart is returned.
fn next_after_a_spin(holder: Option<u16>) -> Option<VcpuId> {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[4]);
    let hart = HartId::new(0).unwrap();
    let slice = bench.scheduler.config().slice;
    for vcpu in 0..3 {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let left = Left {
            interrupts_enabled: vcpu != 2,
            ..Left::new(Leave::SliceEnd, slice)
        };
        let _ = bench.scheduler.leave(hart, left, Ticks::ZERO);
    }
    assert_eq!(bench.dispatch(0), Some(3));
    let left = Left {
        holder: holder.map(v),
        ..Left::new(Leave::SpinForTurn, Ticks::ZERO)
    };
    let _ = bench.scheduler.leave(hart, left, Ticks::ZERO);
    match bench
        .scheduler
        .dispatch(hart, Ticks::ZERO, &mut Word(false))
    {
        Dispatch::Run { vcpu, .. } => Some(vcpu),
        Dispatch::Idle { .. } => None,
    }
}

#[test]
fn reservation_prefers_holder_then_interrupts_off() {
    assert_eq!(next_after_a_spin(Some(1)), Some(v(1)));
    assert_eq!(next_after_a_spin(None), Some(v(2)), "not the first, 0");
}

#[test]
fn stranger_is_not_taken_for_the_holder() {
    assert_eq!(next_after_a_spin(Some(60)), Some(v(2)));
}

/// A probe that finds interrupts everywhere and words that never change.
struct Interrupts;

impl Probe for Interrupts {
    fn pending(&mut self, _: VcpuId) -> bool {
        true
    }

    fn changed(&mut self, _: VcpuId) -> bool {
        false
    }
}

#[test]
fn disabled_interrupts_do_not_end_a_wait() {
    for open in [true, false] {
        let mut bench = Bench::new(
            Config {
                spin: SpinPolicy::Reservation,
                wait: WaitPolicy::SelfWait,
                ..Config::new(FREQUENCY)
            },
            1,
            &[1],
        );
        let hart = HartId::new(0).unwrap();
        assert_eq!(bench.dispatch(0), Some(0));
        // An interrupt that came while it was running counts as little as one that comes later.
        let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
        let left = Left {
            interrupts_enabled: open,
            ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
        };
        let _ = bench.scheduler.leave(hart, left, Ticks::ZERO);
        let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
        let answer = bench.scheduler.dispatch(hart, Ticks::ZERO, &mut Interrupts);
        assert_eq!(matches!(answer, Dispatch::Run { .. }), open, "{answer:?}");
        // Its turn, or the limit, ends the wait.
        let limit = bench.scheduler.config().reservation_limit;
        let answer = bench.scheduler.dispatch(hart, limit, &mut Interrupts);
        assert!(matches!(answer, Dispatch::Run { .. }), "{answer:?}");
    }
}

/// Changed words and interrupts of these vCPUs.
struct Both {
    changed: VcpuId,
    pending: VcpuId,
}

impl Probe for Both {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        vcpu == self.pending
    }

    fn changed(&mut self, vcpu: VcpuId) -> bool {
        vcpu == self.changed
    }
}

#[test]
fn turn_goes_before_an_interrupt() {
    let mut bench = Bench::new(
        Config {
            spin: SpinPolicy::Reservation,
            wait: WaitPolicy::SelfWait,
            ..Config::new(FREQUENCY)
        },
        1,
        &[2],
    );
    let hart = HartId::new(0).unwrap();
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SelfWait);
    assert_eq!(bench.dispatch(0), Some(1));
    let _ = bench.leave(0, Leave::SpinForTurn);
    let mut both = Both {
        changed: v(1),
        pending: v(0),
    };
    match bench.scheduler.dispatch(hart, Ticks::ZERO, &mut both) {
        Dispatch::Run { vcpu, .. } => assert_eq!(vcpu, v(1), "though 0 is before it"),
        idle @ Dispatch::Idle { .. } => panic!("{idle:?}"),
    }
}

/// On two harts, 0 spins for `reason` after it ran on hart 0, which goes to its partner 1, or to vCPU 2 of another VM. The word of 0 changes, and the
/// next on hart 1 is returned.
fn next_elsewhere(reason: Leave, to_partner: bool) -> Option<u16> {
    let mut bench = Bench::with(SpinPolicy::Reservation, 2, &[2, 3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    if to_partner {
        let _ = bench.leave(1, Leave::Preempted);
    }
    let _ = bench.leave(0, reason);
    let now = Ticks::new(bench.now);
    let next = bench.scheduler.dispatch(h(0), now, &mut Word(false));
    let expected = v(if to_partner { 1 } else { 2 });
    assert!(
        matches!(next, Dispatch::Run { vcpu, .. } if vcpu == expected),
        "{next:?}"
    );
    if !to_partner {
        let _ = bench.leave(1, Leave::SelfWait);
    }
    bench.dispatch(1)
}

#[test]
fn turn_migrates_and_plain_word_stays() {
    assert_eq!(next_elsewhere(Leave::SpinForTurn, false), Some(0));
    assert_eq!(next_elsewhere(Leave::SpinOnWord, true), Some(0));
}

/// On two harts, 0 spins after it ran on hart 0, which goes to vCPU 2 of another VM. Its word changes, and `ticks` later the next on hart 1 is
/// returned: 0, or 3, which has been ready since the beginning.
fn next_when_a_word_has_changed(ticks: u64) -> Option<u16> {
    let config = Config {
        spin: SpinPolicy::Reservation,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    let _ = bench.leave(0, Leave::SpinOnWord);
    let now = Ticks::new(bench.now);
    let next = bench.scheduler.dispatch(h(0), now, &mut Word(false));
    assert!(
        matches!(next, Dispatch::Run { vcpu, .. } if vcpu == v(2)),
        "{next:?}"
    );
    bench.now += ticks;
    // Both VMs have had a hart for that time, so that neither lags.
    let now = Ticks::new(bench.now);
    let left = Left::new(Leave::SelfWait, Ticks::new(ticks));
    let _ = bench.scheduler.leave(h(1), left, now);
    bench.dispatch(1)
}

#[test]
fn changed_word_precedes_recent_vcpus_alone() {
    let round = 8 * 5000;
    assert_eq!(
        next_when_a_word_has_changed(0),
        Some(0),
        "though 3 was ready first"
    );
    assert_eq!(next_when_a_word_has_changed(round), Some(3));
}

#[test]
fn without_a_turn_nobody_is_preferred() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    let _ = bench.leave(0, Leave::SpinOnWord);
    let next = (bench.scheduler).dispatch(h(0), Ticks::ZERO, &mut Word(false));
    assert!(
        matches!(next, Dispatch::Run { vcpu, .. } if vcpu == v(2)),
        "{next:?}"
    );
}

#[test]
fn idle_hart_polls_for_a_busy_one() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 3, &[1, 1]);
    let [first, third] = [0, 2].map(|hart| HartId::new(hart).unwrap());
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.dispatch(2), None);
    let _ = bench.leave(1, Leave::SelfWait);
    assert_eq!(bench.dispatch(1), None);
    let _ = bench.leave(0, Leave::SpinOnWord);
    let answer = (bench.scheduler).dispatch(first, Ticks::ZERO, &mut Word(false));
    assert!(
        matches!(answer, Dispatch::Idle { poll: true, .. }),
        "{answer:?}"
    );
    // The hart that polled for 0 gets 1: another idle one is kicked to poll.
    let _ = bench.scheduler.wake(v(1), Ticks::ZERO);
    match (bench.scheduler).dispatch(first, Ticks::ZERO, &mut Word(false)) {
        Dispatch::Run { kicks, .. } => assert!(kicks.harts().contains(third)),
        idle @ Dispatch::Idle { .. } => panic!("{idle:?}"),
    }
    let answer = (bench.scheduler).dispatch(third, Ticks::ZERO, &mut Word(false));
    assert!(
        matches!(answer, Dispatch::Idle { poll: true, .. }),
        "{answer:?}"
    );
}

#[test]
fn reservation_without_a_word_is_wapd() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.state(0), VcpuState::SpinWait);
}

/// A 64th of the bench's slice.
const LOOK: Ticks = Ticks::new(FREQUENCY / 200 / 64);

#[test]
fn waiter_polls_while_all_partners_run() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 2, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.keeps_hart(0, SpinOn::Word), Keep::No, "nobody runs");
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.keeps_hart(0, SpinOn::Word), Keep::No, "2 is ready");
    assert_eq!(bench.turn(1, Leave::SelfWait), Some(2));
    assert_eq!(bench.keeps_hart(0, SpinOn::Word), Keep::Poll(LOOK));
    assert_eq!(bench.turn(1, Leave::SelfWait), None);
    assert_eq!(bench.keeps_hart(0, SpinOn::Word), Keep::No, "all sleep");
}

#[test]
fn next_in_line_polls_a_running_holder() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 2, &[3]);
    let next = SpinExit {
        on: SpinOn::Turn { next: true },
        holder: Some(v(1)),
    };
    let behind = SpinExit {
        on: SpinOn::Turn { next: false },
        ..next
    };
    let unknown_holder = SpinExit {
        holder: None,
        ..next
    };
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.scheduler.keeps_hart(h(0), next), Keep::No);
    assert_eq!(
        bench.scheduler.keeps_hart(h(0), unknown_holder),
        Keep::Poll(LOOK)
    );
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.scheduler.keeps_hart(h(0), next), Keep::Poll(LOOK));
    assert_eq!(bench.scheduler.keeps_hart(h(0), behind), Keep::No);
    assert_eq!(bench.turn(1, Leave::Preempted), Some(1));
    assert_eq!(bench.turn(1, Leave::SliceEnd), Some(2));
    assert_eq!(bench.scheduler.keeps_hart(h(0), next), Keep::No);
    assert_eq!(
        bench.scheduler.keeps_hart(h(0), unknown_holder),
        Keep::No,
        "1 was preempted in its kernel"
    );
}

fn reservation_and_self_wait() -> Config {
    Config {
        spin: SpinPolicy::Reservation,
        wait: WaitPolicy::SelfWait,
        ..Config::new(FREQUENCY)
    }
}

#[test]
fn often_interrupted_wait_defers_interrupts() {
    let config = reservation_and_self_wait();
    let round = Ticks::new(config.slice.get() * u64::from(config.round));
    assert!(round < config.reservation_limit);
    for exits in [1, 3, 4, 9] {
        // By a wake-up before the wait or in it, as under `host-interrupt`, and by what the probe finds.
        for (before, within) in [(true, false), (false, true), (false, false)] {
            let mut bench = Bench::new(config, 1, &[2]);
            assert_eq!(bench.dispatch(0), Some(0));
            let left = Left {
                exits,
                ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
            };
            if before {
                let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
            }
            let _ = bench.scheduler.leave(h(0), left, Ticks::ZERO);
            if within {
                let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
            }
            let mut runs = |at: Ticks| {
                let answer = match before || within {
                    true => bench.scheduler.dispatch(h(0), at, &mut Word(false)),
                    false => bench.scheduler.dispatch(h(0), at, &mut Interrupts),
                };
                bench.scheduler.check().unwrap();
                matches!(answer, Dispatch::Run { vcpu, .. } if vcpu == v(0))
            };
            let is_next = runs(Ticks::ZERO);
            if exits < 4 {
                // A vCPU that was woken before it waited gives way to the other once.
                assert_eq!(is_next, !before, "after {exits} exits");
                assert_ne!(bench.state(0), VcpuState::SelfWait);
            } else {
                assert!(!is_next, "after {exits} exits");
                assert!(runs(round), "after {exits} exits");
                assert_eq!(bench.state(0), VcpuState::Running(h(0)));
            }
        }
    }
}

/// A lock holder may wait for the waiter to take its interrupt, so harts do not idle beside it.
#[test]
fn idle_hart_takes_deferred_interrupts() {
    for exits in [1, 4, 100] {
        for (before, within) in [(true, false), (false, true), (false, false)] {
            let mut bench = Bench::new(reservation_and_self_wait(), 1, &[1]);
            assert_eq!(bench.dispatch(0), Some(0));
            if before {
                let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
            }
            let left = Left {
                exits,
                ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
            };
            let _ = bench.scheduler.leave(h(0), left, Ticks::ZERO);
            if within {
                let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
            }
            let answer = match before || within {
                true => (bench.scheduler).dispatch(h(0), Ticks::ZERO, &mut Word(false)),
                false => (bench.scheduler).dispatch(h(0), Ticks::ZERO, &mut Interrupts),
            };
            bench.scheduler.check().unwrap();
            assert!(matches!(answer, Dispatch::Run { .. }), "{answer:?}");
        }
    }
}

#[test]
fn deferred_interrupt_kicks_an_idle_hart() {
    for open in [true, false] {
        let mut bench = Bench::new(reservation_and_self_wait(), 2, &[2]);
        assert_eq!([bench.dispatch(0), bench.dispatch(1)], [Some(0), Some(1)]);
        let left = Left {
            exits: 9,
            interrupts_enabled: open,
            ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
        };
        let _ = bench.scheduler.leave(h(0), left, Ticks::ZERO);
        let idle = (bench.scheduler).dispatch(h(0), Ticks::ZERO, &mut Word(false));
        assert!(matches!(idle, Dispatch::Idle { .. }), "{idle:?}");
        let kicks = bench.scheduler.wake(v(0), Ticks::ZERO);
        bench.scheduler.check().unwrap();
        assert_eq!(kicks.harts().contains(h(0)), open);
        assert_eq!(bench.state(0) == VcpuState::Ready, open);
    }
}

#[test]
fn changed_word_ends_an_uninterruptible_wait() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let left = Left {
        exits: 4,
        ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
    };
    let _ = bench.scheduler.leave(h(0), left, Ticks::ZERO);
    let run = bench.scheduler.dispatch(h(0), Ticks::ZERO, &mut Word(true));
    assert!(matches!(run, Dispatch::Run { .. }));
}
