//! Life cycle of one VM as a pure state machine: its effects on vCPUs and devices go through [`Port`].
//!
//! One lock holds a [`LifeCycle`], and all requests are made under that lock: by the operator, the guest's
//! HSM and SRST calls, the hart that loads the VM, and the harts that its vCPUs leave. `README.md` beside this file has
//! the picture and the invariants, which `model.rs` checks over all orders of events.

use alloc::boxed::Box;
use alloc::vec;

use abi::monitor::{StopReason, VmState};
use abi::system::OnFailure;

use super::backoff::{Backoff, Milliseconds};
use super::restart_plan::RestartPlan;

/// Number of restarts of a failing VM before it is left stopped. Its own reboots do not count.
pub const MAX_RESTARTS_AFTER_FAILURE: u32 = 10;

/// Effects of a VM's life cycle on its vCPUs and devices.
pub trait Port {
    /// Lets a stopped vCPU be given a hart from now on.
    fn start(&mut self, vcpu: usize);
    /// Makes the vCPU leave its hart, if it is on one, and get none until [`Port::start`]. This ends a pause too.
    fn stop(&mut self, vcpu: usize);
    /// Makes the vCPU leave its hart, if it is on one, and get none until [`Port::resume`].
    fn pause(&mut self, vcpu: usize);
    /// Ends a pause.
    fn resume(&mut self, vcpu: usize);
    /// Returns true if the vCPU is on no hart and gets none until [`Port::start`].
    fn is_stopped(&self, vcpu: usize) -> bool;
    /// Sets whether [`LifeCycle::dispatched`] is asked before the vCPU next enters its guest.
    fn set_dispatch_check(&mut self, vcpu: usize, ask: bool);
    /// The board's time.
    fn now(&self) -> Milliseconds;
    /// Stops the VM's devices from accessing its memory. No vCPU of the VM is on a hart.
    fn quiesce(&mut self);
}

/// Manner in which a VM's run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The VM stays stopped, for this reason.
    Stop(StopReason),
    /// The VM restarts.
    Restart,
    /// The VM has failed: the system's description says what follows.
    Fail(StopReason),
}

/// Originator of a run's end. The operator's last command stands; a guest's request never replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Originator {
    Operator,
    Guest,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// No outcome yet.
    Continues,
    /// The run has ended, and the VM is loaded again.
    Restarts(RestartPlan),
    /// The run has ended for good, until the VM is started.
    Stopped(StopReason),
}

/// Reason why a command or a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The VM has not stopped.
    Runs,
    /// The VM is not running.
    DoesNotRun,
    /// The VM is not paused.
    Active,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Runs => "it has not stopped",
            Self::DoesNotRun => "it is not running",
            Self::Active => "it is not paused",
        })
    }
}

/// The power state of a guest's hart (SBI, "Hart State Management Extension").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    Stopped,
    /// Stop requested; the vCPU still has to leave its hart.
    StopPending,
    /// Started by a sibling; goes on at the address with the value in a1.
    StartPending {
        address: u64,
        opaque: u64,
    },
    Started,
    /// Suspended until an interrupt; `resume` has the address if the suspension loses the registers.
    Suspended {
        resume: Option<(u64, u64)>,
    },
    /// The first vCPU, as long as it loads the VM.
    Loading,
}

/// Reason why a sibling cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// No such vCPU.
    NoVcpu,
    /// The vCPU is not stopped.
    AlreadyAvailable,
    /// The VM ends.
    Ends,
    /// The guest has as many vCPUs started as it may have.
    Limited,
}

/// Reason why a VM cannot be suspended: another of its vCPUs is not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiblingRuns;

/// Beginning of a vCPU that has just been given a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Continue at the last instruction.
    GoOn,
    /// Begin at an address, with the registers of a hart after reset.
    At { address: u64, opaque: u64 },
    /// End a suspension that has lost the registers: begin at an address, and keep what the environment keeps for the vCPU.
    ResumeAt { address: u64, opaque: u64 },
    /// Load the VM for this run.
    Load(Run),
    /// Wait: the run begins then, and not before.
    WaitUntil(Milliseconds),
    /// Leave the hart: the vCPU was stopped meanwhile.
    Leave,
}

