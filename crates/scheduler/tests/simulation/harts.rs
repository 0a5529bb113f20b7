//! Harts of the simulation.

use std::collections::BTreeSet;

use scheduler::*;

use super::{Act, Guest, Habit, Mode, POLL_PERIOD, Simulation, Vcpu};

/// Tests of a hart for waiting vCPUs.
struct Files {
    /// vCPUs whose interrupt file is on this hart, with an interrupt pending: the file of another hart cannot be read.
    pending: BTreeSet<VcpuId>,
    changed: BTreeSet<VcpuId>,
    found: BTreeSet<VcpuId>,
}

impl Probe for Files {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        self.found.extend(self.pending.get(&vcpu));
        self.pending.contains(&vcpu)
    }

    fn changed(&mut self, vcpu: VcpuId) -> bool {
        self.found.extend(self.changed.get(&vcpu));
        self.changed.contains(&vcpu)
    }
}

impl Simulation {
    /// Follows the scheduler's answer about the vCPU of a hart.
    pub(super) fn follow(&mut self, place: usize, guest: Guest, answer: Continue) {
        match answer {
            Continue::Stay { slice, trap_waits } => {
                self.reference.end_wait_in_place(guest.vcpu);
                if let Some(index) = self.place_of(guest.vcpu) {
                    self.vcpus[index].pending = false;
                }
                // An interrupt ends a WFI, even one that the hypervisor takes.
                let burst_end = guest.burst_end.or(Some(self.now + 1));
                let slice_end = slice.map(|slice| self.now + slice.get());
                let guest = Guest {
                    slice_end,
                    trap_waits,
                    burst_end,
                    ..guest
                };
                self.harts[place].mode = Mode::Guest(guest);
            }
            Continue::Leave(reason) => self.leave(place, guest, reason),
        }
    }

    pub(super) fn end_burst(&mut self, place: usize, guest: Guest) {
        let Some(index) = self.place_of(guest.vcpu) else {
            return;
        };
        let Habit::Bursts { longest, acts } = self.vcpus[index].habit else {
            self.harts[place].mode = Mode::Guest(Guest {
                burst_end: None,
                ..guest
            });
            return;
        };
        let choice = self.random.below(acts.len() as u64) as usize;
        let again = Some(self.now + 1 + self.random.below(longest));
        let (reason, burst_end) = match acts[choice] {
            Act::Wait if std::mem::take(&mut self.vcpus[index].pending) => (None, again),
            Act::Wait if !guest.trap_waits => (None, None),
            Act::Wait => (Some(Leave::SelfWait), None),
            Act::Spin | Act::SpinOnWord | Act::SpinForTurn if !guest.trap_waits => (None, again),
            Act::Spin => (Some(Leave::Spin), None),
            Act::SpinOnWord => (Some(Leave::SpinOnWord), None),
            Act::SpinForTurn => (Some(Leave::SpinForTurn), None),
            Act::Yield => (Some(Leave::Yield), None),
            Act::Stop => (Some(Leave::Stopped), None),
        };
        match reason {
            Some(Leave::SelfWait) => self.wait(place, guest, index),
            Some(reason) => self.leave(place, guest, reason),
            None => self.harts[place].mode = Mode::Guest(Guest { burst_end, ..guest }),
        }
    }

    /// A wait that traps: in place, if the scheduler allows it.
    fn wait(&mut self, place: usize, guest: Guest, index: usize) {
        let ran = Ticks::new(self.now - guest.entered);
        let hart = self.harts[place].id;
        match self.scheduler.wait_in_place(hart, ran, self.ticks()) {
            InPlace::No => self.leave(place, guest, Leave::SelfWait),
            InPlace::Woken => {
                self.reference.go_on(guest.vcpu);
                let burst_end = Some(self.now + 1);
                self.harts[place].mode = Mode::Guest(Guest { burst_end, ..guest });
            }
            InPlace::With(others) => {
                self.reference.wait_in_place(guest.vcpu);
                let waits = Guest {
                    slice_end: None,
                    burst_end: None,
                    ..guest
                };
                self.harts[place].mode = Mode::InPlace(waits);
                assert!(!self.vcpus[index].pending);
                let found = |vcpu: &Vcpu| vcpu.pending && others.contains(vcpu.id);
                if self.vcpus.iter().any(found) {
                    self.leave(place, waits, Leave::SelfWait);
                }
            }
        }
    }

