//! The spin policies (paper 000 §3.2.2).

use super::bench::{Bench, FREQUENCY, v};
use scheduler::*;

#[test]
fn none_goes_on_with_the_rest_of_its_slice() {
    let mut bench = Bench::with(SpinPolicy::None, 1, &[2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave_after(0, Leave::Spin, 1000);
    match bench.dispatch_with(0, &[]) {
        Dispatch::Run { vcpu, slice, .. } => {
            assert_eq!(vcpu, v(0));
            assert_eq!(slice, Some(Ticks::new(4000)), "of 5 ms");
        }
        idle => panic!("{idle:?}"),
    }
    let _ = bench.leave_after(0, Leave::Spin, 4000);
    assert_eq!(bench.queue(0), Some(Queue::TimeSliceEnd));
    assert_eq!(bench.dispatch(0), Some(1));
}

#[test]
fn wapd_waits_until_all_ready_partners_have_been_dispatched() {
    let mut bench = Bench::with(SpinPolicy::Wapd, 1, &[3, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.state(0), VcpuState::SpinWait);
    assert_eq!(
        bench.queue(0),
        Some(Queue::ProperReady),
        "it waits in the ready queue"
    );
    assert_eq!(bench.dispatch(0), Some(1));
    assert_eq!(
        bench.state(0),
        VcpuState::SpinWait,
        "one partner is not enough"
    );
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(2));
    assert_eq!(bench.state(0), VcpuState::Ready);
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(3));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(0));
}

#[test]
fn wapd_does_not_wait_for_partners_in_a_spin_wait() {
    let mut bench = Bench::with(SpinPolicy::Wapd, 1, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
    // 0 waits for 2 now; 1 must not wait for 0.
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
    assert_eq!(bench.state(0), VcpuState::Ready);
    assert_eq!(bench.state(1), VcpuState::Ready);
    // 2 is the last of them, and waits for both.
    assert_eq!(bench.turn(0, Leave::Spin), Some(0));
    assert_eq!(bench.state(2), VcpuState::SpinWait);
}

#[test]
fn wapd_without_a_ready_partner_goes_last() {
    let mut bench = Bench::with(SpinPolicy::Wapd, 1, &[2, 1]);
    let _ = bench.scheduler.stop(v(1));
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
    assert_eq!(bench.state(0), VcpuState::Ready);
}

#[test]
fn wopd_waits_for_one_partner_only() {
    let mut bench = Bench::with(SpinPolicy::Wopd, 1, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.state(0), VcpuState::SpinWait);
    assert_eq!(bench.dispatch(0), Some(1));
    assert_eq!(bench.state(0), VcpuState::Ready);
}

#[test]
fn wopd_takes_no_action_while_a_partner_runs() {
    let mut bench = Bench::with(SpinPolicy::Wopd, 2, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.turn(0, Leave::Spin), Some(0));
}

#[test]
fn who_would_only_be_given_the_hart_back_need_not_leave() {
    let hart = HartId::new(0).unwrap();
    for spin in SpinPolicy::ALL {
        let mut bench = Bench::with(spin, 2, &[3]);
        assert_eq!(bench.dispatch(0), Some(0));
        let alone = bench.scheduler.goes_on_spinning(hart);
        assert_eq!(
            alone,
            matches!(spin, SpinPolicy::None | SpinPolicy::Directed),
            "{spin:?}"
        );
        assert_eq!(bench.dispatch(1), Some(1));
        let beside_a_partner = bench.scheduler.goes_on_spinning(hart);
        assert_eq!(
            beside_a_partner,
            alone || spin == SpinPolicy::Wopd,
            "{spin:?}"
        );
        let before = bench.scheduler.clone();
        assert_eq!(
            bench.turn(0, Leave::Spin) == Some(0),
            beside_a_partner,
            "{spin:?}"
        );
        assert_ne!(bench.scheduler, before);
    }
}

#[test]
fn wopd_ends_by_the_dispatch_of_a_partner_that_was_not_ready_before() {
    let mut bench = Bench::with(SpinPolicy::Wopd, 1, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SelfWait), Some(1));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.state(1), VcpuState::SpinWait);
    let _ = bench.scheduler.pause(v(2));
    assert_eq!(
        bench.state(1),
        VcpuState::Ready,
        "nobody is left to wait for"
    );
    let _ = bench.scheduler.resume(v(2), Ticks::ZERO);
    assert_eq!(bench.dispatch(0), Some(1));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.state(1), VcpuState::SpinWait);
    let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
    let _ = bench.scheduler.pause(v(2));
    assert_eq!(bench.state(1), VcpuState::Ready);
}

