//! A computer whose harts are in groups, with events in an order that a seed chooses.
//!
//! An action under one lock, or under two, is one step; between any two of them anything may happen. A test lets time pass.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use scheduler::groups::*;
use scheduler::*;

pub struct Computer {
    groups: Vec<RefCell<Group>>,
    directory: Directory,
    load_bits: LoadBits,
    pub ledger: RefCell<Ledger>,
    /// Migrations that harts have found, and are about to make.
    pub flows: RefCell<Vec<Flow>>,
    pub kicked: Cell<HartSet>,
    pub runs: RefCell<BTreeMap<HartId, VcpuNumber>>,
    pub now: Cell<Ticks>,
    pub pending: RefCell<Vec<VcpuNumber>>,
}

struct Files<'a> {
    computer: &'a Computer,
    hart: HartId,
    last: BTreeMap<VcpuNumber, Option<HartId>>,
    changed: bool,
}

impl Probe<VcpuNumber> for Files<'_> {
    fn pending(&mut self, vcpu: VcpuNumber) -> bool {
        let here = self.last.get(&vcpu).copied().flatten() == Some(self.hart);
        here && self.computer.pending.borrow().contains(&vcpu)
    }

    fn changed(&mut self, _: VcpuNumber) -> bool {
        self.changed
    }
}

impl Access for Computer {
    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn load_bits(&self) -> &LoadBits {
        &self.load_bits
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R {
        let mut group = self.groups[group.index()].borrow_mut();
        let result = what(&mut group);
        if self.groups.len() > 1 {
            self.flows
                .borrow_mut()
                .extend(group.publish(&self.load_bits));
        }
        result
    }

    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R {
        let mut one = self.groups[one.index()].borrow_mut();
        let mut other = self.groups[other.index()].borrow_mut();
        let result = what(&mut one, &mut other);
        for group in [&one, &other] {
            self.flows
                .borrow_mut()
                .extend(group.publish(&self.load_bits));
        }
        result
    }
}

impl Computer {
    pub fn new(config: Config, layout: Layout) -> Self {
        let groups = (0..layout.groups()).map_while(GroupId::new);
        let groups: Vec<Group> = groups
            .map(|group| Group::new(group, config, &layout).unwrap())
            .collect();
        let online = groups
            .iter()
            .fold(HartSet::EMPTY, |all, group| all.union(group.harts()));
        Self {
            groups: groups.into_iter().map(RefCell::new).collect(),
            directory: layout.directory(),
            load_bits: LoadBits::new(),
            ledger: RefCell::new(Ledger::new(online)),
            flows: RefCell::default(),
            kicked: Cell::new(HartSet::EMPTY),
            runs: RefCell::default(),
            now: Cell::new(Ticks::ZERO),
            pending: RefCell::default(),
        }
    }

    pub fn harts(&self) -> impl Iterator<Item = HartId> {
        let groups = self.groups.iter();
        let all = groups.fold(HartSet::EMPTY, |all, group| {
            all.union(group.borrow().harts())
        });
        all.iter()
    }

    pub fn deliver(&self, kicks: Kicks) {
        self.kicked.set(self.kicked.get().union(kicks.harts()));
    }

    pub fn add_vm(&self, vcpus: u16, allocation: Allocation) -> Result<VmId, ConfigError> {
        let placement = operator::config(self).placement;
        let config = VmConfig { vcpus, allocation };
        let mut ledger = self.ledger.borrow_mut();
        let (vm, kicks) = operator::add_vm(&mut ledger, self, config, placement)?;
        self.deliver(kicks);
        Ok(vm)
    }

    pub fn group_of(&self, hart: HartId) -> GroupId {
        self.directory.group_of(hart)
    }

    pub fn vcpus(&self) -> Vec<VcpuNumber> {
        let every = (0..).map_while(VcpuNumber::new);
        every
            .filter(|&vcpu| self.directory.place(vcpu).is_some())
            .collect()
    }

    pub fn state(&self, vcpu: VcpuNumber) -> VcpuState {
        let place = self.directory.place(vcpu).unwrap();
        let group = self.groups[place.group.index()].borrow();
        group.scheduler().state(place.vcpu)
    }

    pub fn place(&self, vcpu: VcpuNumber) -> Place {
        self.directory.place(vcpu).unwrap()
    }

    pub fn vm_of(&self, vcpu: VcpuNumber) -> VmId {
        let place = self.directory.place(vcpu).unwrap();
        let group = self.groups[place.group.index()].borrow();
        group.scheduler().vm_of(place.vcpu).unwrap()
    }

