//! States that differ only in their numbers.
//!
//! The numbers of a VM's vCPUs, of VMs of one size, and of harts do not matter. [`World::renumbered`] numbers everything by its state, so that such
//! states become one, which stands for all.
//!
//! That is sound only if all of them take the same steps. The scheduler takes the lowest number if it has a choice (`base::choice`), which no
//! renumbering preserves; so every choice is made in turn wherever states are told apart by class. `tests` shows both: a renumbered state takes the
//! renumbered steps, and no class is lost that is reached with the lowest numbers and without any reduction.

use std::vec::Vec;

use super::world::{Mode, World};
use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId};
use crate::dispatch::hart::{Doing, Hart};
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::queues::Queue;

/// New numbers, by the old ones.
pub(super) struct Numbers {
    vms: Vec<VmId>,
    vcpus: Vec<VcpuId>,
    harts: Vec<HartId>,
}

impl Numbers {
    pub(super) fn vm(&self, vm: VmId) -> VmId {
        self.vms.get(vm.index()).copied().unwrap_or(vm)
    }

    pub(super) fn vcpu(&self, vcpu: VcpuId) -> VcpuId {
        self.vcpus.get(vcpu.index()).copied().unwrap_or(vcpu)
    }

    pub(super) fn hart(&self, hart: HartId) -> HartId {
        self.harts.get(hart.index()).copied().unwrap_or(hart)
    }

    fn vcpu_set(&self, set: VcpuSet) -> VcpuSet {
        set.iter().map(|vcpu| self.vcpu(vcpu)).collect()
    }

    fn hart_set(&self, set: HartSet) -> HartSet {
        set.iter().map(|hart| self.hart(hart)).collect()
    }
}

/// Ranks of the keys: the new number of each.
fn ranks<K: Ord>(keys: Vec<K>) -> Vec<u16> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&one, &other| keys[one].cmp(&keys[other]));
    let mut ranks = std::vec![0; keys.len()];
    for (rank, old) in order.into_iter().enumerate() {
        ranks[old] = u16::try_from(rank).unwrap();
    }
    ranks
}

/// Every order of this number of members.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let Some(rest) = of.checked_sub(1) else {
        return std::vec![Vec::new()];
    };
    let mut longer = Vec::new();
    for order in orders(rest) {
        for place in 0..of {
            let mut order = order.clone();
            order.insert(place, rest);
            longer.push(order);
        }
    }
    longer
}

impl World {
    /// Every way to number the world.
    pub(super) fn numberings(&self) -> Vec<Numbers> {
        let scheduler = &self.scheduler;
        let vms: Vec<VcpuSet> = (0..)
            .map_while(VmId::new)
            .map(|vm| scheduler.vcpus(vm))
            .filter(|vcpus| !vcpus.is_empty())
            .collect();
        let number = |place: usize| u16::try_from(place).unwrap();
        let mut members = std::vec![Vec::new()];
        for vm in &vms {
            let count = usize::try_from(vm.count()).unwrap();
            let more = |before: Vec<Vec<usize>>| {
                orders(count).into_iter().map(move |order| {
                    let mut all = before.clone();
                    all.push(order);
                    all
                })
            };
            members = members.into_iter().flat_map(more).collect();
        }
        let same_size = |order: &Vec<usize>| {
            let mut places = order.iter().enumerate();
            places.all(|(old, &new)| vms[old].count() == vms[new].count())
        };
        let mut all = Vec::new();
        for vm_order in orders(vms.len()).into_iter().filter(same_size) {
            for members in &members {
                for hart_order in orders(self.harts().count()) {
                    let mut vcpus = std::vec![VcpuId::new(0).unwrap(); self.vcpus().count()];
                    for (old, vm) in vms.iter().enumerate() {
                        let first = vms[vm_order[old]].first().unwrap().index();
                        for (vcpu, place) in vm.iter().zip(&members[old]) {
                            vcpus[vcpu.index()] = VcpuId::new(number(first + place)).unwrap();
                        }
                    }
                    let harts = hart_order.into_iter().map(number).map_while(HartId::new);
                    let vms = vm_order.iter().copied().map(number).map_while(VmId::new);
                    all.push(Numbers {
                        vms: vms.collect(),
                        vcpus,
                        harts: harts.collect(),
                    });
                }
            }
        }
        all
    }

