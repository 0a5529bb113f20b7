//! The life of a VM against all orders of events: every state that they can lead to is visited, and the invariants that
//! `README.md` beside this file numbers hold in each.

use std::collections::{HashSet, VecDeque};
use std::vec::Vec;

use abi::monitor::{StopReason, VmState};
use abi::system::OnFailure;

use super::backoff::Milliseconds;
use super::life::{Begin, Ending, LifeCycle, Originator, Outcome, Port, Power};

/// Place of a vCPU, as the scheduler sees it, and its next step on its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Out,
    /// Ready for a hart, or waiting for an interrupt that may come at any time.
    Ready,
    /// On a hart, which has not asked yet what the vCPU does there.
    Dispatched,
    Loads,
    Runs,
    /// On a hart, about to leave it: for good until it is started, or not.
    Leaves {
        stopped: bool,
    },
}

impl Place {
    fn is_on_a_hart(self) -> bool {
        !matches!(self, Self::Out | Self::Ready)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Vcpu {
    place: Place,
    stopping: bool,
    paused: bool,
    asks: bool,
}

/// The scheduler's part, as `docs/why/scheduling.md` states it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Harts {
    vcpus: Vec<Vcpu>,
    /// The devices have been silenced since a vCPU last ran.
    quiet: bool,
}

impl Port for Harts {
    fn now(&self) -> Milliseconds {
        Milliseconds(0)
    }

    fn start(&mut self, vcpu: usize) {
        assert_eq!(self.vcpus[vcpu].place, Place::Out, "started twice");
        self.vcpus[vcpu].place = Place::Ready;
    }

    fn stop(&mut self, vcpu: usize) {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.paused = false;
        if vcpu.place.is_on_a_hart() {
            vcpu.stopping = true;
        } else {
            vcpu.place = Place::Out;
        }
    }

    fn pause(&mut self, vcpu: usize) {
        self.vcpus[vcpu].paused = true;
    }

    fn resume(&mut self, vcpu: usize) {
        self.vcpus[vcpu].paused = false;
    }

    fn is_stopped(&self, vcpu: usize) -> bool {
        self.vcpus[vcpu].place == Place::Out
    }

    fn set_dispatch_check(&mut self, vcpu: usize, ask: bool) {
        self.vcpus[vcpu].asks = ask;
    }

    fn quiesce(&mut self) {
        assert!(
            self.vcpus.iter().all(|vcpu| vcpu.place == Place::Out),
            "devices are silenced under a vCPU that runs"
        );
        self.quiet = true;
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    life: LifeCycle,
    harts: Harts,
    /// Harts that a vCPU has left for good and that have still to say so.
    settling: u8,
    /// The operator's last accepted wish was a stop.
    stop_wanted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Start,
    Stop,
    Restart,
    Pause,
    Resume,
    Dispatch(usize),
    Begin(usize),
    Leave(usize),
    Settle,
    Loaded,
    LoadFails,
    SliceEnds(usize),
    GuestStarts { by: usize, vcpu: usize },
    GuestStops(usize),
    GuestSuspends(usize, bool),
    GuestSuspendsVm(usize),
    GuestEnds(usize, Ending),
}

const GUEST_ENDINGS: [Ending; 3] = [
    Ending::Restart,
    Ending::Stop(StopReason::PowerOff),
    Ending::Fail(StopReason::SystemFailure),
];

impl World {
    fn new(vcpus: usize, on_failure: OnFailure) -> Self {
        let vcpu = Vcpu {
            place: Place::Out,
            stopping: false,
            paused: false,
            asks: true,
        };
        Self {
            life: LifeCycle::new(vcpus, on_failure),
            harts: Harts {
                vcpus: [vcpu].repeat(vcpus),
                quiet: true,
            },
            settling: 0,
            stop_wanted: false,
        }
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::from([
            Event::Start,
            Event::Stop,
            Event::Restart,
            Event::Pause,
            Event::Resume,
        ]);
        if self.settling > 0 {
            events.push(Event::Settle);
        }
        let count = self.harts.vcpus.len();
        for (index, vcpu) in self.harts.vcpus.iter().enumerate() {
            match vcpu.place {
                Place::Out => {}
                Place::Ready if vcpu.paused => {}
                Place::Ready => events.push(Event::Dispatch(index)),
                Place::Dispatched => events.push(Event::Begin(index)),
                Place::Leaves { .. } => events.push(Event::Leave(index)),
                Place::Loads => {
                    events.extend([Event::Loaded, Event::LoadFails, Event::SliceEnds(index)]);
                }
                // What was told to leave may still do something before its hart sees that.
                Place::Runs => {
                    events.extend([Event::SliceEnds(index), Event::GuestStops(index)]);
                    events.extend([false, true].map(|at| Event::GuestSuspends(index, at)));
                    events.push(Event::GuestSuspendsVm(index));
                    events.extend(GUEST_ENDINGS.map(|ending| Event::GuestEnds(index, ending)));
                    events.extend((0..count).map(|vcpu| Event::GuestStarts { by: index, vcpu }));
                }
            }
        }
        events
    }

