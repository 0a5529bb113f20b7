//! Steps that can happen next in a world.

use std::vec::Vec;

use super::world::{Environment, Mode, SLICES, Step, World};
use crate::base::id::{HartId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::decision::{Leave, VcpuState};
use crate::policies::spin::SpinPolicy;
use crate::policies::spin::exit::{Keep, SpinExit, SpinOn};

impl World {
    /// Siblings of the vCPU on this hart: any of them may hold a lock.
    fn siblings_of_running(&self, hart: HartId) -> VcpuSet {
        let vcpu = self.scheduler.running(hart);
        let vm = vcpu.and_then(|vcpu| self.scheduler.vm_of(vcpu));
        let all = vm.map_or(VcpuSet::EMPTY, |vm| self.scheduler.vcpus(vm));
        all.without(vcpu.map_or(VcpuSet::EMPTY, VcpuSet::only))
    }

    /// Lists everything that can happen next.
    pub(super) fn steps(&self, steps: &mut Vec<Step>) {
        for hart in self.harts() {
            if self.kicked[hart.index()] && self.modes[hart.index()] != Mode::Between {
                steps.push(Step::Kick(hart));
            }
            match self.modes[hart.index()] {
                Mode::Between | Mode::Polling => steps.push(Step::Dispatch(hart)),
                Mode::Asleep => {}
                Mode::InPlace => {
                    if self.other_has_interrupt(hart) {
                        steps.push(Step::Guest(hart, Leave::SelfWait));
                    }
                    for vcpu in self.pending.iter() {
                        let to = self.scheduler.spread_targets(hart, vcpu);
                        if self.scheduler.last_hart(vcpu) == Some(hart) {
                            steps.extend(to.iter().map(|to| Step::Spread(vcpu, to)));
                        }
                    }
                }
                Mode::Guest {
                    sliced,
                    trap_waits,
                    waiting,
                } => {
                    if sliced {
                        steps.push(Step::SliceEnd(hart, false));
                        steps.push(Step::SliceEnd(hart, true));
                    }
                    if !waiting {
                        steps.push(Step::Guest(hart, Leave::SelfWait));
                        steps.push(Step::Guest(hart, Leave::Stopped));
                        if sliced {
                            // The hypervisor need not ask at the end of a whole slice.
                            steps.push(Step::Guest(hart, Leave::SliceEnd));
                        }
                        if trap_waits {
                            self.spins(hart, steps);
                        }
                    }
                }
            }
        }
        if self.disturbances > 0 {
            self.operators(steps);
        }
        for vcpu in self.vcpus() {
            if self.scheduler.waits_for_word(vcpu) && !self.changed.contains(vcpu) {
                steps.push(Step::ChangeWord(vcpu));
            }
            if self.disturbances == 0 {
                continue;
            }
            let state = self.scheduler.state(vcpu);
            match state {
                VcpuState::Absent | VcpuState::Stopping(_) => continue,
                VcpuState::Stopped => {
                    steps.push(Step::Start(vcpu));
                    continue;
                }
                VcpuState::Paused | VcpuState::Pausing(_) => steps.push(Step::Resume(vcpu)),
                _ => steps.push(Step::Pause(vcpu)),
            }
            steps.push(Step::Stop(vcpu));
            if !self.pending.contains(vcpu) {
                steps.push(Step::Interrupt(vcpu));
            }
            if !self.wakes.contains(vcpu) {
                steps.push(Step::Wake(vcpu));
            }
        }
    }

    /// Lists the spins of the guest on this hart that make it leave. After a poll it may leave too.
    fn spins(&self, hart: HartId, steps: &mut Vec<Step>) {
        let leaves = |on, holder| {
            let mut scheduler = self.scheduler.clone();
            let keep = scheduler.keeps_hart(hart, SpinExit { on, holder });
            assert_eq!(scheduler, self.scheduler, "a question changes nothing");
            keep != Keep::Yes
        };
        let turn = SpinOn::Turn { next: true };
        let ways = [
            (SpinOn::Unknown, Step::Guest(hart, Leave::Spin)),
            (SpinOn::Word, Step::Guest(hart, Leave::SpinOnWord)),
            (turn, Step::Guest(hart, Leave::SpinForTurn)),
        ];
        let leaving = ways.into_iter().filter(|&(on, _)| leaves(on, None));
        steps.extend(leaving.map(|(_, step)| step));
        if self.scheduler.config.spin == SpinPolicy::Reservation {
            steps.extend(leaves(SpinOn::Word, None).then_some(Step::SpinClosed(hart)));
            let holders = self.siblings_of_running(hart);
            let holders = holders.iter().filter(|&holder| leaves(turn, Some(holder)));
            steps.extend(holders.map(|holder| Step::SpinOnHolder(hart, holder)));
        }
    }

    /// Lists the operator's changes.
    fn operators(&self, steps: &mut Vec<Step>) {
        let config = &self.scheduler.config;
        for vm in (0..).map_while(VmId::new) {
            // A VM with a single vCPU can have a dedicated hart, and leaves the others to the rest.
            if self.scheduler.vcpus(vm).count() != 1 {
                continue;
            }
            if self.scheduler.is_dedicated(vm) {
                steps.push(Step::Allocate(vm, None));
            } else {
                let to = |hart| Step::Allocate(vm, Some(hart));
                steps.extend(self.harts().map(to));
            }
        }
        let Environment {
            spins,
            waits,
            parameters,
            ..
        } = self.environment;
        let others = spins.iter().filter(|&&spin| spin != config.spin);
        steps.extend(others.map(|&spin| Step::SetSpin(spin)));
        let others = waits.iter().filter(|&&wait| wait != config.wait);
        steps.extend(others.map(|&wait| Step::SetWait(wait)));
        if parameters {
            let vms = (0..).map_while(VmId::new);
            let vms = vms.filter(|&vm| !self.scheduler.vcpus(vm).is_empty());
            steps.extend(vms.map(|vm| Step::SetShare(vm, 3 - self.scheduler.share(vm))));
            let [short, long] = SLICES.map(Ticks::new);
            let other = if config.slice == short { long } else { short };
            steps.push(Step::SetSlice(other));
        }
    }
}