/// Run of a VM, from a start to an end: loading that was begun for one run does not count in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Run(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Never started.
    Defined,
    /// Loading or running.
    Active,
    /// The operator has paused it.
    Paused,
    /// Ending: its vCPUs were made to stop, and the ending follows when all have.
    Ending(Ending, Originator),
    Stopped,
}

/// Life cycle of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LifeCycle {
    phase: Phase,
    stop_reason: StopReason,
    on_failure: OnFailure,
    run: Run,
    restarts: u64,
    failures: u32,
    backoff: Backoff,
    power: Box<[Power]>,
    /// Most vCPUs that the guest may have started at a time.
    limit: usize,
}

impl LifeCycle {
    /// VM of so many vCPUs that has not been started.
    #[must_use]
    pub fn new(vcpus: usize, on_failure: OnFailure) -> Self {
        Self {
            phase: Phase::Defined,
            stop_reason: StopReason::None,
            on_failure,
            run: Run(0),
            restarts: 0,
            failures: 0,
            backoff: Backoff::default(),
            power: vec![Power::Stopped; vcpus].into_boxed_slice(),
            limit: vcpus,
        }
    }

    /// Sets how many vCPUs the guest may have started at a time. Those that are started now stay so: only the guest knows what they do.
    /// Returns how many they are, or `None`, with nothing changed, unless the limit is from 1 to the VM's vCPUs.
    pub fn set_limit(&mut self, limit: usize) -> Option<usize> {
        if !(1..=self.power.len()).contains(&limit) {
            return None;
        }
        self.limit = limit;
        Some(self.started())
    }

    /// Most vCPUs that the guest may have started at a time.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Number of vCPUs that are not stopped.
    fn started(&self) -> usize {
        let power = self.power.iter();
        power.filter(|power| **power != Power::Stopped).count()
    }

    /// State of the VM.
    #[must_use]
    #[inline]
    pub fn state(&self) -> VmState {
        let loads = self.power.first() == Some(&Power::Loading);
        match self.phase {
            Phase::Defined => VmState::Defined,
            Phase::Active if loads => VmState::Loading,
            Phase::Active => VmState::Running,
            Phase::Paused => VmState::Paused,
            Phase::Ending(..) => VmState::Stopping,
            Phase::Stopped => VmState::Stopped,
        }
    }

    /// Reason of the last stop.
    #[must_use]
    pub fn stop_reason(&self) -> StopReason {
        self.stop_reason
    }

    /// Number of restarts, for whatever reason.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The power state of a vCPU; one that does not exist is stopped.
    #[must_use]
    pub fn power(&self, vcpu: usize) -> Power {
        self.power.get(vcpu).copied().unwrap_or(Power::Stopped)
    }

    /// Starts a VM that does not run.
    ///
    /// # Errors
    /// [`Refusal::Runs`] if it runs.
    pub fn start(&mut self, port: &mut impl Port) -> Result<(), Refusal> {
        if !matches!(self.phase, Phase::Defined | Phase::Stopped) {
            return Err(Refusal::Runs);
        }
        self.failures = 0;
        self.backoff.forget(port.now());
        self.load(port);
        Ok(())
    }

