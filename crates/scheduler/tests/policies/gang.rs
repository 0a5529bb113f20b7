//! Gang scheduling by Ousterhout's matrix: all vCPUs of a VM run in the same slot.

use super::bench::{Bench, FREQUENCY, h, harts, v};
use scheduler::*;

fn with_wait(wait: WaitPolicy, harts: u64, vms: &[u16]) -> Bench {
    let config = Config {
        spin: SpinPolicy::Gang,
        wait,
        ..Config::new(FREQUENCY)
    };
    Bench::new(config, harts, vms)
}

fn gang(harts: u64, vms: &[u16]) -> Bench {
    with_wait(WaitPolicy::HostInterrupt, harts, vms)
}

/// vCPUs of both harts, and the length of the first's slice.
fn slot(bench: &mut Bench) -> ([Option<u16>; 2], u64) {
    let Dispatch::Run { vcpu, slice, .. } = bench.dispatch_with(0, &[]) else {
        panic!("nothing runs");
    };
    let slice = slice.expect("another vCPU is ready");
    ([Some(vcpu.get()), bench.dispatch(1)], slice.get())
}

/// Ends the slot: all harts leave at its end.
fn end_slot(bench: &mut Bench, length: u64) {
    let _ = bench.leave_after(0, Leave::SliceEnd, length);
    bench.now -= length;
    let _ = bench.leave_after(1, Leave::SliceEnd, length);
}

/// vCPUs on both harts in each of so many slots, with the slots' lengths.
fn slots(bench: &mut Bench, count: usize) -> Vec<([Option<u16>; 2], u64)> {
    let next = |_| {
        let (vcpus, length) = slot(bench);
        end_slot(bench, length);
        (vcpus, length)
    };
    (0..count).map(next).collect()
}

/// vCPUs on both harts in each of so many slots.
fn rows(bench: &mut Bench, count: usize) -> Vec<[Option<u16>; 2]> {
    let slots = slots(bench, count).into_iter();
    slots.map(|(vcpus, _)| vcpus).collect()
}

#[test]
fn partners_run_in_the_same_slot() {
    let mut bench = gang(2, &[2, 2]);
    let (first, second) = ([Some(0), Some(1)], [Some(2), Some(3)]);
    assert_eq!(rows(&mut bench, 4), [first, second, first, second]);
}

#[test]
fn small_vms_share_a_row() {
    let mut bench = gang(2, &[1, 2, 1]);
    let (first, second) = ([Some(0), Some(3)], [Some(1), Some(2)]);
    assert_eq!(rows(&mut bench, 3), [first, second, first]);
}

#[test]
fn alternates_fill_empty_columns() {
    let mut bench = gang(2, &[2, 1]);
    let (first, second) = ([Some(0), Some(1)], [Some(2), Some(1)]);
    assert_eq!(rows(&mut bench, 3), [first, second, first]);
}

#[test]
fn a_larger_vm_takes_several_rows() {
    let mut bench = gang(2, &[3, 2]);
    let vcpus = [
        [Some(0), Some(1)],
        // The hart beside the third runs an alternate: the next row's.
        [Some(2), Some(4)],
        [Some(3), Some(4)],
    ];
    let slots = slots(&mut bench, 3);
    let lengths: Vec<u64> = slots.iter().map(|(_, length)| *length).collect();
    assert_eq!(slots.iter().map(|slot| slot.0).collect::<Vec<_>>(), vcpus);
    assert_eq!(lengths[0], lengths[1]);
    assert!(
        lengths[2].abs_diff(lengths[0] + lengths[1]) <= 2,
        "{lengths:?}"
    );
}

#[test]
fn slots_follow_the_shares() {
    let mut bench = gang(2, &[2, 2]);
    let vm = bench.scheduler.vm_of(v(2)).unwrap();
    bench.scheduler.set_share(vm, 3).unwrap();
    let slice = bench.scheduler.config().slice.get();
    let lengths: Vec<u64> = slots(&mut bench, 4).iter().map(|slot| slot.1).collect();
    assert_eq!(
        lengths,
        [slice / 2, slice * 3 / 2, slice / 2, slice * 3 / 2]
    );
}

