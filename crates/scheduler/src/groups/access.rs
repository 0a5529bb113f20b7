//! Access to the groups of a computer.

use super::directory::{Directory, GroupId};
use super::group::Group;
use super::load_bits::LoadBits;
use super::numbers::NumberSet;
use crate::base::id::{VcpuId, VcpuNumber};
use crate::base::ticks::Ticks;
use crate::decision::Kicks;

/// Access to groups, which are under locks. Each call of a closure is one atomic step.
pub trait Access {
    /// Directory of vCPUs.
    fn directory(&self) -> &Directory;

    /// Load bits of the groups.
    fn load_bits(&self) -> &LoadBits;

    /// Number of groups.
    fn count(&self) -> usize;

    /// Applies a function to one group.
    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R;

    /// Applies a function to two different groups, in the order in which they are named.
    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R;

    /// Applies a function to a vCPU in its group. `None` if there is no such vCPU.
    fn with_vcpu<R>(
        &self,
        vcpu: VcpuNumber,
        what: impl FnOnce(&mut Group, VcpuId) -> R,
    ) -> Option<R> {
        let mut what = Some(what);
        loop {
            let place = self.directory().place(vcpu)?;
            // The vCPU may have been migrated before this lock was taken. Each further iteration has a migration as its cause.
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

    /// All groups.
    fn groups(&self) -> impl Iterator<Item = GroupId> + use<Self> {
        (0..self.count()).map_while(GroupId::new)
    }
}

/// [`crate::Scheduler::wake`] for each of `vcpus`, with each group's lock taken once.
pub fn wake_all(access: &impl Access, vcpus: &NumberSet, now: Ticks) -> Kicks {
    let mut rest = *vcpus;
    let mut kicks = Kicks::NONE;
    for first in vcpus.iter() {
        if !rest.contains(first) {
            // A vCPU of its group came before it.
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
        // A vCPU that does not exist is in no group.
        kicks = kicks.and(woken.unwrap_or_default());
    }
    kicks
}