    /// Ends the run: all vCPUs stop, and the ending follows when the last one has left its hart. For a run that ends
    /// already, an operator's command replaces the ending, a guest's request does not.
    ///
    /// # Errors
    /// [`Refusal::DoesNotRun`] if there is no run.
    pub fn end(
        &mut self,
        ending: Ending,
        who: Originator,
        port: &mut impl Port,
    ) -> Result<Outcome, Refusal> {
        match (self.phase, who) {
            (Phase::Defined | Phase::Stopped, _) => return Err(Refusal::DoesNotRun),
            (Phase::Ending(..), Originator::Guest) => {}
            (Phase::Ending(..), Originator::Operator) => self.phase = Phase::Ending(ending, who),
            (Phase::Active | Phase::Paused, _) => {
                self.phase = Phase::Ending(ending, who);
                for vcpu in 0..self.power.len() {
                    if self.power(vcpu) != Power::Stopped {
                        self.set(vcpu, Power::StopPending, port);
                    }
                    // Those that are stopped may be marked as paused, which ends too.
                    port.stop(vcpu);
                }
            }
        }
        Ok(self.settle(port))
    }

    /// Pauses a VM: its vCPUs leave their harts and get none.
    ///
    /// # Errors
    /// [`Refusal::DoesNotRun`].
    pub fn pause(&mut self, port: &mut impl Port) -> Result<(), Refusal> {
        if self.phase != Phase::Active {
            return Err(Refusal::DoesNotRun);
        }
        self.phase = Phase::Paused;
        (0..self.power.len()).for_each(|vcpu| port.pause(vcpu));
        Ok(())
    }

    /// Resumes a paused VM.
    ///
    /// # Errors
    /// [`Refusal::Active`].
    pub fn resume(&mut self, port: &mut impl Port) -> Result<(), Refusal> {
        if self.phase != Phase::Paused {
            return Err(Refusal::Active);
        }
        self.phase = Phase::Active;
        (0..self.power.len()).for_each(|vcpu| port.resume(vcpu));
        Ok(())
    }

    /// Starts a vCPU for its guest.
    ///
    /// # Errors
    /// [`StartError`]; nothing has changed then.
    pub fn start_vcpu(
        &mut self,
        vcpu: usize,
        address: u64,
        opaque: u64,
        port: &mut impl Port,
    ) -> Result<(), StartError> {
        let power = self.power.get(vcpu).ok_or(StartError::NoVcpu)?;
        if !matches!(self.phase, Phase::Active | Phase::Paused) {
            return Err(StartError::Ends);
        }
        if *power != Power::Stopped {
            return Err(StartError::AlreadyAvailable);
        }
        if self.started() >= self.limit {
            return Err(StartError::Limited);
        }
        self.set(vcpu, Power::StartPending { address, opaque }, port);
        port.start(vcpu);
        Ok(())
    }

    /// Stops a vCPU that is on a hart, by its own call: it must leave the hart now, and can be started again once it has.
    pub fn stop_vcpu(&mut self, vcpu: usize, port: &mut impl Port) {
        if self.power(vcpu) == Power::Started {
            self.set(vcpu, Power::StopPending, port);
        }
    }

    /// Suspends a vCPU that is on a hart, by its own call. A pending stop goes first.
    pub fn suspend_vcpu(&mut self, vcpu: usize, resume: Option<(u64, u64)>, port: &mut impl Port) {
        if self.power(vcpu) == Power::Started {
            self.set(vcpu, Power::Suspended { resume }, port);
        }
    }

    /// Suspends the VM by the call of a vCPU that is on a hart and goes on at the address with the value in a1. A pending stop goes first.
    ///
    /// # Errors
    /// [`SiblingRuns`]; nothing has changed then.
    pub fn suspend_vm(
        &mut self,
        vcpu: usize,
        resume: (u64, u64),
        port: &mut impl Port,
    ) -> Result<(), SiblingRuns> {
        let mut others = self.power.iter().enumerate();
        if others.any(|(other, power)| other != vcpu && *power != Power::Stopped) {
            return Err(SiblingRuns);
        }
        self.suspend_vcpu(vcpu, Some(resume), port);
        Ok(())
    }

