//! What concerns all groups: virtual machines, how they get harts, and what an operator changes.
//!
//! The [`Ledger`] keeps what no single group knows. Whoever has it is the only one that changes these things.

use crate::config::{Allocation, Config, ConfigError, Placement, SpinPolicy, VmConfig, WaitPolicy};
use crate::decision::Kicks;
use crate::id::{HartId, HartSet, MAX_NUMBERS, MAX_VMS, VcpuNumber, VmId};
use crate::ticks::Ticks;
use crate::transfer::Terms;

use super::{Access, Group, GroupId, MAX_GROUPS, balance, flow};

/// A virtual machine, over all groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// Its vCPUs have numbers in a row.
    pub(super) first: u16,
    pub(super) vcpus: u16,
    pub(super) share: u32,
    pub(super) placement: Placement,
    /// The harts that it has for itself; none where it shares.
    pub(super) own: HartSet,
    /// All time that it had run at the last balance.
    pub(super) used: Ticks,
    /// What it has had for each part of its share since it began, with what it did not want: at a balance, the least of these
    /// is served first.
    pub(super) served: u64,
}

impl Machine {
    fn numbers(&self) -> impl Iterator<Item = VcpuNumber> + use<> {
        (self.first..self.first + self.vcpus).map_while(VcpuNumber::new)
    }

    fn terms(&self) -> Terms {
        Terms {
            dedicated: !self.own.is_empty(),
            share: self.share,
            placement: self.placement,
        }
    }
}

/// What concerns all groups.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) vms: [Option<Machine>; MAX_VMS],
    online: HartSet,
    next_number: u16,
    /// The shares of the vCPUs that were placed in each group.
    load: [u64; MAX_GROUPS],
}

impl Ledger {
    /// The ledger of a computer with these harts, without virtual machines.
    #[must_use]
    pub const fn new(online: HartSet) -> Self {
        Self {
            vms: [None; MAX_VMS],
            online,
            next_number: 0,
            load: [0; MAX_GROUPS],
        }
    }

    /// The share of a virtual machine, also of one that does not share now; 1 if there is no such machine.
    #[must_use]
    pub fn share(&self, vm: VmId) -> u32 {
        self.vms[vm.index()].map_or(1, |vm| vm.share)
    }

    /// The harts that a virtual machine has for itself; none where it shares.
    #[must_use]
    pub fn own_harts(&self, vm: VmId) -> HartSet {
        self.vms[vm.index()].map_or(HartSet::EMPTY, |vm| vm.own)
    }

    /// The harts that no virtual machine has for itself.
    #[must_use]
    pub fn shared_harts(&self) -> HartSet {
        let all = self.vms.iter().flatten();
        all.fold(self.online, |shared, vm| shared.without(vm.own))
    }

    fn check(&self, vm: Option<VmId>, vcpus: u16, to: Allocation) -> Result<HartSet, ConfigError> {
        let others = || {
            let all = self.vms.iter().enumerate();
            let others = all.filter(move |(place, _)| Some(*place) != vm.map(VmId::index));
            others.filter_map(|(_, vm)| vm.as_ref())
        };
        let taken = others().fold(HartSet::EMPTY, |taken, vm| taken.union(vm.own));
        let mut sharing = others().any(|vm| vm.own.is_empty());
        let own = match to {
            Allocation::Shared { share } => {
                if !(1..=10_000).contains(&share) {
                    return Err(ConfigError::Share);
                }
                sharing = true;
                HartSet::EMPTY
            }
            Allocation::Dedicated { harts } => {
                if harts.count() != u32::from(vcpus) {
                    return Err(ConfigError::DedicatedCount);
                }
                if !harts.without(self.online).is_empty() {
                    return Err(ConfigError::DedicatedOffline);
                }
                if !harts.intersection(taken).is_empty() {
                    return Err(ConfigError::DedicatedTwice);
                }
                harts
            }
        };
        if sharing && self.online.without(taken.union(own)).is_empty() {
            return Err(ConfigError::NoSharedHart);
        }
        Ok(own)
    }
}

