//! Groups of harts: a scheduler for each hart, so that what a decision costs does not grow with the computer.
//!
//! A [`Group`] is a [`Scheduler`] for its own harts, with queues, masks and accounts of its own, under a lock of its own. A vCPU is in one
//! group at a time. What is new is how it goes from one to another ([`flow`], [`balance`], and what an operator asks for), and
//! the [`Directory`] that says where it is. `docs/scheduling.md` has the argument.
//!
//! The hypervisor keeps the groups under their locks and is reached by [`Access`]. With one group nothing here is used but the names,
//! which are the places then.

pub mod balance;

mod directory;
pub mod flow;
mod layout;
mod notices;
mod numbers;
pub mod operator;

pub use directory::{Directory, GroupId, MAX_GROUPS, Place};
pub use layout::Layout;
pub use notices::{Flow, Notices};
pub use numbers::{Members, NumberSet};

use crate::config::{Config, ConfigError};
use crate::decision::{Dispatch, Keep, Kicks, Left, Probe, SpinExit};
use crate::id::{HartId, HartSet, MAX_VCPUS, VcpuId, VcpuNumber, VcpuSet};
use crate::table::Scheduler;
use crate::ticks::Ticks;

/// The scheduler of some harts, and the numbers of the vCPUs that it serves.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Group {
    /// Those that no hart of the group may run: they are to go to another group.
    strays: VcpuSet,
    /// Those that have one hart to run on.
    pinned: VcpuSet,
    index: GroupId,
    /// All places are taken.
    full: bool,
    names: Names,
    scheduler: Scheduler,
    harts: HartSet,
    /// The vCPUs that had work before the last balance.
    active: VcpuSet,
    /// By places, all time that vCPUs had run then.
    used: [Ticks; MAX_VCPUS],
}

/// The numbers of the vCPUs by their places.
#[derive(Clone, Debug)]
#[repr(C)]
struct Names {
    /// It is the only group, and each vCPU's number is its place.
    are_places: bool,
    numbers: [u16; MAX_VCPUS],
}

impl Names {
    #[inline]
    fn number(&self, vcpu: VcpuId) -> Option<VcpuNumber> {
        if self.are_places {
            return VcpuNumber::new(vcpu.get());
        }
        VcpuNumber::new(self.numbers[vcpu.index()])
    }
}

/// The name of a place where nobody is.
const NOBODY: u16 = u16::MAX;

/// How groups are reached, which are under locks. Each call of what it is given is one step that nothing comes between.
pub trait Access {
    /// Where vCPUs are.
    fn directory(&self) -> &Directory;

    /// What groups tell each other without locks.
    fn notices(&self) -> &Notices;

    /// The number of groups.
    fn count(&self) -> usize;

    /// Does something with one group.
    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R;

    /// Does something with two different groups; `what` gets them in the order in which they are named.
    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R;

    /// Does something with a vCPU in the group that has it. Nothing where there is no such vCPU.
    fn with_vcpu<R>(
        &self,
        vcpu: VcpuNumber,
        what: impl FnOnce(&mut Group, VcpuId) -> R,
    ) -> Option<R> {
        let mut what = Some(what);
        loop {
            let place = self.directory().place(vcpu)?;
            // It may have gone to another group before this one's lock was had. Each time round, somebody has moved it.
            let result = self.with(place.group, |group| {
                let there = self.directory().place(vcpu) == Some(place);
                let what = what.take_if(|_| there)?;
                Some(what(group, place.vcpu))
            });
            if result.is_some() {
                return result;
            }
        }
    }

    /// Every group.
    fn groups(&self) -> impl Iterator<Item = GroupId> + use<Self> {
        (0..self.count()).map_while(GroupId::new)
    }
}

/// [`Scheduler::wake`] for each of `vcpus`, with each group's lock taken once.
pub fn wake_all(access: &impl Access, vcpus: &NumberSet, now: Ticks) -> Kicks {
    let mut rest = *vcpus;
    let mut kicks = Kicks::NONE;
    for first in vcpus.iter() {
        if !rest.contains(first) {
            // Somebody of its group has come before it.
            continue;
        }
        let woken = access.with_vcpu(first, |group, _| {
            let mut kicks = Kicks::NONE;
            let all = rest;
            for vcpu in all.iter() {
                if let Some(place) = group.here(access.directory(), Some(vcpu)) {
                    kicks = kicks.and(group.scheduler.wake(place, now));
                    rest.remove(vcpu);
                }
            }
            kicks
        });
        // One that there is not is in no group.
        kicks = kicks.and(woken.unwrap_or_default());
    }
    kicks
}

