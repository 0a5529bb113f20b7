//! Tests of single events.

use std::vec::Vec;

use abi::monitor::{StopReason, VmState};
use abi::system::OnFailure;

use super::backoff::Milliseconds;
use super::life::{
    Begin, Ending, LifeCycle, MAX_RESTARTS_AFTER_FAILURE, Originator, Outcome, Port, Power,
    Refusal, Run, StartError,
};
use super::restart_plan::RestartPlan;

/// vCPUs that leave their harts when they are told to, if `leave` says so.
struct Harts {
    running: Vec<bool>,
    leave: bool,
    now: Milliseconds,
}

impl Port for Harts {
    fn now(&self) -> Milliseconds {
        self.now
    }

    fn start(&mut self, vcpu: usize) {
        self.running[vcpu] = true;
    }

    fn stop(&mut self, vcpu: usize) {
        self.running[vcpu] &= !self.leave;
    }

    fn pause(&mut self, _: usize) {}

    fn resume(&mut self, _: usize) {}

    fn is_stopped(&self, vcpu: usize) -> bool {
        !self.running[vcpu]
    }

    fn set_dispatch_check(&mut self, _: usize, _: bool) {}

    fn quiesce(&mut self) {}
}

fn running(on_failure: OnFailure, leave: bool) -> (LifeCycle, Harts) {
    let mut life = LifeCycle::new(2, on_failure);
    let mut harts = Harts {
        running: [false, false].to_vec(),
        leave,
        now: Milliseconds(0),
    };
    life.start(&mut harts).unwrap();
    assert_eq!(life.state(), VmState::Loading);
    assert_eq!(life.dispatched(0, &mut harts), Begin::Load(Run(1)));
    assert!(life.loaded(0x8000, 6, &mut harts));
    let (address, opaque) = (0x8000, 6);
    let begin = Begin::At { address, opaque };
    assert_eq!(life.dispatched(0, &mut harts), begin);
    assert_eq!(life.state(), VmState::Running);
    (life, harts)
}

#[test]
fn vcpus_of_an_ending_vm_cannot_start() {
    let (mut life, mut harts) = running(OnFailure::Stop, false);
    let stop = Ending::Stop(StopReason::Operator);
    assert_eq!(
        life.end(stop, Originator::Operator, &mut harts),
        Ok(Outcome::Continues)
    );
    assert_eq!(life.start_vcpu(1, 0, 0, &mut harts), Err(StartError::Ends));
    harts.running[0] = false;
    let stopped = Outcome::Stopped(StopReason::Operator);
    assert_eq!(life.left(&mut harts), stopped);
    assert_eq!(life.start_vcpu(1, 0, 0, &mut harts), Err(StartError::Ends));
}

#[test]
fn the_operators_last_wish_stands() {
    let stop = Ending::Stop(StopReason::Operator);
    for (first, who, second, ends) in [
        (Ending::Restart, Originator::Guest, stop, VmState::Stopped),
        (
            Ending::Restart,
            Originator::Operator,
            stop,
            VmState::Stopped,
        ),
        (
            stop,
            Originator::Operator,
            Ending::Restart,
            VmState::Loading,
        ),
    ] {
        let (mut life, mut harts) = running(OnFailure::Stop, false);
        life.end(first, who, &mut harts).map(drop_outcome).unwrap();
        life.end(second, Originator::Operator, &mut harts)
            .map(drop_outcome)
            .unwrap();
        let later = life.end(Ending::Restart, Originator::Guest, &mut harts);
        assert_eq!(later, Ok(Outcome::Continues));
        harts.running[0] = false;
        drop_outcome(life.left(&mut harts));
        assert_eq!(life.state(), ends);
    }
}

fn drop_outcome(_: Outcome) {}

#[test]
fn only_failures_count_towards_the_restart_limit() {
    let (mut life, mut harts) = running(OnFailure::Restart, true);
    let mut end = |ending| {
        let outcome = life.end(ending, Originator::Guest, &mut harts).unwrap();
        let _ = life.loaded(0x8000, 6, &mut harts);
        match outcome {
            Outcome::Restarts(RestartPlan { failed, .. }) => Ok(failed),
            other => Err(other),
        }
    };
    for _ in 0..100 {
        assert_eq!(end(Ending::Restart), Ok(None));
    }
    let failure = StopReason::SystemFailure;
    for _ in 0..MAX_RESTARTS_AFTER_FAILURE {
        assert_eq!(end(Ending::Fail(failure)), Ok(Some(failure)));
    }
    assert_eq!(end(Ending::Fail(failure)), Err(Outcome::Stopped(failure)));
    assert_eq!(life.restarts(), 110);
    assert_eq!(life.stop_reason(), failure);
}

#[test]
fn rebooting_guest_waits_before_it_loads() {
    let (mut life, mut harts) = running(OnFailure::Stop, true);
    let restart = |life: &mut LifeCycle, harts: &mut Harts, who| match life
        .end(Ending::Restart, who, harts)
        .unwrap()
    {
        Outcome::Restarts(anew) => anew,
        other => panic!("{other:?}"),
    };
    for _ in 0..20 {
        restart(&mut life, &mut harts, Originator::Guest);
    }
    let anew = restart(&mut life, &mut harts, Originator::Guest);
    assert_eq!((anew.wait, anew.short_runs), (Milliseconds(1000), 21));
    let until = Milliseconds(1000);
    assert_eq!(life.dispatched(0, &mut harts), Begin::WaitUntil(until));
    assert_eq!(life.state(), VmState::Loading);
    harts.now = until;
    assert!(matches!(life.dispatched(0, &mut harts), Begin::Load(_)));
    // The operator does not wait.
    let anew = restart(&mut life, &mut harts, Originator::Operator);
    assert_eq!((anew.wait, anew.short_runs), (Milliseconds(0), 0));
    assert!(matches!(life.dispatched(0, &mut harts), Begin::Load(_)));
}

#[test]
fn what_cannot_be_loaded_stops() {
    let mut life = LifeCycle::new(1, OnFailure::Restart);
    let mut harts = Harts {
        running: [false].to_vec(),
        leave: false,
        now: Milliseconds(0),
    };
    life.start(&mut harts).unwrap();
    life.load_failed(&mut harts);
    harts.running[0] = false;
    assert_eq!(
        life.left(&mut harts),
        Outcome::Stopped(StopReason::BadImage)
    );
    assert_eq!(life.power(0), Power::Stopped);
    assert_eq!(life.resume(&mut harts), Err(Refusal::Active));
    assert_eq!(life.pause(&mut harts), Err(Refusal::DoesNotRun));
}

#[test]
fn a_limit_holds_for_later_starts() {
    let (mut life, mut harts) = running(OnFailure::Stop, true);
    assert_eq!(life.limit(), 2);
    assert_eq!(life.set_limit(0), None);
    assert_eq!(life.set_limit(3), None);
    assert_eq!(life.set_limit(1), Some(1));
    let refused = life.start_vcpu(1, 0x8000, 0, &mut harts);
    assert_eq!(refused, Err(StartError::Limited));
    assert_eq!(life.power(1), Power::Stopped);
    assert_eq!(life.set_limit(2), Some(1));
    assert_eq!(life.start_vcpu(1, 0x8000, 0, &mut harts), Ok(()));
    // Those that are started stay so.
    assert_eq!(life.set_limit(1), Some(2));
    assert_eq!(life.state(), VmState::Running);
}
