//! A group: the scheduler of some harts, and the numbers of the vCPUs that it serves.

use super::directory::{Directory, GroupId, Place};
use super::layout::Layout;
use super::load_bits::LoadBits;
use super::numbers::NumberSet;
use crate::base::id::{HartId, HartSet, MAX_VCPUS, VcpuId, VcpuNumber, VcpuSet};
use crate::base::ticks::Ticks;
use crate::config::{Config, ConfigError};
use crate::decision::{Dispatch, Left, Probe};
use crate::dispatch::table::Scheduler;
use crate::policies::spin::exit::{Keep, SpinExit};

/// The scheduler of some harts, and the numbers of the vCPUs that it serves.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Group {
    /// vCPUs that no hart of the group may run: they are to be migrated.
    pub(super) displaced: VcpuSet,
    /// vCPUs with one hart to run on.
    pub(super) pinned: VcpuSet,
    pub(super) index: GroupId,
    /// All places are taken.
    pub(super) full: bool,
    pub(super) names: Names,
    pub(super) scheduler: Scheduler,
    pub(super) harts: HartSet,
    /// vCPUs that had work before the last balance.
    pub(super) active: VcpuSet,
    /// Time that vCPUs had run then, by places.
    pub(super) used: [Ticks; MAX_VCPUS],
}

/// Numbers of the vCPUs, by places.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Names {
    /// Set if this is the only group: each vCPU's number is its place.
    pub(super) are_places: bool,
    pub(super) numbers: [u16; MAX_VCPUS],
}

impl Names {
    #[inline]
    pub(super) fn number(&self, vcpu: VcpuId) -> Option<VcpuNumber> {
        if self.are_places {
            return VcpuNumber::new(vcpu.get());
        }
        VcpuNumber::new(self.numbers[vcpu.index()])
    }
}

/// Number of an empty place.
pub(super) const NO_NUMBER: u16 = u16::MAX;

/// Probe that translates places to numbers.
struct Named<'a, P> {
    probe: &'a mut P,
    names: &'a Names,
}

impl<P: Probe<VcpuNumber>> Probe for Named<'_, P> {
    #[inline]
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        self.names
            .number(vcpu)
            .is_some_and(|vcpu| self.probe.pending(vcpu))
    }

    #[inline]
    fn reaches_every_file(&self) -> bool {
        self.probe.reaches_every_file()
    }

    #[inline]
    fn changed(&mut self, vcpu: VcpuId) -> bool {
        self.names
            .number(vcpu)
            .is_none_or(|vcpu| self.probe.changed(vcpu))
    }
}

impl Group {
    /// Group of `layout`, without vCPUs.
    ///
    /// # Errors
    /// Those of [`Scheduler::new`].
    pub fn new(index: GroupId, config: Config, layout: &Layout) -> Result<Self, ConfigError> {
        let harts = layout.harts_of(index);
        Ok(Self {
            scheduler: Scheduler::new(config, harts)?,
            index,
            harts,
            active: VcpuSet::EMPTY,
            used: [Ticks::ZERO; MAX_VCPUS],
            pinned: VcpuSet::EMPTY,
            displaced: VcpuSet::EMPTY,
            full: false,
            names: Names {
                are_places: layout.groups() == 1,
                numbers: [NO_NUMBER; MAX_VCPUS],
            },
        })
    }

    /// Scheduler of the group.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Scheduler of the group, for calls that change neither its vCPUs nor their allocation.
    pub const fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// Index of the group.
    #[must_use]
    pub const fn index(&self) -> GroupId {
        self.index
    }

    /// Harts of the group.
    #[must_use]
    pub const fn harts(&self) -> HartSet {
        self.harts
    }

    /// Number of a vCPU that is here.
    #[must_use]
    #[inline]
    pub fn number(&self, vcpu: VcpuId) -> Option<VcpuNumber> {
        self.names.number(vcpu)
    }

    /// Numbers of vCPUs that are here.
    #[must_use]
    pub fn numbers(&self, vcpus: VcpuSet) -> NumberSet {
        let mut numbers = NumberSet::EMPTY;
        self.name(vcpus, &mut numbers);
        numbers
    }

    /// Sets `numbers` to the numbers of vCPUs that are here.
    #[inline]
    pub fn name(&self, vcpus: VcpuSet, numbers: &mut NumberSet) {
        if self.names.are_places {
            numbers.set_places(vcpus);
            return;
        }
        numbers.clear();
        for vcpu in vcpus.iter() {
            if let Some(number) = self.names.number(vcpu) {
                numbers.insert(number);
            }
        }
    }

