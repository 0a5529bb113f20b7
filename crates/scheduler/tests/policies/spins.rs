//! The spin policies (paper 000 §3.2.2).

use super::bench::{Bench, v};
use scheduler::*;

#[test]
fn none_continues_for_its_rest() {
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
fn wapd_waits_for_all_ready_partners() {
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
fn wapd_ignores_partners_in_spin_waits() {
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
fn wopd_continues_while_a_partner_runs() {
    let mut bench = Bench::with(SpinPolicy::Wopd, 2, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.turn(0, Leave::Spin), Some(0));
}

#[test]
fn spinner_without_a_successor_keeps_hart() {
    for spin in SpinPolicy::ALL {
        let mut bench = Bench::with(spin, 2, &[3]);
        assert_eq!(bench.dispatch(0), Some(0));
        let alone = bench.keeps_hart(0, SpinOn::Unknown) == Keep::Yes;
        assert_eq!(
            alone,
            matches!(
                spin,
                SpinPolicy::None | SpinPolicy::Directed | SpinPolicy::Gang
            ),
            "{spin:?}"
        );
        assert_eq!(bench.dispatch(1), Some(1));
        let beside_a_partner = bench.keeps_hart(0, SpinOn::Unknown) == Keep::Yes;
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
fn wopd_ends_by_any_partners_dispatch() {
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
fn spin_wait_ends_without_its_partners() {
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
fn rslp_joins_partners_out_of_service() {
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
fn yield_goes_behind_its_priority() {
    let mut bench = Bench::with(SpinPolicy::Yield, 1, &[1, 1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    // 2 is in proper-ready and 0 in time-slice-end: both come first.
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
    assert_eq!(bench.turn(0, Leave::Spin), Some(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
    // With one other, the two alternate; alone, it has its hart again at once.
    let _ = bench.scheduler.stop(v(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
    let _ = bench.scheduler.stop(v(2));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
}

#[test]
fn yield_stays_before_vcpus_out_of_service() {
    let mut bench = Bench::with(SpinPolicy::Yield, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let config = *bench.scheduler.config();
    let quantity = config.slice.get() * u64::from(config.round) / 2;
    let _ = bench.leave_after(0, Leave::SliceEnd, quantity);
    assert_eq!(bench.queue(0), Some(Queue::OutService));
    assert_eq!(bench.dispatch(0), Some(1));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
}

#[test]
fn not_same_passes_the_hart_on() {
    let mut bench = Bench::with(SpinPolicy::NotSame, 1, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    // 1 is in time-slice-end, 0 in proper-ready: by the queue's rule alone, 0 would be next.
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
    // Without another vCPU, the hart does not stay idle.
    let _ = bench.scheduler.stop(v(0));
    assert_eq!(bench.turn(0, Leave::Spin), Some(1));
}

#[test]
fn directed_takes_preempted_partners_in_turn() {
    let mut bench = Bench::with(SpinPolicy::Directed, 1, &[4]);
    // 0 was in VS-mode at the end of its slice, 1 in user mode, 2 in VS-mode.
    for (vcpu, supervisor) in [(0, true), (1, false), (2, true)] {
        assert_eq!(bench.dispatch(0), Some(vcpu));
        let left = Left {
            in_supervisor: supervisor,
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
    // None is left that was preempted: those that yielded come in turn, 3 after 2 and then 0 again.
    assert_eq!(bench.turn(0, Leave::Spin), Some(3));
    assert_eq!(bench.turn(0, Leave::Spin), Some(0));
    // 2 and 3 have yielded; 1 was preempted, but in user mode.
    assert_eq!(bench.turn(0, Leave::Spin), Some(2));
}

#[test]
fn directed_ignores_yields_in_user_mode() {
    let mut bench = Bench::with(SpinPolicy::Directed, 1, &[3]);
    assert_eq!(bench.dispatch(0), Some(0));
    // 1 is started and was never preempted, and 0 is preempted in VS-mode.
    assert_eq!(bench.turn(0, Leave::SliceEnd), Some(1));
    let spin = Left {
        in_supervisor: false,
        ..Left::new(Leave::Spin, Ticks::ZERO)
    };
    let _ = bench
        .scheduler
        .leave(HartId::new(0).unwrap(), spin, Ticks::ZERO);
    assert_eq!(bench.dispatch(0), Some(0), "it was preempted");
    assert_eq!(
        bench.keeps_hart(0, SpinOn::Unknown),
        Keep::Yes,
        "1 gave way in user mode, and 2 has not run"
    );
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