#[test]
fn waiting_vcpus_leave_harts_to_alternates() {
    let mut bench = gang(2, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    assert_eq!(bench.turn(1, Leave::SelfWait), Some(3));
    assert_eq!(bench.state(0), VcpuState::Running(h(0)));
}

#[test]
fn woken_vcpu_preempts_alternates_in_its_slot() {
    for wait in WaitPolicy::ALL {
        let mut bench = with_wait(wait, 2, &[2, 2]);
        let (_, length) = slot(&mut bench);
        assert_eq!(bench.turn(1, Leave::SelfWait), Some(3), "{wait:?}");
        let watched = bench.scheduler.waiters_to_watch(h(1));
        let expected = match wait.tests() {
            true => VcpuSet::only(v(1)),
            false => VcpuSet::EMPTY,
        };
        assert_eq!(watched, expected, "{wait:?}");
        let kicks = bench
            .scheduler
            .interrupt_waiter(v(1), Ticks::new(bench.now));
        bench.scheduler.check().unwrap();
        assert_eq!(kicks.harts(), harts(&[1]), "{wait:?}");
        let leaves = Continue::Leave(Leave::Preempted);
        assert_eq!(bench.scheduler.reconsider(h(1), Ticks::ZERO), leaves);
        assert_eq!(bench.turn(1, Leave::Preempted), Some(1));
        // It has the rest of the slot.
        let Continue::Stay { slice, .. } = bench.scheduler.reconsider(h(1), Ticks::ZERO) else {
            panic!("{wait:?}");
        };
        assert_eq!(slice.unwrap().get(), length - bench.now);
    }
}

#[test]
fn other_rows_preempt_nobody() {
    for wait in WaitPolicy::ALL {
        let mut bench = with_wait(wait, 2, &[2, 2]);
        assert_eq!(bench.dispatch(0), Some(0));
        assert_eq!(bench.dispatch(1), Some(1));
        assert_eq!(bench.turn(1, Leave::SelfWait), Some(3));
        assert_eq!(bench.turn(1, Leave::SelfWait), None);
        let now = Ticks::new(bench.now);
        let kicks = bench.scheduler.wake(v(1), now);
        assert_eq!(kicks.harts(), harts(&[1]), "it is idle");
        assert_eq!(bench.dispatch(1), Some(1));
        let _ = bench.scheduler.wake(v(3), now);
        let stays = bench.scheduler.reconsider(h(1), Ticks::ZERO);
        assert!(
            matches!(stays, Continue::Stay { .. }),
            "{wait:?}: {stays:?}"
        );
        assert_eq!(bench.scheduler.waiters_to_watch(h(1)), VcpuSet::EMPTY);
    }
}

#[test]
fn columns_come_and_go_with_policy() {
    let mut bench = Bench::with(SpinPolicy::Reservation, 2, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    assert_eq!(bench.dispatch(1), Some(1));
    let both = harts(&[0, 1]);
    let kicks = bench.scheduler.set_spin(SpinPolicy::Gang, Ticks::ZERO);
    bench.scheduler.check().unwrap();
    assert_eq!(kicks.harts(), both);
    let columns = [0, 1, 2, 3].map(|vcpu| bench.scheduler.allowed(v(vcpu)));
    let [left, right] = [harts(&[0]), harts(&[1])];
    assert_eq!(columns, [left, right, left, right]);
    let _ = bench.scheduler.set_spin(SpinPolicy::Wapd, Ticks::ZERO);
    bench.scheduler.check().unwrap();
    assert_eq!(bench.scheduler.allowed(v(3)), both);
}

#[test]
fn dedicated_harts_are_no_columns() {
    let mut bench = gang(3, &[2, 2]);
    let vm = bench.scheduler.vm_of(v(2)).unwrap();
    let to = Allocation::Dedicated {
        harts: harts(&[0, 2]),
    };
    let _ = bench.scheduler.set_allocation(vm, to).unwrap();
    bench.scheduler.check().unwrap();
    let columns = [0, 1, 2, 3].map(|vcpu| bench.scheduler.allowed(v(vcpu)));
    assert_eq!(
        columns,
        [harts(&[1]), harts(&[1]), harts(&[0]), harts(&[2])]
    );
    assert_eq!(
        [0, 1, 2].map(|hart| bench.dispatch(hart)),
        [Some(2), Some(0), Some(3)]
    );
}

#[test]
fn pinned_vcpus_keep_their_harts() {
    let config = Config {
        spin: SpinPolicy::Gang,
        placement: Placement::Fixed,
        ..Config::new(FREQUENCY)
    };
    let mut bench = Bench::new(config, 2, &[2, 1, 3]);
    let columns = [0, 1, 2, 3, 4, 5].map(|vcpu| bench.scheduler.allowed(v(vcpu)));
    let [left, right] = [harts(&[0]), harts(&[1])];
    assert_eq!(columns, [left, right, left, right, left, right]);
    // The last VM has two vCPUs on one hart. The first two take a row, the third what the second VM has left of its own.
    let expected = [[Some(0), Some(1)], [Some(2), Some(5)], [Some(4), Some(3)]];
    assert_eq!(rows(&mut bench, 3), expected);
}
