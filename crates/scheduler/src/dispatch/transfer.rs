//! Transfer of a vCPU between schedulers: detached here, attached there.
//!
//! Each scheduler serves a group of harts ([`crate::groups`]). A vCPU that is on a hart cannot be detached. A vCPU that waited for interrupts is
//! ready afterwards, because the tests for its interrupts are made on the harts that it leaves. A wait may end at any time: the guest tests and waits
//! again.

use crate::base::id::{HartId, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::Placement;
use crate::decision::Kicks;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::{Phase, Vcpu, Vm};
use crate::policies::gang::NO_ROW;
use crate::policies::queues::Queue;
use crate::policies::service::Service;
use crate::policies::virtual_time::{InverseWeight, VirtualTime};

/// A vCPU between two schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a vCPU that is not attached again is lost"]
pub(crate) struct Detached {
    entry: Vcpu,
    /// Ready subqueue that it was in.
    queue: Option<Queue>,
    /// Its part of its VM's account.
    credit: i64,
    preempted_in_supervisor: bool,
    preempted_interrupts_off: bool,
    yielded_in_supervisor: bool,
}

/// Terms on which a VM gets harts from one scheduler of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    pub(crate) dedicated: bool,
    pub(crate) share: u32,
    pub(crate) placement: Placement,
}

impl Scheduler {
    /// Registers a VM that has no vCPU here yet, and shares.
    pub(crate) fn register_vm(&mut self, vm: VmId, share: u32, placement: Placement) {
        self.is_one_of_several = true;
        self.note_spin_policy();
        self.vms[vm.index()] = VcpuId::new(0).map(|first| Vm {
            first,
            vcpus: VcpuSet::EMPTY,
            dedicated: false,
            share,
            part: (0, 1),
            placement,
            service: Service::new(),
            last_yielded_to: None,
            wakeup_vruntime: VirtualTime::START,
            boost_vruntime: 0,
            inverse_weight: InverseWeight::of(share),
        });
        self.vms_end = self.vms_end.max(vm.index() + 1);
    }

    /// Creates a stopped vCPU of `vm`, if there is a place.
    pub(crate) fn create_vcpu(&mut self, vm: VmId) -> Option<VcpuId> {
        let entry = Vcpu {
            vm,
            partners: VcpuSet::EMPTY,
            dedicated: false,
            phase: Phase::Stopped,
            stopping: false,
            paused: false,
            woken: false,
            word: None,
            last: None,
            home: None,
            row: NO_ROW,
            since: Ticks::ZERO,
            slice: self.config.slice,
            service: Service::new(),
            passed_over: 0,
            used: Ticks::ZERO,
        };
        let vcpu = self.free_place()?;
        self.place_entry(vcpu, entry);
        Some(vcpu)
    }

    /// Free place for a vCPU.
    pub(crate) fn free_place(&self) -> Option<VcpuId> {
        VcpuId::new((!self.occupied.bits()).trailing_zeros() as u16)
    }

    /// Sets the part of its share that a VM has here, as a fraction.
    pub(crate) fn set_part(&mut self, vm: VmId, part: (u32, u32)) {
        if let Some(vm) = self.vms[vm.index()].as_mut() {
            vm.part = part;
        }
    }

    /// Part of its share that a VM has here, as a fraction.
    pub(crate) fn part(&self, vm: VmId) -> (u32, u32) {
        self.vms[vm.index()].map_or((0, 1), |vm| vm.part)
    }

