//! Actions of the model's harts.

use super::{Mode, World};
use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::base::ticks::Ticks;
use crate::decision::{Continue, Dispatch, InPlace, Leave, Left, Probe, VcpuState};

/// Tests of a hart: the interrupts in its own files, and all memory.
struct Tests {
    pending: VcpuSet,
    changed: VcpuSet,
    any_file: bool,
}

impl Probe for Tests {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        self.pending.contains(vcpu)
    }

    fn reaches_every_file(&self) -> bool {
        self.any_file
    }

    fn changed(&mut self, vcpu: VcpuId) -> bool {
        self.changed.contains(vcpu)
    }
}

impl World {
    pub(super) fn kick(&mut self, hart: HartId) {
        self.kicked[hart.index()] = false;
        self.arm_as_wanted(hart);
        if !matches!(self.modes[hart.index()], Mode::Guest { .. } | Mode::InPlace) {
            return self.dispatch(hart);
        }
        self.reconsider(hart, Ticks::ZERO, false);
    }

    pub(super) fn reconsider(&mut self, hart: HartId, ran: Ticks, consumed: bool) {
        let answer = self.scheduler.reconsider(hart, ran);
        self.follow(hart, answer, ran, consumed);
    }

    pub(super) fn follow(&mut self, hart: HartId, answer: Continue, ran: Ticks, consumed: bool) {
        match answer {
            Continue::Stay { slice, trap_waits } => {
                if self.modes[hart.index()] == Mode::InPlace {
                    self.take_interrupts(hart);
                }
                let sliced = slice.is_some();
                self.modes[hart.index()] = Mode::Guest {
                    sliced,
                    trap_waits,
                    waiting: false,
                };
            }
            Continue::Leave(reason) => self.leave(hart, Left::new(reason, ran), consumed),
        }
    }

    pub(super) fn guest(&mut self, hart: HartId, left: Left) {
        let Mode::Guest {
            sliced, trap_waits, ..
        } = self.modes[hart.index()]
        else {
            // An interrupt of another vCPU ends a wait in place.
            return self.leave(hart, left, false);
        };
        if left.cause == Leave::SelfWait && trap_waits {
            match self.scheduler.wait_in_place(hart, Ticks::ZERO, Ticks::ZERO) {
                InPlace::No => {}
                InPlace::Woken => return self.take_interrupts(hart),
                InPlace::With(_) => {
                    self.modes[hart.index()] = Mode::InPlace;
                    return;
                }
            }
        }
        if left.cause == Leave::SelfWait && !trap_waits {
            self.modes[hart.index()] = Mode::Guest {
                sliced,
                trap_waits,
                waiting: true,
            };
            return;
        }
        self.leave(hart, left, false);
    }

    fn leave(&mut self, hart: HartId, left: Left, consumed: bool) {
        let Some(vcpu) = self.scheduler.running(hart) else {
            return;
        };
        self.scheduler.prepare_charge(vcpu, consumed);
        if self.environment.together {
            let answer = {
                let mut tests = self.tests(hart);
                let now = Ticks::ZERO;
                let (stopped, answer) = self
                    .scheduler
                    .leave_and_dispatch(hart, &left, now, &mut tests);
                let state = self.scheduler.state(vcpu);
                assert_eq!(stopped, state == VcpuState::Stopped);
                answer
            };
            self.go(hart, answer);
            if self.scheduler.running_on(vcpu).is_none() {
                self.deschedule(vcpu);
            }
            return;
        }
        let kicks = self.scheduler.leave(hart, left, Ticks::ZERO);
        self.deliver(kicks);
        self.modes[hart.index()] = Mode::Between;
        self.deschedule(vcpu);
    }

    /// Handles a vCPU that has left its hart.
    fn deschedule(&mut self, vcpu: VcpuId) {
        match self.scheduler.state(vcpu) {
            VcpuState::Stopped => self.forget(vcpu),
            _ => {
                if !self.tests_files() {
                    self.armed.insert(vcpu);
                }
                self.report(vcpu);
            }
        }
    }

    pub(in crate::check) fn dispatch(&mut self, hart: HartId) {
        if core::mem::take(&mut self.kicked[hart.index()]) {
            self.arm_as_wanted(hart);
        }
        let mut tests = self.tests(hart);
        let answer = self.scheduler.dispatch(hart, Ticks::ZERO, &mut tests);
        self.go(hart, answer);
    }

    /// Tests of this hart.
    fn tests(&self, hart: HartId) -> Tests {
        let any_file = self.environment.tests_any_file;
        let here = |vcpu: &VcpuId| any_file || self.scheduler.last_hart(*vcpu) == Some(hart);
        let pending = self.pending.iter().filter(here).collect();
        Tests {
            pending,
            changed: self.changed,
            any_file,
        }
    }

    /// Lets the hart follow an answer.
    fn go(&mut self, hart: HartId, answer: Dispatch) {
        match answer {
            Dispatch::Run {
                vcpu,
                slice,
                trap_waits,
                kicks,
                ..
            } => {
                self.forget(vcpu);
                let sliced = slice.is_some();
                self.modes[hart.index()] = Mode::Guest {
                    sliced,
                    trap_waits,
                    waiting: false,
                };
                self.deliver(kicks);
            }
            Dispatch::Idle { poll, kicks, .. } => {
                self.modes[hart.index()] = if poll { Mode::Polling } else { Mode::Asleep };
                self.deliver(kicks);
            }
        }
    }
}
