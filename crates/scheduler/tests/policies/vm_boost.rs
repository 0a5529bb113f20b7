//! VM boost: the VM that lags most comes first.

use super::bench::{Bench, FREQUENCY, h, v};
use super::reservation::Word;
use scheduler::*;

fn bench(spin: SpinPolicy, vms: &[u16]) -> Bench {
    let config = Config {
        spin,
        affinity: 0,
        ..Config::new(FREQUENCY)
    };
    Bench::new(config, 1, vms)
}

fn slice(bench: &Bench) -> u64 {
    bench.scheduler.config().slice.get()
}

/// Next vCPU, where one of two VMs of two vCPUs has had a slice.
fn next_after_a_slice(spin: SpinPolicy) -> Option<u16> {
    let mut bench = bench(spin, &[2, 2]);
    assert_eq!(bench.dispatch(0), Some(0));
    let slice = slice(&bench);
    let _ = bench.leave_after(0, Leave::SliceEnd, slice);
    bench.dispatch(0)
}

#[test]
fn lagging_vm_is_boosted_under_reservation_alone() {
    assert_eq!(next_after_a_slice(SpinPolicy::Reservation), Some(2));
    assert_eq!(
        next_after_a_slice(SpinPolicy::Wapd),
        Some(1),
        "the order of the queue"
    );
}

fn dispatch(bench: &mut Bench, has_come: bool) -> Option<VcpuId> {
    let now = Ticks::new(bench.now);
    let next = bench.scheduler.dispatch(h(0), now, &mut Word(has_come));
    bench.scheduler.check().unwrap();
    match next {
        Dispatch::Run { vcpu, .. } => Some(vcpu),
        Dispatch::Idle { .. } => None,
    }
}

/// VMs of one vCPU: 0 waits for a word, and 1 has had the hart for a slice since then.
fn one_waits_for_a_word() -> Bench {
    let mut bench = bench(SpinPolicy::Reservation, &[1, 1]);
    assert_eq!(bench.dispatch(0), Some(0));
    let _ = bench.leave(0, Leave::SpinOnWord);
    assert_eq!(dispatch(&mut bench, false), Some(v(1)));
    let slice = slice(&bench);
    let _ = bench.leave_after(0, Leave::SliceEnd, slice);
    bench
}

#[test]
fn gap_filler_polls_for_the_boosted_vm() {
    let mut bench = one_waits_for_a_word();
    assert_eq!(
        dispatch(&mut bench, false),
        Some(v(1)),
        "nobody else can go on"
    );
    assert!(bench.scheduler.fills_gap(h(0)));
    assert_eq!(bench.scheduler.boosted_words(h(0)), VcpuSet::only(v(0)));
    let _ = bench.leave(0, Leave::Preempted);
    assert_eq!(dispatch(&mut bench, true), Some(v(0)));
    assert!(!bench.scheduler.fills_gap(h(0)));
}

#[test]
fn vm_without_gain_is_not_boosted_again() {
    let mut bench = one_waits_for_a_word();
    assert_eq!(dispatch(&mut bench, false), Some(v(1)));
    let slice = slice(&bench);
    let _ = bench.leave_after(0, Leave::SliceEnd, slice);
    assert_eq!(dispatch(&mut bench, false), Some(v(1)));
    assert!(!bench.scheduler.fills_gap(h(0)));
}
