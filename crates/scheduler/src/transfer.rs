//! A vCPU goes from one scheduler to another: detached with its state here, attached there.
//!
//! Each scheduler serves a group of harts ([`crate::groups`]). One that is on a hart cannot be detached. All others can, whatever they
//! do; where a vCPU waited for interrupts or for a word, it is ready afterwards, because the tests that would find its reason
//! are made on the harts that it leaves. A wait may end at any time, so that its guest looks and waits again.

use crate::behind::{Pace, VirtualTime};
use crate::choice;
use crate::config::Placement;
use crate::decision::Kicks;
use crate::id::{HartId, HartSet, VcpuId, VcpuSet, VmId};
use crate::queue::Queue;
use crate::service::Service;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::{Phase, Vcpu, Vm};

/// A vCPU that no scheduler serves just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a vCPU that is not attached again is lost"]
pub(crate) struct Detached {
    entry: Vcpu,
    /// The ready subqueue that it was in.
    queue: Option<Queue>,
    /// What it takes along of its virtual machine's account.
    credit: i64,
    preempted_in_supervisor: bool,
    preempted_closed: bool,
    gave_way_in_supervisor: bool,
}

/// How a virtual machine gets harts from one scheduler of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    pub(crate) dedicated: bool,
    pub(crate) share: u32,
    pub(crate) placement: Placement,
}

impl Scheduler {
    /// Makes a virtual machine known that has no vCPU here yet, and shares.
    pub(crate) fn open_vm(&mut self, vm: VmId, share: u32, placement: Placement) {
        self.vms[vm.index()] = VcpuId::new(0).map(|first| Vm {
            first,
            vcpus: VcpuSet::EMPTY,
            dedicated: false,
            share,
            part: (0, 1),
            placement,
            service: Service::new(),
            favoured: None,
            stayed: VirtualTime::START,
            had: 0,
            pace: Pace::of(share),
        });
        self.vms_end = self.vms_end.max(vm.index() + 1);
    }