    /// Place of a vCPU that is here.
    #[inline]
    pub(super) fn here(&self, directory: &Directory, vcpu: Option<VcpuNumber>) -> Option<VcpuId> {
        if self.names.are_places {
            return VcpuId::new(vcpu?.get());
        }
        let place = directory.place(vcpu?)?;
        (place.group == self.index).then_some(place.vcpu)
    }

    /// [`Scheduler::leave_and_dispatch`], by numbers. Only the vCPUs that an idle hart watches are named by places ([`Self::name`]).
    #[inline]
    pub fn leave_and_dispatch(
        &mut self,
        (hart, left): (HartId, &Left<VcpuNumber>),
        now: Ticks,
        (directory, load_bits): (&Directory, &LoadBits),
        probe: &mut impl Probe<VcpuNumber>,
    ) -> (bool, Dispatch<VcpuNumber, VcpuSet>) {
        if !self.names.are_places {
            self.scheduler.others_have_surplus = load_bits.others_have_surplus(self.index);
        }
        let holder = self.here(directory, left.holder);
        let mut probe = Named {
            probe,
            names: &self.names,
        };
        let (stopped, next) = self
            .scheduler
            .replace(hart, (left, holder), now, &mut probe);
        let next = match next {
            Dispatch::Run {
                vcpu,
                slice,
                trap_waits,
                kicks,
            } => match self.names.number(vcpu) {
                Some(vcpu) => Dispatch::Run {
                    vcpu,
                    slice,
                    trap_waits,
                    kicks,
                },
                // Each vCPU has a number.
                None => Dispatch::Idle {
                    watch: VcpuSet::EMPTY,
                    poll: false,
                    active: false,
                    kicks,
                },
            },
            Dispatch::Idle {
                watch,
                poll,
                active,
                kicks,
            } => Dispatch::Idle {
                watch,
                poll,
                active,
                kicks,
            },
        };
        (stopped, next)
    }

    /// [`Scheduler::keeps_hart`], by numbers.
    pub fn keeps_hart(
        &mut self,
        hart: HartId,
        exit: SpinExit<VcpuNumber>,
        directory: &Directory,
    ) -> Keep {
        let holder = self.here(directory, exit.holder);
        self.scheduler.keeps_hart(
            hart,
            SpinExit {
                on: exit.on,
                holder,
            },
        )
    }

    /// Replaces the scheduler, whose vCPUs have these numbers.
    #[cfg(test)]
    pub(crate) fn assume(
        &mut self,
        scheduler: Scheduler,
        known: impl Iterator<Item = (VcpuId, VcpuNumber)>,
        directory: &Directory,
    ) {
        self.harts = scheduler.online;
        self.scheduler = scheduler;
        for (vcpu, number) in known {
            self.enrol(directory, vcpu, number);
        }
        self.note_allocations();
    }

    /// Registers the number of a vCPU that has just come here.
    pub(super) fn enrol(&mut self, directory: &Directory, vcpu: VcpuId, number: VcpuNumber) {
        self.names.numbers[vcpu.index()] = number.get();
        self.active.insert(vcpu);
        // Its whole run time counts as work.
        self.used[vcpu.index()] = Ticks::ZERO;
        directory.set(
            number,
            Place {
                group: self.index,
                vcpu,
            },
        );
    }

    /// Updates what follows from the allocations of vCPUs.
    pub(super) fn note_allocations(&mut self) {
        let every = (0..).map_while(VcpuId::new);
        let one = |&vcpu: &VcpuId| self.scheduler.has_home(vcpu);
        self.pinned = every.filter(one).collect();
        self.displaced = self.scheduler.displaced();
        self.full = self.free() == 0;
    }

    /// Updates what follows from the arrival or departure of a vCPU at this place alone.
    pub(super) fn note_allocation(&mut self, vcpu: VcpuId) {
        let there = self.scheduler.occupied.contains(vcpu);
        let alone = VcpuSet::only(vcpu);
        self.pinned = self.pinned.without(alone);
        self.displaced = self.displaced.without(alone);
        if there && self.scheduler.has_home(vcpu) {
            self.pinned.insert(vcpu);
        }
        if there && self.scheduler.is_displaced(vcpu) {
            self.displaced.insert(vcpu);
        }
        self.full = self.free() == 0;
    }

    /// Number of free places.
    pub(super) fn free(&self) -> usize {
        MAX_VCPUS - self.scheduler.occupied.count() as usize
    }

    /// Returns true if all places are taken.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// vCPUs that are to be migrated to another group.
    #[must_use]
    pub const fn displaced(&self) -> VcpuSet {
        self.displaced
    }
}