    /// Key of a vCPU: its state without numbers of others.
    fn key(&self, vcpu: VcpuId) -> impl Ord + Clone + use<> {
        let scheduler = &self.scheduler;
        let entry = scheduler.vcpus[vcpu.index()].unwrap();
        let queue = scheduler.queues.queue_of(vcpu);
        let place = queue.map(|queue| {
            let before = scheduler
                .queues
                .iter(queue)
                .take_while(|&other| other != vcpu);
            (queue == Queue::SelfWait, queue as u8, before.count())
        });
        let phase = match entry.phase {
            Phase::Stopped => 0,
            Phase::Ready => 1,
            Phase::SelfWait => 2,
            Phase::Running(_) => 3,
        };
        let on = entry
            .last
            .filter(|_| phase == 3)
            .map(|hart| self.hart_key(hart));
        (
            (phase, place, on),
            (
                entry.paused,
                entry.stopping,
                entry.woken,
                scheduler.uninterruptible.contains(vcpu),
            ),
            entry.word.map(|word| word.turn),
            (
                scheduler.preempted_in_supervisor.contains(vcpu),
                scheduler.preempted_interrupts_off.contains(vcpu),
                scheduler.yielded_in_supervisor.contains(vcpu),
            ),
            (
                entry.passed_over,
                entry.last.is_some(),
                entry.home.is_some(),
                entry.service.is_out(),
            ),
            self.armed.contains(vcpu),
            self.pending.contains(vcpu),
            self.wakes.contains(vcpu),
            self.changed.contains(vcpu),
        )
    }

    /// Key of a hart.
    fn hart_key(&self, hart: HartId) -> impl Ord + Clone + use<> {
        let mode = match self.modes[hart.index()] {
            Mode::Between => (0, 0),
            Mode::Asleep => (1, 0),
            Mode::Polling => (2, 0),
            Mode::InPlace => (3, 0),
            Mode::Guest {
                sliced,
                trap_waits,
                waiting,
            } => (
                4,
                u8::from(sliced) << 2 | u8::from(trap_waits) << 1 | u8::from(waiting),
            ),
        };
        let scheduler = &self.scheduler;
        let entry = scheduler.harts[hart.index()];
        (
            (mode, self.kicked[hart.index()], entry.self_waits),
            scheduler.searching.contains(hart),
            (
                entry.skip.is_some(),
                entry.next.is_some(),
                scheduler.preempted_harts.contains(hart),
            ),
            (
                scheduler.last_on[hart.index()].count(),
                scheduler.relaxed.contains(hart),
            ),
        )
    }

    /// Copy with everything numbered by its state.
    pub(super) fn renumbered(&self) -> Self {
        let scheduler = &self.scheduler;
        let vms_here: Vec<VmId> = (0..)
            .map_while(VmId::new)
            .filter(|vm| scheduler.vms[vm.index()].is_some())
            .collect();
        // VMs change places only with others of their size, so that vCPUs stay consecutive.
        let vm_key = |vm: &VmId| {
            let entry = scheduler.vms[vm.index()].as_ref().unwrap();
            let mut members: Vec<_> = entry.vcpus.iter().map(|vcpu| self.key(vcpu)).collect();
            members.sort();
            (
                core::cmp::Reverse(entry.vcpus.count()),
                entry.dedicated,
                (entry.service.is_out(), entry.share),
                scheduler.vm_boost.vm == Some(*vm),
                members,
            )
        };
        let vm_ranks = ranks(vms_here.iter().map(vm_key).collect());
        let sorted_by_size = vms_here
            .windows(2)
            .all(|pair| scheduler.vcpus(pair[0]).count() >= scheduler.vcpus(pair[1]).count());
        let vms: Vec<VmId> = if sorted_by_size {
            vm_ranks.into_iter().map_while(VmId::new).collect()
        } else {
            vms_here.clone()
        };
        let harts: Vec<HartId> = self.harts().collect();
        let hart_ranks = ranks(
            harts
                .iter()
                .map(|&hart| {
                    let runs = scheduler.running(hart);
                    let vm = runs.and_then(|vcpu| scheduler.vm_of(vcpu));
                    let vm = vm.map(|vm| vms[vm.index()]);
                    (self.hart_key(hart), vm, runs.map(|vcpu| self.key(vcpu)))
                })
                .collect(),
        );
        let mut numbers = Numbers {
            vcpus: std::vec![VcpuId::new(0).unwrap(); self.vcpus().count()],
            harts: hart_ranks.into_iter().map_while(HartId::new).collect(),
            vms,
        };
        // Each VM gets the vCPUs that follow, in the order of the new numbers.
        let mut next = 0;
        for rank in 0..vms_here.len() {
            let vm = vms_here
                .iter()
                .find(|vm| numbers.vms[vm.index()].index() == rank);
            let vm = *vm.unwrap();
            let mut members: Vec<VcpuId> = scheduler.vcpus(vm).iter().collect();
            let place = |vcpu: &VcpuId| {
                let last = scheduler.last_hart(*vcpu).map(|hart| numbers.hart(hart));
                (self.key(*vcpu), last)
            };
            members.sort_by_key(place);
            for vcpu in members {
                numbers.vcpus[vcpu.index()] = VcpuId::new(next).unwrap();
                next += 1;
            }
        }
        self.with(&numbers)
    }