#[test]
fn a_spin_wait_ends_when_all_that_it_waits_for_are_gone() {
    for spin in [SpinPolicy::Wopd, SpinPolicy::Wapd] {
        for gone in ["stop", "pause", "policy", "allocation"] {
            let mut bench = Bench::with(spin, 2, &[3, 1]);
            let _ = bench.scheduler.stop(v(3));
            assert_eq!(bench.dispatch(0), Some(0));
            let _ = bench.leave(0, Leave::Spin);
            assert_eq!(bench.state(0), VcpuState::SpinWait);
            match gone {
                "stop" => {
                    let _ = bench.scheduler.stop(v(1));
                    assert_eq!(bench.state(0), VcpuState::SpinWait, "2 is still there");
                    let _ = bench.scheduler.stop(v(2));
                }
                "pause" => {
                    let _ = bench.scheduler.pause(v(1));
                    let _ = bench.scheduler.pause(v(2));
                }
                "policy" => {
                    let _ = bench.scheduler.set_spin(spin, Ticks::ZERO);
                }
                _ => {
                    let vm = bench.scheduler.vm_of(v(0)).unwrap();
                    let share = Allocation::Shared { share: 7 };
                    let _ = bench.scheduler.set_allocation(vm, share).unwrap();
                }
            }
            assert_eq!(bench.state(0), VcpuState::Ready, "{spin:?} {gone}");
            bench.scheduler.check().unwrap();
        }
    }
}

#[test]
fn rslp_goes_behind_all_partners() {
    // Partners in proper-ready: last there.
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[2, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.queue(0), Some(Queue::ProperReady));
    let order = [(); 3].map(|()| {
        let vcpu = bench.dispatch(0);
        let _ = bench.leave(0, Leave::SliceEnd);
        vcpu
    });
    assert_eq!(order, [Some(1), Some(2), Some(0)]);

    // A partner in time-slice-end: last there, though proper-ready is not empty.
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[2, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    let _ = bench.leave(0, Leave::Spin);
    assert_eq!(bench.queue(0), Some(Queue::TimeSliceEnd));
    assert_eq!(bench.queue(1), Some(Queue::TimeSliceEnd));
    assert_eq!(bench.dispatch(0), Some(2));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(0));
}