    /// Decides how a vCPU that has been given a hart begins there.
    pub fn dispatched(&mut self, vcpu: usize, port: &mut impl Port) -> Begin {
        let begin = match self.power(vcpu) {
            Power::Started => Begin::GoOn,
            Power::Loading => {
                return match self.backoff.waits_until(port.now()) {
                    Some(time) => Begin::WaitUntil(time),
                    None => Begin::Load(self.run),
                };
            }
            Power::Stopped | Power::StopPending => return Begin::Leave,
            Power::StartPending { address, opaque } => Begin::At { address, opaque },
            Power::Suspended { resume: None } => Begin::GoOn,
            Power::Suspended {
                resume: Some((address, opaque)),
            } => Begin::ResumeAt { address, opaque },
        };
        self.set(vcpu, Power::Started, port);
        begin
    }

    /// Ends the loading: the first vCPU, which is on a hart, begins at `address` when it is next given one. Returns false if
    /// the run's end was requested meanwhile.
    #[must_use]
    pub fn loaded(&mut self, address: u64, opaque: u64, port: &mut impl Port) -> bool {
        let loads = self.power(0) == Power::Loading;
        if loads {
            self.set(0, Power::StartPending { address, opaque }, port);
        }
        loads
    }

    /// Ends the run of a VM that cannot be loaded; its first vCPU leaves the hart.
    pub fn load_failed(&mut self, port: &mut impl Port) {
        if self.power(0) == Power::Loading {
            // The calling vCPU is on a hart, so the run cannot be over yet.
            let _ = self.end(Ending::Stop(StopReason::BadImage), Originator::Guest, port);
        }
    }

    /// Notes that a vCPU has left its hart and gets none until it is started, and carries out what waited for that.
    pub fn left(&mut self, port: &mut impl Port) -> Outcome {
        self.settle(port)
    }

    /// Notes which vCPUs have stopped. If a run ends and all have, its ending is carried out.
    fn settle(&mut self, port: &mut impl Port) -> Outcome {
        for vcpu in 0..self.power.len() {
            if self.power(vcpu) == Power::StopPending && port.is_stopped(vcpu) {
                self.set(vcpu, Power::Stopped, port);
            }
        }
        let Phase::Ending(ending, who) = self.phase else {
            return Outcome::Continues;
        };
        if self.power.iter().any(|power| *power != Power::Stopped) {
            return Outcome::Continues;
        }
        port.quiesce();
        let (anew, reason) = match ending {
            Ending::Stop(reason) => (false, reason),
            Ending::Restart => (true, StopReason::None),
            Ending::Fail(reason) => {
                let again = self.on_failure == OnFailure::Restart
                    && self.failures < MAX_RESTARTS_AFTER_FAILURE;
                self.failures = self.failures.saturating_add(u32::from(again));
                (again, reason)
            }
        };
        if !anew {
            self.phase = Phase::Stopped;
            self.stop_reason = reason;
            return Outcome::Stopped(reason);
        }
        self.restarts = self.restarts.saturating_add(1);
        let now = port.now();
        let wait = match who {
            Originator::Guest => self.backoff.restart(now),
            Originator::Operator => {
                self.backoff.forget(now);
                Milliseconds::default()
            }
        };
        self.load(port);
        Outcome::Restarts(RestartPlan {
            failed: (reason != StopReason::None).then_some(reason),
            wait,
            short_runs: self.backoff.short_runs(),
        })
    }

    /// Begins a run: the first vCPU loads the VM when it is given a hart.
    #[inline]
    fn load(&mut self, port: &mut impl Port) {
        self.phase = Phase::Active;
        self.stop_reason = StopReason::None;
        self.run = Run(self.run.0.wrapping_add(1));
        self.set(0, Power::Loading, port);
        port.start(0);
    }

    /// Clears the counts that grow with every run, so that states are comparable.
    #[cfg(test)]
    pub(super) fn forget_counts(&mut self) {
        (self.run, self.restarts) = (Run(0), 0);
        self.backoff = Backoff::default();
    }

    fn set(&mut self, vcpu: usize, power: Power, port: &mut impl Port) {
        if let Some(place) = self.power.get_mut(vcpu) {
            *place = power;
            port.set_dispatch_check(vcpu, power != Power::Started);
        }
    }
}
