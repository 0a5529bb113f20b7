//! Balance of shares over all groups: parts of shares follow work, and work follows shares.
//!
//! Within a group, its accounts keep the shares to the tick, but groups have more or less work for their harts. So once in a round
//!
//! 1. the share of a VM is divided over its vCPUs that have work, in all groups;
//! 2. the entitlement of each is computed in parts of a hart, at most a whole one, and so the entitlement of each group;
//! 3. one vCPU is migrated from the group with the largest entitlement a hart to the one with the smallest, if this makes the difference smaller. If
//!    it only reverses the difference, a vCPU of the VM that was served most goes, so that the others have a turn with more room.

use core::cmp::Reverse;

use crate::base::id::{MAX_VMS, VcpuId, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::Config;
use crate::decision::Kicks;

use super::access::Access;
use super::directory::GroupId;
use super::group::Group;
use super::ledger::{ACTIVE_WEIGHT, ASLEEP_WEIGHT, Ledger};
use super::migration;

/// A whole hart, in units of entitlement.
const HART: u64 = 1 << 10;

/// Totals over all groups.
struct Found {
    used: [Ticks; MAX_VMS],
    /// vCPUs with work.
    active: [u32; MAX_VMS],
    /// Sum of [`ACTIVE_WEIGHT`] for each of these, and [`ASLEEP_WEIGHT`] for each of the others.
    units: [u32; MAX_VMS],
    /// VMs with vCPUs in a group in which a vCPU waits for a hart.
    wants: [bool; MAX_VMS],
    /// Shared harts.
    harts: u32,
}

impl Group {
    /// vCPUs without a dedicated hart that have work now, or have had some since the last call.
    fn note_active(&mut self, now: Ticks) -> VcpuSet {
        let scheduler = &self.scheduler;
        let busy = scheduler.queues.ready().union(scheduler.executing);
        let mut active = VcpuSet::EMPTY;
        for vcpu in (0..).map_while(VcpuId::new) {
            let Some(entry) = &scheduler.vcpus[vcpu.index()] else {
                continue;
            };
            let used = scheduler.used_by(vcpu, now);
            let before = core::mem::replace(&mut self.used[vcpu.index()], used);
            if !entry.dedicated && (busy.contains(vcpu) || used != before) {
                active.insert(vcpu);
            }
        }
        active
    }

    fn report(&mut self, found: &mut Found, now: Ticks) {
        self.active = self.note_active(now);
        let active = self.active;
        let scheduler = &self.scheduler;
        let contended = !scheduler.queues.ready().is_empty();
        for vcpu in (0..).map_while(VcpuId::new) {
            let Some(entry) = &scheduler.vcpus[vcpu.index()] else {
                continue;
            };
            let vm = entry.vm.index();
            found.used[vm] = found.used[vm] + scheduler.used_by(vcpu, now);
            if active.contains(vcpu) {
                found.active[vm] += 1;
                found.units[vm] += ACTIVE_WEIGHT;
                found.wants[vm] |= contended;
            } else {
                found.units[vm] += ASLEEP_WEIGHT;
            }
        }
        found.harts += scheduler.shared_harts().count();
    }

    /// Entitlement of the group, after each part of a share follows the work.
    fn settle(&mut self, found: &Found, due: &[u64; MAX_VMS]) -> u64 {
        let active = self.active;
        let mut sum = 0;
        for vm in (0..).map_while(VmId::new) {
            let all = self.scheduler.vcpus(vm);
            if self.scheduler.vms[vm.index()].is_none() {
                continue;
            }
            let here = all.intersection(active).count();
            let units = here * ACTIVE_WEIGHT + (all.count() - here) * ASLEEP_WEIGHT;
            self.scheduler
                .set_part(vm, (units, found.units[vm.index()]));
            sum += u64::from(here) * due[vm.index()];
        }
        self.scheduler.set_quantities();
        sum
    }

    /// Service of the VM served least among those that would gain room if one vCPU of the VM served most went, and service of the VM served most.
    fn extremes(&self, served: impl Fn(VmId) -> Option<u64>) -> (u64, u64) {
        let of = |vcpus: VcpuSet| {
            let vms = vcpus.iter().filter_map(|vcpu| self.scheduler.vm_of(vcpu));
            vms.filter_map(&served)
        };
        let goes = self.candidate(|vm| served(vm).map(Reverse));
        let stays = goes.map(|vcpu| self.active.without(VcpuSet::only(vcpu)));
        let least = stays.and_then(|stays| of(stays).min());
        let most = of(self.active).max();
        (least.unwrap_or(u64::MAX), most.unwrap_or(0))
    }

    /// Movable vCPU of the VM that is first by `key`; VMs without a key are left out.
    fn candidate<K: Ord>(&self, key: impl Fn(VmId) -> Option<K>) -> Option<VcpuId> {
        let movable = self.movable().iter();
        let keyed = movable.filter_map(|vcpu| {
            let vm = self.scheduler.vm_of(vcpu)?;
            Some((key(vm)?, vcpu))
        });
        keyed
            .min_by(|(one, _), (other, _)| one.cmp(other))
            .map(|(_, vcpu)| vcpu)
    }
}

impl Ledger {
    /// Entitlement of each vCPU with work, by VM: its part of the harts by shares, at most a whole one; the excess goes to the others.
    fn due(&self, found: &Found) -> [u64; MAX_VMS] {
        let mut due = [0; MAX_VMS];
        let mut left = u64::from(found.harts) * HART;
        let mut open = self
            .vms
            .iter()
            .zip(&found.active)
            .fold(0, |sum, (vm, &active)| {
                sum + vm
                    .filter(|_| active > 0)
                    .map_or(0, |vm| u64::from(vm.share))
            });
        // Each iteration settles the VMs whose vCPUs get a hart each; few are needed, and the rest is an estimate.
        for _ in 0..4 {
            let (all, shares) = (left, open);
            for ((vm, &active), due) in self.vms.iter().zip(&found.active).zip(&mut due) {
                let Some(vm) = vm.filter(|_| active > 0 && *due < HART) else {
                    continue;
                };
                let active = u64::from(active);
                let part = all * u64::from(vm.share) / shares.max(1) / active;
                *due = part.clamp(1, HART);
                if part >= HART {
                    left = left.saturating_sub(active * HART);
                    open -= u64::from(vm.share);
                }
            }
            if open == shares {
                break;
            }
        }
        due
    }

    /// Service of the VM served most.
    fn most_served(&self) -> u64 {
        let served = self.vms.iter().flatten().map(|vm| vm.served);
        served.max().unwrap_or(0)
    }

    /// Two slices in units of service, at the average share.
    fn two(&self, slice: Ticks) -> u64 {
        let sharing = || self.vms.iter().flatten().filter(|vm| vm.own.is_empty());
        let shares: u64 = sharing().map(|vm| u64::from(vm.share)).sum();
        let average = shares / (sharing().count() as u64).max(1);
        2 * slice.get().saturating_mul(HART) / average.max(1)
    }

    /// Notes the service of each VM since the last balance.
    fn note_served(&mut self, found: &Found, slice: Ticks) {
        for (place, vm) in self.vms.iter_mut().enumerate() {
            let Some(vm) = vm else { continue };
            let had = found.used[place] - vm.used;
            vm.used = found.used[place];
            vm.served += had.get().saturating_mul(HART) / u64::from(vm.share.max(1));
        }
        let wanting = self.vms.iter().zip(found.wants);
        let wanting = wanting.filter_map(|(vm, wants)| vm.filter(|_| wants));
        let least = wanting.map(|vm| vm.served).min();
        let Some(least) = least else { return };
        // A VM that did not want more saves nothing up, and the debt of one that was served more is bounded.
        let most = slice.get().saturating_mul(HART * 64);
        for (vm, wants) in self.vms.iter_mut().zip(found.wants) {
            if let Some(vm) = vm {
                if !wants {
                    vm.served = vm.served.max(least);
                }
                let share = u64::from(vm.share.max(1));
                vm.served = vm.served.min(least.saturating_add(most / share));
            }
        }
    }
}

/// Time between balances: a round of an odd number of slices. Two vCPUs that have a hart in turn would otherwise be found in the same order each
/// time, and one of them could never be migrated.
#[must_use]
pub fn interval(config: &Config) -> Ticks {
    let slices = config.round | 1;
    Ticks::new(config.slice.get().saturating_mul(slices.into()))
}

/// Divides shares anew, and migrates at most one vCPU. One hart at a time calls it once in a service round.
pub fn balance(ledger: &mut Ledger, access: &impl Access, slice: Ticks, now: Ticks) -> Kicks {
    if access.count() == 1 {
        return Kicks::NONE;
    }
    let mut found = Found {
        used: [Ticks::ZERO; MAX_VMS],
        active: [0; MAX_VMS],
        units: [0; MAX_VMS],
        wants: [false; MAX_VMS],
        harts: 0,
    };
    for group in access.groups() {
        access.with(group, |group| group.report(&mut found, now));
    }
    ledger.note_served(&found, slice);
    let due = ledger.due(&found);
    let served = |vm: VmId| ledger.vms[vm.index()].map(|vm| vm.served);
    // Ties go to the group where a VM with little service waits, and to the one with a VM of much service.
    let mut heaviest: Option<((u64, Reverse<u64>), GroupId)> = None;
    let mut lightest: Option<((u64, Reverse<u64>), GroupId)> = None;
    for group in access.groups() {
        let (sum, harts, (least, most)) = access.with(group, |group| {
            let sum = group.settle(&found, &due);
            let harts = group.scheduler.shared_harts().count();
            (sum, harts, group.extremes(served))
        });
        let Some(load) = sum.checked_div(harts.into()) else {
            continue;
        };
        let (heavy, light) = ((load, Reverse(least)), (load, Reverse(most)));
        if heaviest.is_none_or(|(heaviest, _)| heavy > heaviest) {
            heaviest = Some((heavy, group));
        }
        if lightest.is_none_or(|(lightest, _)| light < lightest) {
            lightest = Some((light, group));
        }
    }
    let (Some(((most, _), from)), Some(((least, _), to))) = (heaviest, lightest) else {
        return Kicks::NONE;
    };
    if from == to || most <= HART {
        return Kicks::NONE;
    }
    let moved = access.with_two(from, to, |from, to| {
        let harts = u64::from(to.scheduler.shared_harts().count().max(1));
        let rises = |vm: VmId| least + due[vm.index()] / harts;
        let better = from.candidate(|vm| (rises(vm) < most).then(|| served(vm)).flatten());
        // A migration for turns pays if a VM that stays was served less by so much.
        let (least, _) = from.extremes(served);
        let uneven = ledger.most_served().saturating_sub(least) > ledger.two(slice);
        let chosen = better.or_else(|| {
            let turns = |vm: VmId| uneven && rises(vm) <= 2 * most;
            from.candidate(|vm| turns(vm).then(|| served(vm)).flatten().map(Reverse))
        })?;
        migration::transfer(access, (from, to), chosen, now)
    });
    moved.unwrap_or_default()
}
