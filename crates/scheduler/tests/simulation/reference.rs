//! Expected state of each vCPU, in the simplest terms: no queues, no sets of bits, no order.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Stopped,
    Ready,
    Waiting,
    WaitingForWord { until: u64 },
    Running(HartId),
}

#[derive(Clone, Debug)]
struct Entry {
    vm: VmId,
    phase: Phase,
    paused: bool,
    stopping: bool,
    woken: bool,
    /// Waits on its hart.
    in_place: bool,
    /// Set if the vCPU has a reason to run while it waits.
    granted: bool,
    /// Partners that must be dispatched before it.
    waits_for: BTreeSet<VcpuId>,
}

#[derive(Clone, Debug, Default)]
pub struct Reference {
    entries: BTreeMap<VcpuId, Entry>,
}

impl Reference {
    pub fn add(&mut self, vcpu: VcpuId, vm: VmId) {
        let entry = Entry {
            vm,
            phase: Phase::Stopped,
            paused: false,
            stopping: false,
            woken: false,
            in_place: false,
            granted: false,
            waits_for: BTreeSet::new(),
        };
        self.entries.insert(vcpu, entry);
    }

    pub fn debug(&self, vcpu: VcpuId) -> String {
        format!("{:?}", self.entries[&vcpu])
    }

    pub fn phase(&self, vcpu: VcpuId) -> Phase {
        self.entries[&vcpu].phase
    }

    pub fn state(&self, vcpu: VcpuId) -> VcpuState {
        let entry = &self.entries[&vcpu];
        match entry.phase {
            Phase::Running(hart) if entry.stopping => VcpuState::Stopping(hart),
            Phase::Running(hart) if entry.paused => VcpuState::Pausing(hart),
            Phase::Running(hart) => VcpuState::Running(hart),
            Phase::Stopped => VcpuState::Stopped,
            _ if entry.paused => VcpuState::Paused,
            Phase::Ready if !entry.waits_for.is_empty() => VcpuState::SpinWait,
            Phase::Ready => VcpuState::Ready,
            Phase::Waiting | Phase::WaitingForWord { .. } => VcpuState::SelfWait,
        }
    }

    /// vCPUs that a hart could run without a test.
    pub fn dispatchable(&self) -> Vec<VcpuId> {
        let ready = |entry: &Entry| {
            let ready = entry.phase == Phase::Ready && entry.waits_for.is_empty();
            !entry.paused && (ready || entry.granted)
        };
        self.entries
            .iter()
            .filter(|(_, entry)| ready(entry))
            .map(|(&vcpu, _)| vcpu)
            .collect()
    }

    fn entry(&mut self, vcpu: VcpuId) -> &mut Entry {
        self.entries.get_mut(&vcpu).unwrap()
    }

    fn partners(&self, vcpu: VcpuId) -> Vec<VcpuId> {
        let vm = self.entries[&vcpu].vm;
        let partner =
            |(&other, entry): (&VcpuId, &Entry)| (other != vcpu && entry.vm == vm).then_some(other);
        self.entries.iter().filter_map(partner).collect()
    }

    /// Ends all waits for `vcpu`.
    fn strike(&mut self, vcpu: VcpuId) {
        for entry in self.entries.values_mut() {
            entry.waits_for.remove(&vcpu);
        }
    }

    pub fn start(&mut self, vcpu: VcpuId) {
        let entry = self.entry(vcpu);
        if entry.phase == Phase::Stopped {
            entry.phase = Phase::Ready;
        }
    }

    pub fn stop(&mut self, vcpu: VcpuId) {
        let entry = self.entry(vcpu);
        entry.paused = false;
        if matches!(entry.phase, Phase::Running(_)) {
            entry.stopping = true;
            return;
        }
        entry.phase = Phase::Stopped;
        entry.granted = false;
        entry.waits_for.clear();
        self.strike(vcpu);
    }

    pub fn pause(&mut self, vcpu: VcpuId) {
        let entry = self.entry(vcpu);
        entry.paused = true;
        if matches!(entry.phase, Phase::Running(_)) {
            return;
        }
        // A vCPU that had a reason to run, or could miss one, will run when it is resumed.
        if matches!(entry.phase, Phase::WaitingForWord { .. }) || entry.granted {
            entry.phase = Phase::Ready;
        }
        entry.granted = false;
        entry.waits_for.clear();
        self.strike(vcpu);
    }

    pub fn resume(&mut self, vcpu: VcpuId) {
        self.entry(vcpu).paused = false;
    }