    fn apply(&mut self, event: Event) {
        let Self { life, harts, .. } = self;
        let mut outcome = Outcome::Continues;
        match event {
            Event::Start => {
                if life.start(harts).is_ok() {
                    self.stop_wanted = false;
                }
            }
            Event::Stop => {
                let runs = !matches!(life.state(), VmState::Defined | VmState::Stopped);
                let answer = life.end(
                    Ending::Stop(StopReason::Operator),
                    Originator::Operator,
                    harts,
                );
                assert_eq!(
                    answer.is_ok(),
                    runs,
                    "a stop is refused where nothing runs only"
                );
                if let Ok(what) = answer {
                    outcome = what;
                    self.stop_wanted = true;
                }
            }
            Event::Restart => match life.end(Ending::Restart, Originator::Operator, harts) {
                Ok(what) => {
                    outcome = what;
                    self.stop_wanted = false;
                }
                Err(_) => {
                    let _ = life.start(harts);
                    self.stop_wanted = false;
                }
            },
            Event::Pause => drop(life.pause(harts)),
            Event::Resume => drop(life.resume(harts)),
            Event::Dispatch(vcpu) => {
                harts.vcpus[vcpu].place = Place::Dispatched;
                harts.quiet = false;
            }
            Event::Begin(vcpu) => self.begin(vcpu),
            Event::Leave(vcpu) => {
                let place = &mut harts.vcpus[vcpu];
                let stopped = place.place == Place::Leaves { stopped: true };
                if core::mem::take(&mut place.stopping) || stopped {
                    place.place = Place::Out;
                    self.settling += 1;
                } else {
                    place.place = Place::Ready;
                }
            }
            Event::Settle => {
                self.settling -= 1;
                outcome = life.left(harts);
            }
            Event::Loaded => {
                let stopped = !life.loaded(0x8000, 6, harts);
                harts.vcpus[0].place = Place::Leaves { stopped };
            }
            Event::LoadFails => {
                life.load_failed(harts);
                harts.vcpus[0].place = Place::Leaves { stopped: true };
            }
            Event::SliceEnds(vcpu) => {
                harts.vcpus[vcpu].place = Place::Leaves { stopped: false };
            }
            Event::GuestStarts { vcpu, .. } => drop(life.start_vcpu(vcpu, 0x8000, 7, harts)),
            Event::GuestStops(vcpu) => {
                life.stop_vcpu(vcpu, harts);
                harts.vcpus[vcpu].place = Place::Leaves { stopped: true };
            }
            Event::GuestSuspends(vcpu, elsewhere) => {
                life.suspend_vcpu(vcpu, elsewhere.then_some((0x9000, 8)), harts);
                harts.vcpus[vcpu].place = Place::Leaves { stopped: false };
            }
            Event::GuestSuspendsVm(vcpu) => self.suspend_vm(vcpu),
            Event::GuestEnds(_, ending) => {
                outcome = life.end(ending, Originator::Guest, harts).expect("it runs");
            }
        }
        match outcome {
            Outcome::Continues => {}
            Outcome::Restarts(_) => assert!(self.harts.quiet && !self.stop_wanted),
            Outcome::Stopped(_) => {
                assert!(self.harts.quiet);
                assert_eq!(self.life.state(), VmState::Stopped);
            }
        }
        self.life.forget_counts();
    }

    fn suspend_vm(&mut self, vcpu: usize) {
        let others = (0..self.harts.vcpus.len()).filter(|other| *other != vcpu);
        let others: Vec<usize> = others.collect();
        let is_stopped = |other: &usize| self.life.power(*other) == Power::Stopped;
        let alone = others.iter().all(is_stopped);
        let answer = self.life.suspend_vm(vcpu, (0x9000, 8), &mut self.harts);
        // 9.
        assert_eq!(answer.is_ok(), alone);
        if alone {
            let is_out = |other: &usize| self.harts.vcpus[*other].place == Place::Out;
            assert!(others.iter().all(is_out));
            self.harts.vcpus[vcpu].place = Place::Leaves { stopped: false };
        }
    }

    fn begin(&mut self, vcpu: usize) {
        let power = self.life.power(vcpu);
        let begin = self.life.dispatched(vcpu, &mut self.harts);
        self.harts.vcpus[vcpu].place = match begin {
            Begin::GoOn | Begin::At { .. } | Begin::ResumeAt { .. } => Place::Runs,
            Begin::Load(_) => Place::Loads,
            Begin::WaitUntil(_) => Place::Leaves { stopped: false },
            Begin::Leave => {
                assert_eq!(power, Power::StopPending);
                Place::Leaves { stopped: true }
            }
        };
    }