    pub(super) fn with(&self, numbers: &Numbers) -> Self {
        let mut world = self.clone();
        for hart in self.harts() {
            let new = numbers.hart(hart).index();
            world.modes[new] = self.modes[hart.index()];
            world.kicked[new] = self.kicked[hart.index()];
        }
        world.armed = numbers.vcpu_set(self.armed);
        world.pending = numbers.vcpu_set(self.pending);
        world.wakes = numbers.vcpu_set(self.wakes);
        world.changed = numbers.vcpu_set(self.changed);
        world.scheduler = self.scheduler.with(numbers);
        world
    }
}

impl Scheduler {
    fn with(&self, numbers: &Numbers) -> Self {
        let mut new = self.clone();
        new.present = self.present.iter().map(|vm| numbers.vm(vm)).collect();
        for old in (0..).map_while(VmId::new) {
            if let Some(mut vm) = self.vms[old.index()] {
                vm.vcpus = numbers.vcpu_set(vm.vcpus);
                vm.first = vm.vcpus.first().unwrap();
                // All choices are made, so the last turn does not matter.
                vm.last_yielded_to = None;
                new.vms[numbers.vm(old).index()] = Some(vm);
            }
        }
        for old in (0..).map_while(VcpuId::new) {
            let Some(mut entry) = self.vcpus[old.index()] else {
                continue;
            };
            entry.vm = numbers.vm(entry.vm);
            entry.partners = numbers.vcpu_set(entry.partners);
            entry.last = entry.last.map(|hart| numbers.hart(hart));
            entry.home = entry.home.map(|hart| numbers.hart(hart));
            if let Phase::Running(hart) = entry.phase {
                entry.phase = Phase::Running(numbers.hart(hart));
            }
            new.vcpus[numbers.vcpu(old).index()] = Some(entry);
        }
        let vcpu = |vcpu| numbers.vcpu(vcpu);
        for old in self.online.iter() {
            let mut entry: Hart = self.harts[old.index()];
            if let Doing::Running(run) = &mut entry.doing {
                run.vcpu = vcpu(run.vcpu);
            }
            entry.skip = entry.skip.map(vcpu);
            entry.next = entry.next.map(vcpu);
            let place = numbers.hart(old).index();
            new.harts[place] = entry;
            new.preempting[place] = self.preempting[old.index()].map(vcpu);
            new.may_run[place] = numbers.vcpu_set(self.may_run[old.index()]);
            new.last_on[place] = numbers.vcpu_set(self.last_on[old.index()]);
        }
        new.vm_boost.vm = self.vm_boost.vm.map(|vm| numbers.vm(vm));
        new.queues = self.queues.renumbered(vcpu);
        new.spin_waits = self.spin_waits.renumbered(vcpu);
        new.self_wait_ready = numbers.vcpu_set(self.self_wait_ready);
        for (new, old) in [
            (&mut new.word_waiters, self.word_waiters),
            (&mut new.uninterruptible, self.uninterruptible),
            (&mut new.executing, self.executing),
            (&mut new.occupied, self.occupied),
            (
                &mut new.preempted_in_supervisor,
                self.preempted_in_supervisor,
            ),
            (
                &mut new.preempted_interrupts_off,
                self.preempted_interrupts_off,
            ),
            (&mut new.yielded_in_supervisor, self.yielded_in_supervisor),
            (&mut new.out_of_service, self.out_of_service),
        ] {
            *new = numbers.vcpu_set(old);
        }
        new.shared = numbers.hart_set(self.shared);
        new.searching = numbers.hart_set(self.searching);
        new.idle = numbers.hart_set(self.idle);
        new.preempted_harts = numbers.hart_set(self.preempted_harts);
        new.in_place = numbers.hart_set(self.in_place);
        new.relaxed = numbers.hart_set(self.relaxed);
        new
    }
}