    pub(super) fn leave(&mut self, place: usize, guest: Guest, reason: Leave) {
        let ran = self.now - guest.entered;
        let index = self.place_of(guest.vcpu).unwrap();
        self.vcpus[index].ran += ran;
        if matches!(reason, Leave::SpinOnWord | Leave::SpinForTurn) {
            self.vcpus[index].changed = false;
        }
        let policy = self.scheduler.config().spin;
        let hart = self.harts[place].id;
        let left = Left::new(reason, Ticks::new(ran));
        let shares = self
            .scheduler
            .vm_of(guest.vcpu)
            .is_some_and(|vm| !self.scheduler.is_dedicated(vm));
        let until = self.now + self.scheduler.config().reservation_limit.get();
        // A file whose interrupt is pending when its vCPU goes to sleep reports it at once.
        let reports = self.vcpus[index].pending && !self.tests_files();
        if self.together {
            self.reference
                .leave(guest.vcpu, reason, policy, shares, until);
            self.decide(place, Some((guest.vcpu, left)));
            if reports {
                self.report(index);
            }
            return;
        }
        let kicks = self.scheduler.leave(hart, left, self.ticks());
        self.reference
            .leave(guest.vcpu, reason, policy, shares, until);
        self.deliver(kicks);
        if reports {
            self.report(index);
        }
        self.dispatch(place);
    }

    pub(super) fn dispatch(&mut self, place: usize) {
        self.decide(place, None);
    }

    /// Dispatches, after this vCPU has left if it is given.
    fn decide(&mut self, place: usize, left: Option<(VcpuId, Left)>) {
        let hart = self.harts[place].id;
        let now = self.ticks();
        let here = |vcpu: &&Vcpu| self.scheduler.last_hart(vcpu.id) == Some(hart);
        let pending = self.vcpus.iter().filter(|vcpu| vcpu.pending).filter(here);
        let changed = self.vcpus.iter().filter(|vcpu| vcpu.changed);
        let mut files = Files {
            pending: pending.map(|vcpu| vcpu.id).collect(),
            changed: changed.map(|vcpu| vcpu.id).collect(),
            found: BTreeSet::new(),
        };
        let mine: BTreeSet<VcpuId> = (self.vcpus.iter())
            .filter(|vcpu| self.may_run(vcpu.id, hart))
            .map(|vcpu| vcpu.id)
            .collect();
        let answer = match left {
            None => self.scheduler.dispatch(hart, now, &mut files),
            Some((vcpu, left)) => {
                let (stopped, answer) = self
                    .scheduler
                    .leave_and_dispatch(hart, &left, now, &mut files);
                let is_stopped = self.scheduler.state(vcpu) == VcpuState::Stopped;
                assert_eq!(stopped, is_stopped, "{vcpu}");
                answer
            }
        };
        let whole_vm = self.scheduler.config().wait == WaitPolicy::SelfWaitAll;
        self.reference.found(&files.found, whole_vm, self.now);
        self.follow_reasons();
        match answer {
            Dispatch::Run {
                vcpu,
                slice,
                trap_waits,
                kicks,
                ..
            } => {
                let index = self.place_of(vcpu).unwrap();
                let policy = self.scheduler.config().spin;
                assert!(mine.contains(&vcpu), "{vcpu} may not run on {hart}");
                self.reference.dispatch(vcpu, hart, policy);
                self.vcpus[index].pending = false;
                self.vcpus[index].ready_since = None;
                let burst_end = match self.vcpus[index].habit {
                    Habit::CpuBound => None,
                    Habit::Bursts { longest, .. } => {
                        Some(self.now + 1 + self.random.below(longest))
                    }
                };
                self.harts[place].mode = Mode::Guest(Guest {
                    vcpu,
                    entered: self.now,
                    slice_end: slice.map(|slice| self.now + slice.get()),
                    trap_waits,
                    burst_end,
                });
                self.deliver(kicks);
            }
            Dispatch::Idle { poll, kicks, .. } => {
                for vcpu in self.reference.dispatchable() {
                    assert!(
                        !self.may_run(vcpu, hart),
                        "{hart} idles while {vcpu} is ready: {:?}",
                        (
                            self.scheduler.state(vcpu),
                            self.scheduler.queue_of(vcpu),
                            self.scheduler.allowed(vcpu),
                            self.reference.debug(vcpu)
                        )
                    );
                }
                self.harts[place].mode = if poll {
                    Mode::Polling {
                        next: self.now + POLL_PERIOD,
                    }
                } else {
                    Mode::Asleep
                };
                self.deliver(kicks);
            }
        }
    }

    /// Checks the scheduler's placement, and under `Migration::Always` that a vCPU never runs where it ran last if there is another hart.
    pub(super) fn may_run(&self, vcpu: VcpuId, hart: HartId) -> bool {
        let allowed = self.scheduler.allowed(vcpu);
        let moves = self.scheduler.config().migration == Migration::Always;
        let stays = self.scheduler.last_hart(vcpu) == Some(hart);
        allowed.contains(hart) && !(moves && stays && allowed.count() > 1)
    }
}