/// Adds a virtual machine, as [`crate::Scheduler::add_placed_vm`] does. Its vCPUs have numbers in a row. They are placed a few together, as many as a group
/// has harts, where the least share is yet.
///
/// # Errors
/// No room, or an allocation that cannot be had; nothing has changed then.
pub fn add_vm(
    ledger: &mut Ledger,
    access: &impl Access,
    config: VmConfig,
    placement: Placement,
) -> Result<(VmId, Kicks), ConfigError> {
    let VmConfig { vcpus, allocation } = config;
    if vcpus == 0 {
        return Err(ConfigError::NoVcpus);
    }
    let free = (0..)
        .map_while(VmId::new)
        .find(|vm| ledger.vms[vm.index()].is_none());
    let vm = free.ok_or(ConfigError::TooManyVms)?;
    let places: usize = (access.groups())
        .map(|group| access.with(group, |group| group.free()))
        .sum();
    let numbers = MAX_NUMBERS - usize::from(ledger.next_number);
    if usize::from(vcpus) > places.min(numbers) {
        return Err(ConfigError::TooManyVcpus);
    }
    let own = ledger.check(None, vcpus, allocation)?;
    let machine = Machine {
        first: ledger.next_number,
        vcpus,
        share: match allocation {
            Allocation::Shared { share } => share,
            Allocation::Dedicated { .. } => 1,
        },
        placement,
        own,
        used: Ticks::ZERO,
        served: ledger.least_served(),
    };
    if access.count() == 1 {
        let kicks = access.with(GroupId::FIRST, |group| {
            let (vm, kicks) = group.scheduler.add_placed_vm(config, placement)?;
            for (vcpu, number) in group.scheduler.vcpus(vm).iter().zip(machine.numbers()) {
                group.enrol(access.directory(), vcpu, number);
            }
            group.note_allocations();
            Ok((vm, kicks))
        })?;
        ledger.vms[kicks.0.index()] = Some(machine);
        ledger.next_number += vcpus;
        return Ok(kicks);
    }
    for group in access.groups() {
        access.with(group, |group| {
            group
                .scheduler
                .open_vm(vm, machine.share, machine.placement);
        });
    }
    let mut target = (GroupId::FIRST, 0);
    for (place, number) in machine.numbers().enumerate() {
        let home = own.iter().nth(place);
        let group = match home {
            Some(hart) => access.directory().group_of(hart),
            None => {
                if target.1 == 0 {
                    target = ledger.lightest(access)?;
                }
                target.1 -= 1;
                target.0
            }
        };
        let place = |group: &mut Group| {
            let vcpu = group.scheduler.open_vcpu(vm)?;
            group.enrol(access.directory(), vcpu, number);
            let (parts, _) = group.scheduler.part(vm);
            let of = u32::from(vcpus) * balance::ACTIVE;
            group.scheduler.set_part(vm, (parts + balance::ACTIVE, of));
            Some(())
        };
        // There are places enough in all; where this group has none, another has.
        if access.with(group, place).is_none() {
            target.1 = 0;
            let other = access
                .groups()
                .find(|&other| access.with(other, place).is_some());
            other.ok_or(ConfigError::TooManyVcpus)?;
        }
        ledger.load[group.index()] += u64::from(machine.share) * 64 / u64::from(vcpus);
    }
    ledger.vms[vm.index()] = Some(machine);
    ledger.next_number += vcpus;
    Ok((vm, revise(access, vm, &machine, Ticks::ZERO)))
}

impl Ledger {
    /// The group with the least share for each of its shared harts, and how many vCPUs are placed there together.
    fn lightest(&self, access: &impl Access) -> Result<(GroupId, u32), ConfigError> {
        let shared = self.shared_harts();
        let candidates = access.groups().filter_map(|group| {
            let harts = access.with(group, |group| match group.is_full() {
                true => HartSet::EMPTY,
                false => group.harts.intersection(shared),
            });
            (!harts.is_empty()).then(|| (group, harts.count()))
        });
        candidates
            .min_by_key(|&(group, harts)| self.load[group.index()] / u64::from(harts))
            .ok_or(ConfigError::TooManyVcpus)
    }

