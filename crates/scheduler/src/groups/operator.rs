//! Changes by an operator that concern all groups.

use crate::base::id::{HartId, MAX_NUMBERS, VcpuNumber, VmId};
use crate::base::ticks::Ticks;
use crate::config::{Allocation, Config, ConfigError, Placement, VmConfig};
use crate::decision::Kicks;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

use super::access::Access;
use super::directory::GroupId;
use super::group::Group;
use super::ledger::{ACTIVE_WEIGHT, Ledger, VmRecord};
use super::migration;

/// Adds a VM, as [`crate::Scheduler::add_placed_vm`] does. Its vCPUs have consecutive numbers. They are placed a few together, as many as a group has
/// harts, in the group with the least share.
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
    let record = VmRecord {
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
            for (vcpu, number) in group.scheduler.vcpus(vm).iter().zip(record.numbers()) {
                group.enrol(access.directory(), vcpu, number);
            }
            group.note_allocations();
            Ok((vm, kicks))
        })?;
        ledger.vms[kicks.0.index()] = Some(record);
        ledger.next_number += vcpus;
        return Ok(kicks);
    }
    for group in access.groups() {
        access.with(group, |group| {
            group
                .scheduler
                .register_vm(vm, record.share, record.placement);
        });
    }
    place_vcpus(ledger, access, vm, &record)?;
    ledger.vms[vm.index()] = Some(record);
    ledger.next_number += vcpus;
    Ok((vm, revise(access, vm, &record, Ticks::ZERO)))
}

/// Creates the vCPUs of a new VM in the groups of its dedicated harts, or in those with the least share.
fn place_vcpus(
    ledger: &mut Ledger,
    access: &impl Access,
    vm: VmId,
    record: &VmRecord,
) -> Result<(), ConfigError> {
    let mut target = (GroupId::FIRST, 0);
    for (place, number) in record.numbers().enumerate() {
        let home = record.own.iter().nth(place);
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
            let vcpu = group.scheduler.create_vcpu(vm)?;
            group.enrol(access.directory(), vcpu, number);
            let (parts, _) = group.scheduler.part(vm);
            let of = u32::from(record.vcpus) * ACTIVE_WEIGHT;
            group.scheduler.set_part(vm, (parts + ACTIVE_WEIGHT, of));
            Some(())
        };
        // There are places enough in all groups together.
        if access.with(group, place).is_none() {
            target.1 = 0;
            let other = access
                .groups()
                .find(|&other| access.with(other, place).is_some());
            other.ok_or(ConfigError::TooManyVcpus)?;
        }
        ledger.load[group.index()] += u64::from(record.share) * 64 / u64::from(record.vcpus);
    }
    Ok(())
}

/// Sets the allocation of `vm` in all groups, and migrates vCPUs to where they may run.
fn revise(access: &impl Access, vm: VmId, record: &VmRecord, now: Ticks) -> Kicks {
    let home = |number: VcpuNumber| -> Option<HartId> {
        record
            .own
            .iter()
            .nth(usize::from(number.get().checked_sub(record.first)?))
    };
    let mut kicks = Kicks::NONE;
    for group in access.groups() {
        let kicked = access.with(group, |group| {
            let names = &group.names;
            let kicked = group
                .scheduler
                .set_terms(vm, record.terms(), |vcpu| names.number(vcpu).and_then(home));
            let revised = group.scheduler.revise();
            group.note_allocations();
            kicked.and(revised)
        });
        kicks = kicks.and(kicked);
    }
    for group in access.groups() {
        kicks = kicks.and(migration::migrate_displaced(access, group, now));
    }
    kicks
}

/// Changes the allocation of a VM, as [`crate::Scheduler::set_allocation`] does. A vCPU with a dedicated hart in another group is migrated once it
/// has left its hart.
///
/// # Errors
/// An allocation that cannot be had; nothing has changed then.
pub fn set_allocation(
    ledger: &mut Ledger,
    access: &impl Access,
    (vm, to): (VmId, Allocation),
    now: Ticks,
) -> Result<Kicks, ConfigError> {
    let mut record = ledger.vms[vm.index()].ok_or(ConfigError::NoSuchVm)?;
    record.own = ledger.check(Some(vm), record.vcpus, to)?;
    if let Allocation::Shared { share } = to {
        record.share = share;
    }
    let kicks = match access.count() {
        1 => access.with(GroupId::FIRST, |group| {
            let kicks = group.scheduler.set_allocation(vm, to)?;
            group.note_allocations();
            Ok(kicks)
        })?,
        _ => revise(access, vm, &record, now),
    };
    ledger.vms[vm.index()] = Some(record);
    Ok(kicks)
}

/// Changes the share of a VM.
///
/// # Errors
/// `NoSuchVm`, or `Share` if it is out of its range.
pub fn set_share(
    ledger: &mut Ledger,
    access: &impl Access,
    vm: VmId,
    share: u32,
) -> Result<(), ConfigError> {
    let record = ledger.vms[vm.index()]
        .as_mut()
        .ok_or(ConfigError::NoSuchVm)?;
    for group in access.groups() {
        access.with(group, |group| group.scheduler.set_share(vm, share))?;
    }
    record.share = share;
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

/// Configuration in force.
pub fn config(access: &impl Access) -> Config {
    access.with(GroupId::FIRST, |group| *group.scheduler.config())
}