    pub fn wake(&mut self, vcpu: VcpuId) {
        let entry = self.entry(vcpu);
        match entry.phase {
            Phase::Running(_) => entry.woken = true,
            Phase::Waiting | Phase::WaitingForWord { .. } => {
                entry.phase = Phase::Ready;
                entry.granted = false;
            }
            Phase::Ready | Phase::Stopped => {}
        }
    }

    pub fn wait_in_place(&mut self, vcpu: VcpuId) {
        self.entry(vcpu).in_place = true;
    }

    pub fn end_wait_in_place(&mut self, vcpu: VcpuId) {
        if std::mem::take(&mut self.entry(vcpu).in_place) {
            self.go_on(vcpu);
        }
    }

    /// Its guest tests now for what it was woken for.
    pub fn go_on(&mut self, vcpu: VcpuId) {
        self.entry(vcpu).woken = false;
    }

    pub fn release_all(&mut self, vm: Option<VmId>) {
        for entry in self.entries.values_mut() {
            if vm.is_none_or(|vm| vm == entry.vm) {
                entry.waits_for.clear();
                if vm.is_none() && matches!(entry.phase, Phase::WaitingForWord { .. }) {
                    entry.phase = Phase::Ready;
                    entry.granted = false;
                }
            }
        }
    }

    pub fn leave(
        &mut self,
        vcpu: VcpuId,
        reason: Leave,
        policy: SpinPolicy,
        shares: bool,
        until: u64,
    ) {
        let ready: BTreeSet<VcpuId> = (self.partners(vcpu).into_iter())
            .filter(|&partner| self.state(partner) == VcpuState::Ready)
            .collect();
        let runs = |partner: &VcpuId| {
            let entry = &self.entries[partner];
            matches!(entry.phase, Phase::Running(_)) && !entry.in_place
        };
        let partner_runs = self.partners(vcpu).iter().any(runs);
        let entry = self.entry(vcpu);
        let woken = std::mem::take(&mut entry.woken);
        entry.in_place = false;
        if std::mem::take(&mut entry.stopping) || reason == Leave::Stopped {
            entry.phase = Phase::Stopped;
            return;
        }
        entry.phase = Phase::Ready;
        let names_word = matches!(reason, Leave::SpinOnWord | Leave::SpinForTurn);
        let known = names_word && policy == SpinPolicy::Reservation;
        match reason {
            Leave::SelfWait if !woken => entry.phase = Phase::Waiting,
            _ if entry.paused || !shares => {}
            _ if known && !woken => entry.phase = Phase::WaitingForWord { until },
            Leave::Spin | Leave::SpinOnWord | Leave::SpinForTurn => match policy {
                SpinPolicy::Wopd if !partner_runs => entry.waits_for = ready,
                SpinPolicy::Wapd | SpinPolicy::Reservation => entry.waits_for = ready,
                _ => {}
            },
            _ => {}
        }
    }

    /// Tests on a hart have found a reason to run for these.
    pub fn found(&mut self, found: &BTreeSet<VcpuId>, whole_vm: bool, now: u64) {
        for &vcpu in found {
            if self.entries[&vcpu].phase == Phase::Waiting && whole_vm {
                for partner in self.partners(vcpu) {
                    let entry = self.entry(partner);
                    let waits = entry.phase == Phase::Waiting && !entry.paused;
                    entry.granted |= waits;
                }
            }
            self.entry(vcpu).granted = true;
        }
        for entry in self.entries.values_mut() {
            entry.granted |= matches!(entry.phase, Phase::WaitingForWord { until } if now >= until);
        }
    }

    /// A vCPU that has a reason to run may be made ready.
    pub fn take_reason(&mut self, vcpu: VcpuId) {
        let entry = self.entry(vcpu);
        if std::mem::take(&mut entry.granted) {
            entry.phase = Phase::Ready;
        }
    }

    pub fn dispatch(&mut self, vcpu: VcpuId, hart: HartId, policy: SpinPolicy) {
        let dispatchable = self.dispatchable().contains(&vcpu);
        assert!(dispatchable, "{vcpu} cannot run: {:?}", self.entries[&vcpu]);
        let entry = self.entry(vcpu);
        entry.phase = Phase::Running(hart);
        entry.woken = false;
        entry.granted = false;
        for partner in self.partners(vcpu) {
            let entry = self.entry(partner);
            if policy == SpinPolicy::Wopd {
                entry.waits_for.clear();
            }
            entry.waits_for.remove(&vcpu);
        }
    }
}