    /// Makes a new, stopped vCPU of `vm`. Nothing where there is no place.
    pub(crate) fn open_vcpu(&mut self, vm: VmId) -> Option<VcpuId> {
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
            since: Ticks::ZERO,
            slice: self.config.slice,
            service: Service::new(),
            passed_over: 0,
            used: Ticks::ZERO,
        };
        let vcpu = self.free_place()?;
        self.settle_in(vcpu, entry);
        Some(vcpu)
    }

    /// Whether there is a place for one more vCPU.
    pub(crate) fn free_place(&self) -> Option<VcpuId> {
        VcpuId::new((!self.taken.bits()).trailing_zeros() as u16)
    }

    /// Says which part of its share a virtual machine has here: so many parts of so many.
    pub(crate) fn set_part(&mut self, vm: VmId, part: (u32, u32)) {
        if let Some(vm) = self.vms[vm.index()].as_mut() {
            vm.part = part;
        }
    }

    /// How often that part is in the whole.
    pub(crate) fn part(&self, vm: VmId) -> (u32, u32) {
        self.vms[vm.index()].map_or((0, 1), |vm| vm.part)
    }

    /// How `vm` gets harts here from now on, with `home` for each of its vCPUs that has a hart of its own. Spin waits in it end, as by
    /// [`Scheduler::set_allocation`]. The caller brings what follows up to date.
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

    /// Takes a vCPU that is on no hart out of all tables. Kicks are for others, whose waits for it end.
    pub(crate) fn detach(&mut self, vcpu: VcpuId) -> Option<(Detached, Kicks)> {
        let mut entry = self.vcpus[vcpu.index()]?;
        match entry.phase {
            Phase::Running(_) => return None,
            Phase::SelfWait if entry.word.is_some_and(|word| !word.open) => {}
            Phase::SelfWait => entry.phase = Phase::Ready,
            Phase::Ready | Phase::Stopped => {}
        }
        let queue = self.queues.holding(vcpu);
        entry.word = entry.word.filter(|_| entry.phase == Phase::SelfWait);
        entry.woken = false;
        entry.passed_over = 0;
        self.for_words.remove(vcpu);
        self.deaf.remove(vcpu);
        self.withdraw(vcpu);
        let parts = self.partners(vcpu).count();
        let vm = entry.vm;
        let credit = match self.own_accounts {
            true => entry.service.give_part(1),
            false => (self.vms[vm.index()].as_mut()).map_or(0, |vm| vm.service.give_part(parts)),
        };
        let detached = Detached {
            entry,
            queue: queue.filter(|&queue| queue != Queue::SelfWait),
            credit,
            preempted_in_supervisor: self.preempted_in_supervisor.contains(vcpu),
            preempted_closed: self.preempted_closed.contains(vcpu),
            gave_way_in_supervisor: self.gave_way_in_supervisor.contains(vcpu),
        };
        self.forget_hurry(VcpuSet::only(vcpu));
        for set in [
            &mut self.preempted_in_supervisor,
            &mut self.preempted_closed,
            &mut self.gave_way_in_supervisor,
            &mut self.out_of_service,
        ] {
            set.remove(vcpu);
        }
        for hart in self.online.iter() {
            self.may_run[hart.index()].remove(vcpu);
            let hart = &mut self.harts[hart.index()];
            hart.avoid = hart.avoid.filter(|&other| other != vcpu);
            hart.favour = hart.favour.filter(|&other| other != vcpu);
        }
        if let Some(last) = entry.last {
            self.last_on[last.index()].remove(vcpu);
        }
        self.vcpus[vcpu.index()] = None;
        self.taken.remove(vcpu);
        if let Some(machine) = self.vms[vm.index()].as_mut() {
            machine.vcpus.remove(vcpu);
            if machine.vcpus.is_empty() {
                self.present.remove(vm);
            }
            machine.favoured = machine.favoured.filter(|&other| other != vcpu);
        }
        self.introduce(vm);
        let mut kicks = self.cover();
        if entry.dedicated {
            kicks = kicks.and(self.revise());
        }
        Some((detached, kicks))
    }

    /// Takes a vCPU in that another scheduler has detached, whose virtual machine is known here. Nothing where there is no place.
    pub(crate) fn attach(&mut self, detached: Detached, now: Ticks) -> Option<(VcpuId, Kicks)> {
        let vcpu = self.free_place()?;
        let vm = detached.entry.vm;
        let mut entry = detached.entry;
        entry.dedicated = self.is_dedicated(vm);
        if !entry.dedicated {
            entry.home = None;
        }
        if self.own_accounts {
            entry.service = Service::new();
            entry.service.receive(detached.credit);
        } else if let Some(vm) = self.vms[vm.index()].as_mut() {
            vm.service.receive(detached.credit);
        }
        self.settle_in(vcpu, entry);
        let mut kicks = Kicks::NONE;
        if entry.dedicated {
            // Its hart is shared no more from now on.
            kicks = self.revise();
        }
        for (set, was) in [
            (
                &mut self.preempted_in_supervisor,
                detached.preempted_in_supervisor,
            ),
            (&mut self.preempted_closed, detached.preempted_closed),
            (
                &mut self.gave_way_in_supervisor,
                detached.gave_way_in_supervisor,
            ),
        ] {
            if was {
                set.insert(vcpu);
            }
        }
        if entry.word.is_some() {
            kicks = kicks.and(self.receive_word(vcpu, now));
            return Some((vcpu, kicks.and(self.cover())));
        }
        if entry.phase == Phase::Ready && !entry.paused {
            let queue = match detached.queue {
                _ if self.is_out_of_service(vcpu) => Queue::OutService,
                Some(queue) => queue,
                None => {
                    // It waited, and looks again.
                    self.make_ready(vcpu, now);
                    return Some((vcpu, kicks.and(self.cover())));
                }
            };
            self.queues.push_last(queue, vcpu);
        }
        Some((vcpu, kicks.and(self.cover())))
    }

    /// `vcpu`, which has come here, waits for a word. A hart that rests looks at it from now on, as if the vCPU had run there last. Where none
    /// rests, the vCPU looks itself.
    fn receive_word(&mut self, vcpu: VcpuId, now: Ticks) -> Kicks {
        let resting = self.idle.union(self.in_place);
        let Some(hart) = choice::hart(resting.intersection(self.allowed(vcpu))) else {
            self.make_ready(vcpu, now);
            return Kicks::NONE;
        };
        let former = self
            .vcpu_mut(vcpu)
            .and_then(|entry| entry.last.replace(hart));
        if let Some(former) = former {
            self.last_on[former.index()].remove(vcpu);
        }
        self.last_on[hart.index()].insert(vcpu);
        self.for_words.insert(vcpu);
        self.deaf.insert(vcpu);
        self.queues.begin_to_wait(vcpu);
        self.tell(hart);
        Kicks(HartSet::only(hart))
    }

    /// Puts an entry at a free place.
    fn settle_in(&mut self, vcpu: VcpuId, entry: Vcpu) {
        let vm = entry.vm;
        self.vcpus[vcpu.index()] = Some(entry);
        self.taken.insert(vcpu);
        if !self.present.contains(vm) {
            let time = self.virtual_time_of_others();
            if let Some(machine) = self.vms[vm.index()].as_mut() {
                machine.had = time;
            }
        }
        self.present.insert(vm);
        if let Some(last) = entry.last {
            self.last_on[last.index()].insert(vcpu);
        }
        if let Some(machine) = self.vms[vm.index()].as_mut() {
            machine.vcpus.insert(vcpu);
        }
        self.introduce(vm);
        if self.vms[vm.index()].is_some_and(|vm| vm.placement == Placement::Fixed) {
            self.place();
        }
        for hart in self.allowed(vcpu).intersection(self.online).iter() {
            self.may_run[hart.index()].insert(vcpu);
        }
        self.note_service();
    }

    /// Tells the vCPUs of `vm` who their partners are.
    fn introduce(&mut self, vm: VmId) {
        let partners = self.vcpus(vm);
        for vcpu in partners.iter() {
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.partners = partners;
            }
        }
    }

    /// The vCPUs that no hart here may run.
    pub(crate) fn strays(&self) -> VcpuSet {
        let every = self.taken.iter();
        every.filter(|&vcpu| self.is_stray(vcpu)).collect()
    }

    /// Whether no hart here may run a vCPU that is here.
    pub(crate) fn is_stray(&self, vcpu: VcpuId) -> bool {
        self.allowed(vcpu).intersection(self.online).is_empty()
    }
}
