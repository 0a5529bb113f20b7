//! A computer in the model checker: every order of events, no time.

mod harts;
mod numbers;

use std::vec::Vec;

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::{Allocation, Config, VmConfig};
use crate::decision::{Kicks, Leave, Left, VcpuState};
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// In the hypervisor, about to dispatch.
    Between,
    Asleep,
    Polling,
    Guest {
        sliced: bool,
        trap_waits: bool,
        /// In a WFI that has not trapped.
        waiting: bool,
    },
    /// Its vCPU waits in place.
    InPlace,
}

/// One step of the computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Dispatch(HartId),
    /// A kick arrives.
    Kick(HartId),
    /// The slice ends; with it, perhaps, the service quantity.
    SliceEnd(HartId, bool),
    /// The guest acts, and may leave.
    Guest(HartId, Leave),
    /// A vCPU for which an interrupt was found beside one that waits in place is sent to another hart.
    Spread(VcpuId, HartId),
    /// The guest spins on a word with interrupts disabled.
    SpinClosed(HartId),
    /// The guest spins at a ticket lock whose holder is known.
    SpinOnHolder(HartId, VcpuId),
    /// An interrupt arrives in the vCPU's interrupt file.
    Interrupt(VcpuId),
    /// The hypervisor has an interrupt or a deadline for the vCPU.
    Wake(VcpuId),
    ChangeWord(VcpuId),
    Start(VcpuId),
    Stop(VcpuId),
    Pause(VcpuId),
    Resume(VcpuId),
    /// The operator dedicates this hart to a VM, or lets the VM share again.
    Allocate(VmId, Option<HartId>),
    /// The operator chooses another policy, share or slice.
    SetSpin(SpinPolicy),
    SetWait(WaitPolicy),
    SetShare(VmId, u32),
    SetSlice(Ticks),
}

/// Environment of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Environment {
    /// Every hart can test the interrupt files of all.
    pub(super) tests_any_file: bool,
    /// Policies that the operator may choose.
    pub(super) spins: &'static [SpinPolicy],
    pub(super) waits: &'static [WaitPolicy],
    /// The operator changes shares and slices.
    pub(super) parameters: bool,
    /// Harts leave and dispatch in one step.
    pub(super) together: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) scheduler: Scheduler,
    pub(super) environment: Environment,
    pub(super) modes: Vec<Mode>,
    pub(super) kicked: Vec<bool>,
    /// Waiting vCPUs whose interrupt files interrupt the hypervisor: `hgeie`.
    pub(super) armed: VcpuSet,
    /// Interrupts in files that their vCPUs have not taken.
    pub(super) pending: VcpuSet,
    /// Wake-ups after which the vCPU has not run.
    pub(super) wakes: VcpuSet,
    pub(super) changed: VcpuSet,
    /// Events that may still come from outside.
    pub(super) disturbances: u8,
}

impl World {
    pub(super) fn new(
        config: Config,
        environment: Environment,
        harts: u64,
        vms: &[u16],
        disturbances: u8,
    ) -> Self {
        let online = HartSet::from_bits((1 << harts) - 1);
        let mut world = Self::on(config, environment, online, disturbances);
        let scheduler = &mut world.scheduler;
        for &vcpus in vms {
            let allocation = Allocation::Shared { share: 1 };
            let (vm, _) = scheduler.add_vm(VmConfig { vcpus, allocation }).unwrap();
            for vcpu in scheduler.vcpus(vm).iter() {
                let _ = scheduler.start(vcpu, Ticks::ZERO);
            }
        }
        world.abstract_numbers();
        world
    }

    /// World of these harts, without VMs.
    pub(super) fn on(
        config: Config,
        environment: Environment,
        online: HartSet,
        disturbances: u8,
    ) -> Self {
        let count = online
            .iter()
            .map(HartId::index)
            .max()
            .map_or(0, |last| last + 1);
        Self {
            scheduler: Scheduler::new(config, online).unwrap(),
            environment,
            armed: VcpuSet::EMPTY,
            modes: std::vec![Mode::Between; count],
            kicked: std::vec![false; count],
            pending: VcpuSet::EMPTY,
            wakes: VcpuSet::EMPTY,
            changed: VcpuSet::EMPTY,
            disturbances,
        }
    }

    pub(super) fn vcpus(&self) -> impl Iterator<Item = VcpuId> {
        let scheduler = &self.scheduler;
        let every = (0..).map_while(VcpuId::new);
        every.filter(|&vcpu| scheduler.state(vcpu) != VcpuState::Absent)
    }

    pub(super) fn harts(&self) -> impl Iterator<Item = HartId> + use<> {
        self.scheduler.online.iter()
    }

