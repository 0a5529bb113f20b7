//! Invariants of a simulation.

use scheduler::*;

use super::reference::Phase;
use super::{Mode, Simulation, Vcpu};

impl Simulation {
    /// State of all vCPUs, for the message of a test that fails.
    pub fn describe(&self) -> String {
        let line = |vcpu: &Vcpu| {
            let vm = self.scheduler.vm_of(vcpu.id);
            let state = self.scheduler.state(vcpu.id);
            let queue = self.scheduler.queue_of(vcpu.id);
            format!(
                "\n{} of {vm:?}: {state:?} in {queue:?}, ran {}",
                vcpu.id, vcpu.ran
            )
        };
        self.vcpus.iter().map(line).collect()
    }

    /// Lets the reference learn which vCPUs with a reason to run were made ready, which it leaves open: the next spinner may wait for them.
    pub fn follow_reasons(&mut self) {
        for vcpu in &self.vcpus {
            if self.scheduler.state(vcpu.id) == VcpuState::Ready {
                self.reference.take_reason(vcpu.id);
            }
        }
    }

    /// Checks the invariants.
    pub fn check(&mut self) {
        self.scheduler.check().unwrap();
        for vcpu in &mut self.vcpus {
            let actual = self.scheduler.state(vcpu.id);
            let expected = self.reference.state(vcpu.id);
            assert_eq!(actual, expected, "{} at {}", vcpu.id, self.now);
            match self.reference.phase(vcpu.id) {
                Phase::Ready if expected == VcpuState::Ready => {
                    let since = *vcpu.ready_since.get_or_insert(self.now);
                    vcpu.longest_wait = vcpu.longest_wait.max(self.now - since);
                }
                Phase::Waiting if vcpu.pending && expected == VcpuState::SelfWait => {
                    let since = *vcpu.ready_since.get_or_insert(self.now);
                    vcpu.longest_wait = vcpu.longest_wait.max(self.now - since);
                }
                _ => vcpu.ready_since = None,
            }
        }
        // Unless a kick is pending, no hart is idle while there is work for it.
        if self.harts.iter().any(|hart| hart.kick.is_some()) {
            return;
        }
        for vcpu in self.reference.dispatchable() {
            for hart in &self.harts {
                let rests = match hart.mode {
                    Mode::Asleep | Mode::Polling { .. } | Mode::InPlace(_) => true,
                    Mode::Guest(guest) => guest.slice_end.is_none() || !guest.trap_waits,
                };
                assert!(
                    !rests || !self.may_run(vcpu, hart.id),
                    "{} rests ({:?}) while {vcpu} is ready",
                    hart.id,
                    hart.mode
                );
            }
        }
    }
}