#[test]
fn rslp_goes_out_of_service_with_a_partner() {
    let mut bench = Bench::with(SpinPolicy::Rslp, 1, &[2, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let config = *bench.scheduler.config();
    let quantity = config.slice.get() * u64::from(config.round) / 2;
    let _ = bench.leave_after(0, Leave::SliceEnd, quantity);
    assert_eq!(bench.queue(0), Some(Queue::OutService));
    assert_eq!(bench.queue(1), Some(Queue::OutService));
    assert_eq!(bench.dispatch(0), Some(2));
}

#[test]
fn not_same_gives_the_hart_to_anybody_else() {
    let mut bench = Bench::with(SpinPolicy::NotSame, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    // 1 is in time-slice-end, 0 in proper-ready: by the queue's rule alone, 0 would be next.
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
    // If there is nobody else, a hart does not stand still.
    let _ = bench.scheduler.stop(v(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
}

#[test]
fn directed_takes_preempted_partners_in_turn() {
    let mut bench = Bench::with(SpinPolicy::Directed, 1, &[4]);
    // 0 was in its supervisor at the end of its slice, 1 in user mode, 2 in its supervisor.
    for (vcpu, supervisor) in [(0, true), (1, false), (2, true)] {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let left = Left {
            supervisor,
            ..Left::new(Leave::SliceEnd, Ticks::new(5000))
        };
        let _ = bench
            .scheduler
            .leave(HartId::new(0).unwrap(), left, Ticks::ZERO);
    }
    assert_eq!(bench.dispatch(0), Some(3));
    assert_eq!(
        bench.turn(0, Leave::Spin),
        Some(0),
        "the first that was preempted in its kernel"
    );
    assert_eq!(
        bench.turn(0, Leave::Spin),
        Some(2),
        "then the next one, not the one in user mode"
    );
    // 0 and 3 left of their own will: nobody is to be favoured.
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
}

#[test]
fn dedicated_vcpus_go_on_spinning() {
    for spin in SpinPolicy::ALL {
        let mut bench = Bench::with(spin, 3, &[1]);
        let harts = super::bench::harts(&[1, 2]);
        let config = VmConfig {
            vcpus: 2,
            allocation: Allocation::Dedicated { harts },
        };
        let (vm, _) = bench.scheduler.add_vm(config).unwrap();
        for vcpu in bench.scheduler.vcpus(vm).iter() {
            let _ = bench.scheduler.start(vcpu, Ticks::ZERO);
        }
        assert_eq!(bench.dispatch(1), Some(1));
        assert_eq!(bench.turn(1, Leave::Spin), Some(1));
    }
}

struct Word(bool);

impl Probe for Word {
    fn pending(&mut self, _: VcpuId) -> bool {
        false
    }

    fn changed(&mut self, _: VcpuId) -> bool {
        self.0
    }
}

#[test]
fn reservation_dispatches_only_when_the_word_has_changed() {
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
fn reservation_ends_by_a_wake_up_and_by_its_limit() {
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
fn reservation_gives_the_hart_to_a_partner_that_was_preempted_in_its_kernel() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    let _ = bench.leave(0, Leave::SpinOnWord);
    let hart = HartId::new(0).unwrap();
    match bench
        .scheduler
        .dispatch(hart, Ticks::ZERO, &mut Word(false))
    {
        Dispatch::Run { vcpu, .. } => assert_eq!(vcpu, v(0), "though 2 and 3 are before it"),
        idle => panic!("{idle:?}"),
    }
}

/// One hart, one machine of four. 1 and 2 have been preempted, 2 with its interrupts closed; 0 spins on a word, and the
/// next on the hart is returned.
fn next_after_a_spin(holder: Option<u16>) -> Option<VcpuId> {
    let mut bench = Bench::with(SpinPolicy::Reservation, 1, &[4]);
    let hart = HartId::new(0).unwrap();
    let slice = bench.scheduler.config().slice;
    for vcpu in 0..3 {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let left = Left {
            open: vcpu != 2,
            ..Left::new(Leave::SliceEnd, slice)
        };
        let _ = bench.scheduler.leave(hart, left, Ticks::ZERO);
    }
    assert_eq!(bench.dispatch(0), Some(3));
    let left = Left {
        holder: holder.map(v),
        ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
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
fn reservation_prefers_the_holder_then_whoever_was_preempted_with_interrupts_closed() {
    assert_eq!(next_after_a_spin(Some(1)), Some(v(1)));
    assert_eq!(next_after_a_spin(None), Some(v(2)), "not the first, 0");
}

#[test]
fn reservation_does_not_take_a_stranger_for_the_holder() {
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
fn interrupts_do_not_end_the_wait_of_a_spinner_that_could_not_take_them() {
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
        // One that came while it was running counts as little as one that comes later.
        let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
        let left = Left {
            open,
            ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
        };
        let _ = bench.scheduler.leave(hart, left, Ticks::ZERO);
        let _ = bench.scheduler.wake(v(0), Ticks::ZERO);
        let answer = bench.scheduler.dispatch(hart, Ticks::ZERO, &mut Interrupts);
        assert_eq!(matches!(answer, Dispatch::Run { .. }), open, "{answer:?}");
        // Its turn, or the limit, does.
        let limit = bench.scheduler.config().reservation_limit;
        let answer = bench.scheduler.dispatch(hart, limit, &mut Interrupts);
        assert!(matches!(answer, Dispatch::Run { .. }), "{answer:?}");
    }
}

/// Words that have changed, and interrupts, for these vCPUs.
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
fn whose_turn_it_is_goes_before_whoever_has_an_interrupt() {
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
    let _ = bench.leave(0, Leave::SpinOnWord);
    let mut both = Both {
        changed: v(1),
        pending: v(0),
    };
    match bench.scheduler.dispatch(hart, Ticks::ZERO, &mut both) {
        Dispatch::Run { vcpu, .. } => assert_eq!(vcpu, v(1), "though 0 is before it"),
        idle @ Dispatch::Idle { .. } => panic!("{idle:?}"),
    }
}

#[test]
fn an_idle_hart_looks_at_words_for_one_that_works() {
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
    // The hart on which 0 was looked at gets 1: another idle one is told to look.
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

#[test]
fn a_change_of_policy_loses_nobody() {
    for from in SpinPolicy::ALL {
        for to in SpinPolicy::ALL {
            let mut bench = Bench::with(from, 1, &[3]);
            assert_eq!(bench.dispatch(0), Some(0));
            assert!(bench.turn(0, Leave::SpinOnWord).is_some());
            let _ = bench.leave(0, Leave::Spin);
            let _ = bench.scheduler.set_spin(to, Ticks::ZERO);
            bench.scheduler.check().unwrap();
            for vcpu in 0..3 {
                assert_eq!(bench.state(vcpu), VcpuState::Ready, "{from:?} to {to:?}");
            }
        }
    }
}