    /// What the machine that was served least has had.
    fn least_served(&self) -> u64 {
        let served = self.vms.iter().flatten().map(|vm| vm.served);
        served.min().unwrap_or(0)
    }
}

/// Tells all groups how `vm` gets harts now, and sends vCPUs to where they may run.
fn revise(access: &impl Access, vm: VmId, machine: &Machine, now: Ticks) -> Kicks {
    let home = |number: VcpuNumber| -> Option<HartId> {
        machine
            .own
            .iter()
            .nth(usize::from(number.get().checked_sub(machine.first)?))
    };
    let mut kicks = Kicks::NONE;
    for group in access.groups() {
        let told = access.with(group, |group| {
            let names = &group.names;
            let told = group.scheduler.set_terms(vm, machine.terms(), |vcpu| {
                names.number(vcpu).and_then(home)
            });
            let revised = group.scheduler.revise();
            group.note_allocations();
            told.and(revised)
        });
        kicks = kicks.and(told);
    }
    for group in access.groups() {
        kicks = kicks.and(flow::send_strays(access, group, now));
    }
    kicks
}

/// Changes how a virtual machine gets harts, as [`crate::Scheduler::set_allocation`] does. A vCPU that has a hart of another group for its own goes
/// there once it has left the hart that it is on.
///
/// # Errors
/// An allocation that cannot be had; nothing has changed then.
pub fn set_allocation(
    ledger: &mut Ledger,
    access: &impl Access,
    (vm, to): (VmId, Allocation),
    now: Ticks,
) -> Result<Kicks, ConfigError> {
    let mut machine = ledger.vms[vm.index()].ok_or(ConfigError::NoSuchVm)?;
    machine.own = ledger.check(Some(vm), machine.vcpus, to)?;
    if let Allocation::Shared { share } = to {
        machine.share = share;
    }
    let kicks = match access.count() {
        1 => access.with(GroupId::FIRST, |group| {
            let kicks = group.scheduler.set_allocation(vm, to)?;
            group.note_allocations();
            Ok(kicks)
        })?,
        _ => revise(access, vm, &machine, now),
    };
    ledger.vms[vm.index()] = Some(machine);
    Ok(kicks)
}

/// Changes the share of a virtual machine.
///
/// # Errors
/// `NoSuchVm`, or `Share` if it is out of its range.
pub fn set_share(
    ledger: &mut Ledger,
    access: &impl Access,
    vm: VmId,
    share: u32,
) -> Result<(), ConfigError> {
    let machine = ledger.vms[vm.index()]
        .as_mut()
        .ok_or(ConfigError::NoSuchVm)?;
    for group in access.groups() {
        access.with(group, |group| group.scheduler.set_share(vm, share))?;
    }
    machine.share = share;
    Ok(())
}

/// Changes the spin policy while vCPUs run.
pub fn set_spin(access: &impl Access, policy: SpinPolicy, now: Ticks) -> Kicks {
    in_all(access, |group| group.scheduler.set_spin(policy, now))
}

/// Changes the wait policy while vCPUs run.
pub fn set_wait(access: &impl Access, policy: WaitPolicy) -> Kicks {
    in_all(access, |group| group.scheduler.set_wait(policy))
}

fn in_all(access: &impl Access, what: impl Fn(&mut Group) -> Kicks) -> Kicks {
    access.groups().fold(Kicks::NONE, |kicks, group| {
        kicks.and(access.with(group, &what))
    })
}

/// Changes the time slice, from the next dispatch on.
///
/// # Errors
/// Those of [`crate::Scheduler::set_slice`].
pub fn set_slice(access: &impl Access, slice: Ticks) -> Result<(), ConfigError> {
    for group in access.groups() {
        access.with(group, |group| group.scheduler.set_slice(slice))?;
    }
    Ok(())
}

/// The configuration in force.
pub fn config(access: &impl Access) -> Config {
    access.with(GroupId::FIRST, |group| *group.scheduler.config())
}