    /// Returns true if a hart runs a vCPU outside of its slot.
    pub(super) fn runs_alternate(&self) -> bool {
        self.harts().any(|hart| self.scheduler.runs_alternate(hart))
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Dispatch(hart) => self.dispatch(hart),
            Step::Kick(hart) => self.kick(hart),
            Step::SliceEnd(hart, consumed) => {
                let end = self.scheduler.harts[hart.index()]
                    .run()
                    .and_then(|run| run.end);
                self.reconsider(hart, end.unwrap_or_default(), consumed);
            }
            Step::Guest(hart, reason) => self.guest(hart, Left::new(reason, Ticks::ZERO)),
            Step::SpinClosed(hart) => {
                let left = Left {
                    interrupts_enabled: false,
                    ..Left::new(Leave::SpinOnWord, Ticks::ZERO)
                };
                self.guest(hart, left);
            }
            Step::Spread(vcpu, to) => {
                let kicks = self.scheduler.send(vcpu, to, Ticks::ZERO);
                self.deliver(kicks);
            }
            Step::SpinOnHolder(hart, holder) => {
                let left = Left {
                    holder: Some(holder),
                    ..Left::new(Leave::SpinForTurn, Ticks::ZERO)
                };
                self.guest(hart, left);
            }
            Step::ChangeWord(vcpu) => self.changed.insert(vcpu),
            _ => self.disturb(step),
        }
        self.abstract_numbers();
    }

    fn disturb(&mut self, step: Step) {
        self.disturbances -= 1;
        let now = Ticks::ZERO;
        let kicks = match step {
            Step::Interrupt(vcpu) => return self.interrupt(vcpu),
            Step::Wake(vcpu) => {
                self.wakes.insert(vcpu);
                // The hypervisor interrupts the hart on which it waits in place.
                let hart = self.scheduler.running_on(vcpu);
                let waits = |hart: &HartId| self.modes[hart.index()] == Mode::InPlace;
                self.deliver(Kicks(hart.into_iter().filter(waits).collect()));
                self.scheduler.wake(vcpu, now)
            }
            Step::Start(vcpu) => self.scheduler.start(vcpu, now),
            Step::Stop(vcpu) => {
                self.forget(vcpu);
                self.scheduler.stop(vcpu)
            }
            Step::Pause(vcpu) => self.scheduler.pause(vcpu),
            Step::Resume(vcpu) => self.scheduler.resume(vcpu, now),
            Step::Allocate(vm, own) => {
                let to = match own {
                    Some(hart) => {
                        let harts = HartSet::only(hart);
                        Allocation::Dedicated { harts }
                    }
                    None => Allocation::Shared { share: 1 },
                };
                self.scheduler.set_allocation(vm, to).unwrap_or_default()
            }
            Step::SetSpin(policy) => self.scheduler.set_spin(policy, now),
            Step::SetWait(policy) => self.scheduler.set_wait(policy),
            Step::SetShare(vm, share) => {
                self.scheduler.set_share(vm, share).unwrap();
                Kicks::NONE
            }
            Step::SetSlice(slice) => {
                self.scheduler.set_slice(slice).unwrap();
                Kicks::NONE
            }
            _ => Kicks::NONE,
        };
        self.deliver(kicks);
    }

    /// Returns true if a vCPU waits for a word, and no interrupt ends the wait.
    pub(super) fn is_uninterruptible(&self, vcpu: VcpuId) -> bool {
        self.scheduler.uninterruptible.contains(vcpu)
    }

    /// Lets the guest on this hart continue and take its interrupts.
    fn take_interrupts(&mut self, hart: HartId) {
        if let Some(vcpu) = self.scheduler.running(hart) {
            self.wakes.remove(vcpu);
            self.pending.remove(vcpu);
        }
    }

    /// Clears the events of a stopped vCPU.
    fn forget(&mut self, vcpu: VcpuId) {
        self.pending.remove(vcpu);
        self.wakes.remove(vcpu);
        self.changed.remove(vcpu);
        self.armed.remove(vcpu);
    }

    pub(super) fn deliver(&mut self, kicks: Kicks) {
        for hart in kicks.harts().iter() {
            self.kicked[hart.index()] = true;
        }
    }

    fn tests_files(&self) -> bool {
        self.scheduler.config.wait.rules().tests
    }

    fn interrupt(&mut self, vcpu: VcpuId) {
        if let Some(hart) = self.scheduler.running_on(vcpu) {
            // The guest takes it itself, even out of a WFI.
            match &mut self.modes[hart.index()] {
                Mode::Guest { waiting, .. } => *waiting = false,
                Mode::InPlace => {
                    let answer = self.scheduler.end_wait_in_place(hart, Ticks::ZERO);
                    self.follow(hart, answer, Ticks::ZERO, false);
                    if self.scheduler.running_on(vcpu).is_none() {
                        self.pending.insert(vcpu);
                    }
                }
                Mode::Between | Mode::Asleep | Mode::Polling => {}
            }
            return;
        }
        self.pending.insert(vcpu);
        self.report(vcpu);
    }

    /// Returns true if an interrupt waits in this hart's files for a waiting vCPU.
    pub(super) fn other_has_interrupt(&self, hart: HartId) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|vcpu| {
            let waits = self.scheduler.state(vcpu) == VcpuState::SelfWait;
            let here = self.scheduler.last_hart(vcpu) == Some(hart);
            waits && (here || self.tests_files() && self.environment.tests_any_file)
        })
    }

    /// Interrupts the hypervisor for an interrupt in an armed file.
    fn report(&mut self, vcpu: VcpuId) {
        if self.pending.contains(vcpu) && self.armed.contains(vcpu) {
            self.armed.remove(vcpu);
            let kicks = self.scheduler.wake(vcpu, Ticks::ZERO);
            self.deliver(kicks);
        }
    }

    /// Arms the files of the waiters on a hart that takes a kick, by the policy in force.
    fn arm_as_wanted(&mut self, hart: HartId) {
        let waits = |vcpu: &VcpuId| {
            let state = self.scheduler.vcpus[vcpu.index()].map(|entry| entry.phase);
            state == Some(Phase::SelfWait) && self.scheduler.last_hart(*vcpu) == Some(hart)
        };
        let here: VcpuSet = self.vcpus().filter(waits).collect();
        self.armed = if self.tests_files() {
            self.armed.without(here)
        } else {
            self.armed.union(here)
        };
        for vcpu in here.iter() {
            self.report(vcpu);
        }
    }

    /// Reduces counters to what matters, so that the states are finitely many.
    pub(super) fn abstract_numbers(&mut self) {
        self.scheduler.abstract_numbers();
    }
}

/// Both slices, in ticks of the model's clock.
pub(super) const SLICES: [u64; 2] = [2_000, 5_000];