/// Asks by numbers what a scheduler asks by places.
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
    /// A group of `layout`, without vCPUs.
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
            strays: VcpuSet::EMPTY,
            full: false,
            names: Names {
                are_places: layout.groups() == 1,
                numbers: [NOBODY; MAX_VCPUS],
            },
        })
    }

    /// Its scheduler.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Its scheduler, for whatever does not change which vCPUs it serves or how they get harts.
    pub const fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// Which group it is.
    #[must_use]
    pub const fn index(&self) -> GroupId {
        self.index
    }

    /// Its harts.
    #[must_use]
    pub const fn harts(&self) -> HartSet {
        self.harts
    }

    /// The number of a vCPU that is here.
    #[must_use]
    #[inline]
    pub fn number(&self, vcpu: VcpuId) -> Option<VcpuNumber> {
        self.names.number(vcpu)
    }

    /// The numbers of vCPUs that are here.
    #[must_use]
    pub fn numbers(&self, vcpus: VcpuSet) -> NumberSet {
        let mut numbers = NumberSet::EMPTY;
        self.name(vcpus, &mut numbers);
        numbers
    }

    /// Makes `numbers` the numbers of vCPUs that are here.
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

    /// The place of a vCPU that is here.
    #[inline]
    fn here(&self, directory: &Directory, vcpu: Option<VcpuNumber>) -> Option<VcpuId> {
        if self.names.are_places {
            return VcpuId::new(vcpu?.get());
        }
        let place = directory.place(vcpu?)?;
        (place.group == self.index).then_some(place.vcpu)
    }

    /// [`Scheduler::leave_and_dispatch`], by numbers. Only whom an idle hart is to watch is named by places ([`Self::name`]).
    #[inline]
    pub fn leave_and_dispatch(
        &mut self,
        (hart, left): (HartId, &Left<VcpuNumber>),
        now: Ticks,
        (directory, notices): (&Directory, &Notices),
        probe: &mut impl Probe<VcpuNumber>,
    ) -> (bool, Dispatch<VcpuNumber, VcpuSet>) {
        if !self.names.are_places {
            self.scheduler.wanted = notices.others_give(self.index);
        }
        let left = left.renamed(self.here(directory, left.holder));
        let mut probe = Named {
            probe,
            names: &self.names,
        };
        let (stopped, next) = self
            .scheduler
            .leave_and_dispatch(hart, &left, now, &mut probe);
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

    /// [`Scheduler::keeps`], by numbers.
    pub fn keeps(
        &mut self,
        hart: HartId,
        exit: SpinExit<VcpuNumber>,
        directory: &Directory,
    ) -> Keep {
        let holder = self.here(directory, exit.holder);
        self.scheduler.keeps(
            hart,
            SpinExit {
                on: exit.on,
                holder,
            },
        )
    }

    /// The same group with this scheduler, whose vCPUs have these numbers.
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

    /// Gives a vCPU that has just come here its number.
    fn enrol(&mut self, directory: &Directory, vcpu: VcpuId, number: VcpuNumber) {
        self.names.numbers[vcpu.index()] = number.get();
        self.active.insert(vcpu);
        // Whatever it has run counts as work.
        self.used[vcpu.index()] = Ticks::ZERO;
        directory.set(
            number,
            Place {
                group: self.index,
                vcpu,
            },
        );
    }

    /// Brings up to date what follows from how vCPUs get harts.
    fn note_allocations(&mut self) {
        let every = (0..).map_while(VcpuId::new);
        let one = |&vcpu: &VcpuId| self.scheduler.has_home(vcpu);
        self.pinned = every.filter(one).collect();
        self.strays = self.scheduler.strays();
        self.full = self.free() == 0;
    }

    /// The same, where a vCPU has come to this place or left it, and nothing else has changed.
    fn note_allocation(&mut self, vcpu: VcpuId) {
        let there = self.scheduler.taken.contains(vcpu);
        let alone = VcpuSet::only(vcpu);
        self.pinned = self.pinned.without(alone);
        self.strays = self.strays.without(alone);
        if there && self.scheduler.has_home(vcpu) {
            self.pinned.insert(vcpu);
        }
        if there && self.scheduler.is_stray(vcpu) {
            self.strays.insert(vcpu);
        }
        self.full = self.free() == 0;
    }

    /// The number of free places.
    fn free(&self) -> usize {
        MAX_VCPUS - self.scheduler.taken.count() as usize
    }

    /// Whether all places are taken.
    #[inline]
    const fn is_full(&self) -> bool {
        self.full
    }

    /// The vCPUs that are to go to another group.
    #[must_use]
    pub const fn strays(&self) -> VcpuSet {
        self.strays
    }
}