    /// The invariants of `README.md`.
    fn check(&self) {
        let vcpus = || self.harts.vcpus.iter().enumerate();
        let state = self.life.state();
        // 1.
        if matches!(state, VmState::Defined | VmState::Stopped) {
            for (index, vcpu) in vcpus() {
                assert_eq!(vcpu.place, Place::Out);
                assert_eq!(self.life.power(index), Power::Stopped);
            }
            assert!(self.harts.quiet);
        }
        // 2.
        if state == VmState::Stopping {
            for (index, vcpu) in vcpus() {
                assert!(vcpu.place == Place::Out || vcpu.place.is_on_a_hart());
                assert!(vcpu.place == Place::Out || vcpu.stopping);
                assert!(matches!(
                    self.life.power(index),
                    Power::Stopped | Power::StopPending
                ));
            }
        }
        // 3.
        if self.stop_wanted {
            assert!(matches!(state, VmState::Stopping | VmState::Stopped));
        }
        // 4.
        if state == VmState::Loading {
            for (index, vcpu) in vcpus().skip(1) {
                assert_eq!(vcpu.place, Place::Out);
                assert_eq!(self.life.power(index), Power::Stopped);
            }
        }
        for (index, vcpu) in vcpus() {
            // 5.
            match self.life.power(index) {
                Power::Stopped => assert_eq!(vcpu.place, Place::Out),
                Power::StopPending => assert!(
                    vcpu.stopping
                        || vcpu.place == Place::Leaves { stopped: true }
                        || vcpu.place == Place::Out && self.settling > 0
                ),
                Power::Started | Power::Loading => assert_ne!(vcpu.place, Place::Out),
                Power::StartPending { .. } => assert!(matches!(
                    vcpu.place,
                    Place::Ready | Place::Dispatched | Place::Leaves { stopped: false }
                )),
                Power::Suspended { .. } => {
                    assert!(!matches!(
                        vcpu.place,
                        Place::Out | Place::Runs | Place::Loads
                    ));
                }
            }
            if vcpu.place == Place::Runs {
                assert!(matches!(
                    self.life.power(index),
                    Power::Started | Power::StopPending
                ));
            }
            // 6.
            assert_eq!(vcpu.asks, self.life.power(index) != Power::Started);
            // 7.
            assert!(vcpu.paused <= (state == VmState::Paused));
        }
        if state == VmState::Paused {
            assert!(vcpus().all(|(_, vcpu)| vcpu.paused));
        }
    }

    /// 8: where a run ends, nothing but what the harts do by themselves ends it, in so many steps: each vCPU is asked what it
    /// does, leaves, and is settled.
    fn ends(mut self) -> Self {
        let bound = 4 * self.harts.vcpus.len() + usize::from(self.settling);
        for _ in 0..bound {
            if self.life.state() != VmState::Stopping {
                return self;
            }
            let own = self.events().into_iter().find(|event| {
                matches!(
                    event,
                    Event::Begin(_) | Event::Leave(_) | Event::SliceEnds(_) | Event::Settle
                )
            });
            self.apply(own.expect("something can still happen by itself"));
            self.check();
        }
        panic!("it does not end: {self:?}");
    }
}

/// Visits all states, and returns how many there are.
fn explore(vcpus: usize, on_failure: OnFailure) -> usize {
    let first = World::new(vcpus, on_failure);
    let mut seen = HashSet::from([first.clone()]);
    let mut queue = VecDeque::from([first]);
    while let Some(world) = queue.pop_front() {
        world.check();
        if world.life.state() == VmState::Stopping {
            let end = world.clone().ends();
            assert!(!world.stop_wanted || end.life.state() == VmState::Stopped);
        }
        let mut stopped = world.clone();
        stopped.apply(Event::Stop);
        assert!(matches!(
            stopped.ends().life.state(),
            VmState::Stopped | VmState::Defined
        ));
        for event in world.events() {
            let mut next = world.clone();
            next.apply(event);
            // Harts are few, so that no more than these can lag behind.
            if next.settling <= 3 && seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    seen.len()
}

#[test]
fn all_orders_of_events_keep_the_invariants() {
    for vcpus in [1, 2] {
        for on_failure in [OnFailure::Stop, OnFailure::Restart] {
            let states = explore(vcpus, on_failure);
            assert!(states > 30 * vcpus, "{vcpus} vCPUs: {states} states only");
        }
    }
}

#[test]
fn three_vcpus_keep_the_invariants_too() {
    assert!(explore(3, OnFailure::Stop) > 1000);
}