    /// Applies a function to a vCPU, and delivers its kicks.
    pub fn act_on(&self, vcpu: VcpuNumber, what: impl FnOnce(&mut Scheduler, VcpuId) -> Kicks) {
        let kicks = self.with_vcpu(vcpu, |group, vcpu| what(group.scheduler_mut(), vcpu));
        self.deliver(kicks.unwrap());
    }

    /// Leaves with the vCPU on `hart`, and dispatches.
    pub fn decide(&self, hart: HartId, left: &Left<VcpuNumber>) -> Dispatch<VcpuNumber, VcpuSet> {
        let group = self.group_of(hart);
        let now = self.now.get();
        let last = |group: &Group| {
            let places = self.vcpus().into_iter().map(|vcpu| {
                let place = self.directory.place(vcpu).unwrap();
                let here = place.group == group.index();
                let last = here.then(|| group.scheduler().last_hart(place.vcpu));
                (vcpu, last.flatten())
            });
            places.collect()
        };
        self.runs.borrow_mut().remove(&hart);
        let (_, next) = self.with(group, |group| {
            let mut files = Files {
                computer: self,
                hart,
                last: last(group),
                changed: now.get().is_multiple_of(3),
            };
            group.leave_and_dispatch(
                (hart, left),
                now,
                (&self.directory, &self.load_bits),
                &mut files,
            )
        });
        let (Dispatch::Run { kicks, .. } | Dispatch::Idle { kicks, .. }) = next;
        self.deliver(kicks);
        if let Dispatch::Run { vcpu, .. } = next {
            self.runs.borrow_mut().insert(hart, vcpu);
            self.pending.borrow_mut().retain(|&other| other != vcpu);
        }
        self.strays_of(group);
        next
    }

    /// Migrates vCPUs that have left a hart and belong elsewhere, as the hypervisor does.
    fn strays_of(&self, group: GroupId) {
        let displaced = !self.groups[group.index()].borrow().displaced().is_empty();
        if displaced {
            self.deliver(migration::migrate_displaced(self, group, self.now.get()));
        }
    }

    /// Follows one of the flows that harts have found.
    pub fn follow(&self, place: usize) {
        let flow = self.flows.borrow_mut().swap_remove(place);
        self.deliver(migration::follow(self, flow, self.now.get()));
    }

    /// Checks the invariants between any two steps.
    pub fn check(&self) {
        let mut seen = BTreeMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            let group = group.borrow();
            group.scheduler().check().unwrap();
            for place in (0..).map_while(VcpuId::new) {
                if group.scheduler().state(place) == VcpuState::Absent {
                    assert_eq!(group.number(place), None);
                    continue;
                }
                let number = group.number(place).unwrap();
                assert_eq!(
                    self.directory.place(number),
                    Some(Place {
                        group: GroupId::new(index).unwrap(),
                        vcpu: place
                    })
                );
                assert_eq!(
                    seen.insert(number, index),
                    None,
                    "{number} is in two groups"
                );
            }
        }
        assert!(seen.keys().copied().eq(self.vcpus()));
        // No hart is idle while another group has a surplus, unless a migration is about to be made.
        let every = || (0..self.groups.len()).map_while(GroupId::new);
        if self.flows.borrow().is_empty() {
            let gives = every().find(|&group| self.load_bits.has_surplus(group));
            let takes = every().find(|&group| self.load_bits.is_hungry(group));
            assert!(
                gives.is_none() || takes.is_none(),
                "{gives:?} has work, and {takes:?} a hart that rests"
            );
        }
    }

    /// Place of a vCPU, and the harts that could run it.
    pub fn explain(&self, vcpu: VcpuNumber) -> String {
        let Place { group, vcpu } = self.directory.place(vcpu).unwrap();
        let group = self.groups[group.index()].borrow();
        let scheduler = group.scheduler();
        format!(
            "{:?} in {:?} of {:?}, may run on {:?}, shared {:?}, displaced {:?}",
            scheduler.state(vcpu),
            scheduler.queue_of(vcpu),
            group.index(),
            scheduler.allowed(vcpu),
            scheduler.shared_harts(),
            group.displaced()
        )
    }

    /// Time that each VM has run.
    pub fn used(&self, vm: VmId) -> u64 {
        let used = |group: &RefCell<Group>| group.borrow().scheduler().used(vm).get();
        self.groups.iter().map(used).sum()
    }
}