    /// Sets the terms of `vm` here, with `home` for each of its vCPUs that has a dedicated hart. Its spin waits end, as by
    /// [`Scheduler::set_allocation`]. The caller updates what follows.
    pub(crate) fn set_terms(
        &mut self,
        vm: VmId,
        terms: Terms,
        home: impl Fn(VcpuId) -> Option<HartId>,
    ) -> Kicks {
        let vcpus = self.vcpus(vm);
        if let Some(entry) = self.vms[vm.index()].as_mut() {
            entry.dedicated = terms.dedicated;
            entry.share = terms.share;
            entry.placement = terms.placement;
        }
        for vcpu in vcpus.iter() {
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.dedicated = terms.dedicated;
                entry.home = home(vcpu);
            }
        }
        self.spin_waits.release_all(vcpus);
        let running = vcpus.iter().filter_map(|vcpu| self.running_on(vcpu));
        Kicks(running.collect())
    }

    /// Takes a vCPU that is on no hart out of all tables. Kicks are for other vCPUs, whose waits for it end.
    pub(crate) fn detach(&mut self, vcpu: VcpuId) -> Option<(Detached, Kicks)> {
        let mut entry = self.vcpus[vcpu.index()]?;
        match entry.phase {
            Phase::Running(_) => return None,
            Phase::SelfWait if entry.word.is_some_and(|word| !word.interrupts_enabled) => {}
            Phase::SelfWait => entry.phase = Phase::Ready,
            Phase::Ready | Phase::Stopped => {}
        }
        let queue = self.queues.queue_of(vcpu);
        entry.word = entry.word.filter(|_| entry.phase == Phase::SelfWait);
        entry.woken = false;
        entry.passed_over = 0;
        self.word_waiters.remove(vcpu);
        self.uninterruptible.remove(vcpu);
        self.dequeue(vcpu);
        let parts = self.partners(vcpu).count();
        let vm = entry.vm;
        let credit = match self.per_vcpu_accounts {
            true => entry.service.give_part(1),
            false => (self.vms[vm.index()].as_mut()).map_or(0, |vm| vm.service.give_part(parts)),
        };
        let detached = Detached {
            entry,
            queue: queue.filter(|&queue| queue != Queue::SelfWait),
            credit,
            preempted_in_supervisor: self.preempted_in_supervisor.contains(vcpu),
            preempted_interrupts_off: self.preempted_interrupts_off.contains(vcpu),
            yielded_in_supervisor: self.yielded_in_supervisor.contains(vcpu),
        };
        self.forget_preemptions(VcpuSet::only(vcpu));
        for set in [
            &mut self.preempted_in_supervisor,
            &mut self.preempted_interrupts_off,
            &mut self.yielded_in_supervisor,
            &mut self.out_of_service,
        ] {
            set.remove(vcpu);
        }
        for hart in self.online.iter() {
            self.may_run[hart.index()].remove(vcpu);
            let hart = &mut self.harts[hart.index()];
            hart.skip = hart.skip.filter(|&other| other != vcpu);
            hart.next = hart.next.filter(|&other| other != vcpu);
        }
        if let Some(last) = entry.last {
            self.last_on[last.index()].remove(vcpu);
        }
        self.vcpus[vcpu.index()] = None;
        self.occupied.remove(vcpu);
        if let Some(record) = self.vms[vm.index()].as_mut() {
            record.vcpus.remove(vcpu);
            if record.vcpus.is_empty() {
                self.present.remove(vm);
            }
            record.last_yielded_to = record.last_yielded_to.filter(|&other| other != vcpu);
        }
        self.update_partners(vm);
        let mut kicks = self.assign_harts();
        if entry.dedicated {
            kicks = kicks.and(self.revise());
        }
        Some((detached, kicks))
    }

    /// Takes in a vCPU that another scheduler has detached, if there is a place. Its VM is registered here.
    pub(crate) fn attach(&mut self, detached: Detached, now: Ticks) -> Option<(VcpuId, Kicks)> {
        let vcpu = self.free_place()?;
        let vm = detached.entry.vm;
        let mut entry = detached.entry;
        entry.dedicated = self.is_dedicated(vm);
        if !entry.dedicated {
            entry.home = None;
        }
        if self.per_vcpu_accounts {
            entry.service = Service::new();
            entry.service.receive(detached.credit);
        } else if let Some(vm) = self.vms[vm.index()].as_mut() {
            vm.service.receive(detached.credit);
        }
        self.place_entry(vcpu, entry);
        let mut kicks = Kicks::NONE;
        if entry.dedicated {
            // Its hart is dedicated from now on.
            kicks = self.revise();
        }
        for (set, was) in [
            (
                &mut self.preempted_in_supervisor,
                detached.preempted_in_supervisor,
            ),
            (
                &mut self.preempted_interrupts_off,
                detached.preempted_interrupts_off,
            ),
            (
                &mut self.yielded_in_supervisor,
                detached.yielded_in_supervisor,
            ),
        ] {
            if was {
                set.insert(vcpu);
            }
        }
        if entry.word.is_some() {
            kicks = kicks.and(self.receive_word(vcpu, now));
            return Some((vcpu, kicks.and(self.assign_harts())));
        }
        if entry.phase == Phase::Ready && !entry.paused {
            let queue = match detached.queue {
                _ if self.is_out_of_service(vcpu) => Queue::OutService,
                Some(queue) => queue,
                None => {
                    // It waited, and tests again.
                    self.make_ready(vcpu, now);
                    return Some((vcpu, kicks.and(self.assign_harts())));
                }
            };
            self.queues.push_last(queue, vcpu);
        }
        Some((vcpu, kicks.and(self.assign_harts())))
    }

    /// Puts an entry at a free place.
    fn place_entry(&mut self, vcpu: VcpuId, entry: Vcpu) {
        let vm = entry.vm;
        self.vcpus[vcpu.index()] = Some(entry);
        self.occupied.insert(vcpu);
        if !self.present.contains(vm) {
            let time = self.vruntime_of_others();
            if let Some(record) = self.vms[vm.index()].as_mut() {
                record.boost_vruntime = time;
            }
        }
        self.present.insert(vm);
        if let Some(last) = entry.last {
            self.last_on[last.index()].insert(vcpu);
        }
        if let Some(record) = self.vms[vm.index()].as_mut() {
            record.vcpus.insert(vcpu);
        }
        self.update_partners(vm);
        if self.vms[vm.index()].is_some_and(|vm| vm.placement == Placement::Fixed) {
            self.place();
        }
        for hart in self.allowed(vcpu).intersection(self.online).iter() {
            self.may_run[hart.index()].insert(vcpu);
        }
        self.update_out_of_service();
    }

    /// Updates the partners of the vCPUs of `vm`.
    fn update_partners(&mut self, vm: VmId) {
        let partners = self.vcpus(vm);
        for vcpu in partners.iter() {
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.partners = partners;
            }
        }
    }

    /// vCPUs that no hart here may run.
    pub(crate) fn displaced(&self) -> VcpuSet {
        let every = self.occupied.iter();
        every.filter(|&vcpu| self.is_displaced(vcpu)).collect()
    }

    /// Returns true if no hart here may run this vCPU.
    pub(crate) fn is_displaced(&self, vcpu: VcpuId) -> bool {
        self.allowed(vcpu).intersection(self.online).is_empty()
    }
}
