//! What a system asks of the board: harts, memory, slots and disks, each claimed once.

pub mod slices;
mod switches;

use super::{BOARD_SLOTS, Bytes, Disk, Document, FileName, Located, Origin, Problem, System, Vm};
use crate::memory::{free_memory, place};
use abi::system::{
    Allocation, HartSet, Io, MAX_VCPUS, MAX_VCPUS_OF_A_SCHEDULER, Migration, Placement, Queue,
    SHADOW_BYTES, Scheduling, Translations, VmTranslation,
};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that harts, memory and slots suffice and are claimed once.
///
/// `complete` tells whether every VM could be read; sums over VMs make no sense otherwise.
pub fn resources(document: &Document, system: &System, complete: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    harts(document, system, complete, &mut problems);
    if complete {
        memory(document, system, &mut problems);
        vcpus(document, system, &mut problems);
    }
    scheduling(document, system, &mut problems);
    simulated(document, system, &mut problems);
    paged(document, system, &mut problems);
    balloons(document, system, &mut problems);
    slots(document, system, &mut problems);
    disks(document, system, &mut problems);
    slices::check(document, system, &mut problems);
    switches::check(document, system, &mut problems);
    problems
}

/// A device of the computer's finds no memory whose pages lie anywhere and come when the guest touches them.
fn paged(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let is_paged = |vm: &&Vm| vm.placement.value == Placement::Paged;
    for vm in system
        .vms
        .iter()
        .filter(is_paged)
        .filter(|vm| vm.drives_devices())
    {
        let path = format!("vm.{}.placement", vm.name);
        let message = "the VM drives a device of the computer itself, which does not find memory in single pages";
        let remedy = "use io = \"general\" for all of its devices, or placement = \"resident\"";
        problems.push(
            Problem::new(document, &vm.placement.origin, path, message, remedy)
                .with_value(vm.placement.value.name()),
        );
    }
}

/// A guest gives pages back that come when they are touched, and no others.
fn balloons(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        let Some(origin) = &vm.balloon else { continue };
        if vm.placement.value == Placement::Paged {
            continue;
        }
        let key = format!("vm.{}.balloon", vm.name);
        let message = "the VM's memory lies in one piece, of which no page goes";
        let remedy = "use placement = \"paged\", or take the balloon away";
        problems.push(Problem::new(document, origin, key, message, remedy).with_value("true"));
    }
}

/// Terminals have more queues than a simulated device.
fn simulated(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        if vm.io.value == Io::Direct || vm.terminals.is_none() {
            continue;
        }
        let key = format!("vm.{}.io", vm.name);
        let message = "the VM has terminals, which are not simulated";
        let remedy = "use io = \"direct\", or leave away the terminals";
        problems.push(
            Problem::new(document, &vm.io.origin, key, message, remedy)
                .with_value(vm.io.value.name()),
        );
    }
}

/// All VMs together have no more vCPUs than the hypervisor keeps, and than its schedulers serve.
fn vcpus(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let schedulers = match system.queue {
        Queue::Single => 1,
        Queue::Sharded => system.harts.value as usize,
    };
    let most = MAX_VCPUS.min(schedulers.saturating_mul(MAX_VCPUS_OF_A_SCHEDULER));
    let mut many = 0;
    for vm in &system.vms {
        many += vm.vcpus.value as usize;
        if many > most {
            let origin = &vm.vcpus.origin;
            let key = format!("vm.{}.vcpus", vm.name);
            let message = format!("the VMs up to this one have {many} vCPUs together");
            let remedy = match system.queue {
                Queue::Single if schedulers < system.harts.value as usize => format!(
                    "give them {most} at most, or use queue = \"{}\"",
                    Queue::Sharded
                ),
                _ => format!("give them {most} at most"),
            };
            problems.push(
                Problem::new(document, origin, key, message, remedy)
                    .with_value(document.source(origin)),
            );
            return;
        }
    }
}

fn harts(document: &Document, system: &System, complete: bool, problems: &mut Vec<Problem>) {
    let count = system.harts.value;
    let mut taken = HartSet::EMPTY;
    let mut shared = false;
    for vm in &system.vms {
        let Allocation::Dedicated { harts } = vm.allocation.value else {
            shared = true;
            continue;
        };
        let mut report = |message: String, remedy: String| {
            let key = format!("vm.{}.dedicated-harts", vm.name);
            let origin = &vm.allocation.origin;
            problems.push(
                Problem::new(document, origin, key, message, remedy)
                    .with_value(document.source(origin)),
            );
        };
        for hart in harts.iter().filter(|hart| hart.0 >= count) {
            let last = count - 1;
            report(
                format!("hart {hart} does not exist: the system has {count} harts"),
                format!("use harts 0 to {last}, or raise harts"),
            );
        }
        if harts.len() != vm.vcpus.value as usize {
            report(
                format!("{} harts for {} vCPUs", harts.len(), vm.vcpus.value),
                String::from("give the VM as many dedicated harts as it has vCPUs"),
            );
        }
        for hart in harts.intersection(taken).iter() {
            report(
                format!("hart {hart} is dedicated to another VM"),
                String::from("dedicate each hart to one VM"),
            );
        }
        taken = taken.union(harts);
    }
    let left = (0..count)
        .filter(|hart| !taken.contains(abi::system::HartId(*hart)))
        .count();
    if complete {
        migration(document, system, left, problems);
        translations(document, system, left, problems);
    }
    if complete && shared && left == 0 {
        problems.push(
            Problem::new(
                document,
                &system.harts.origin,
                "harts",
                "every hart is dedicated, and there are VMs that share",
                "raise harts, or dedicate fewer",
            )
            .with_value(count.to_string()),
        );
    }
}

/// Whether the vCPUs of a VM may go to other harts, where there are any that are shared.
fn floats(system: &System, vm: &Vm) -> bool {
    let own = vm.scheduling.as_ref().map(|scheduling| scheduling.value);
    matches!(vm.allocation.value, Allocation::Shared { .. })
        && own.unwrap_or(system.scheduling) == Scheduling::Floating
}

/// Whether vCPUs that are to move at every dispatch have two harts, of the `left` that are shared, to move between.
fn migration(document: &Document, system: &System, left: usize, problems: &mut Vec<Problem>) {
    let floating =
        system.scheduling == Scheduling::Floating && system.vms.iter().any(|vm| floats(system, vm));
    if system.migration.value != Migration::Always || left > 1 && floating {
        return;
    }
    let origin = &system.migration.origin;
    let message = match left > 1 {
        true => String::from("scheduling is fixed, so that no vCPU can go to another hart"),
        false => format!("{left} of the harts is shared, so that no vCPU can go to another"),
    };
    let remedy = "share two harts at least, or leave migration away: always is for tests";
    let value = system.migration.value.name();
    problems.push(Problem::new(document, origin, "migration", message, remedy).with_value(value));
}

/// Whether translations that are never dropped belong to vCPUs that never go to another hart.
fn translations(document: &Document, system: &System, left: usize, problems: &mut Vec<Problem>) {
    if system.translations.value != Translations::Keep || left < 2 {
        return;
    }
    let value = system.translations.value.name();
    if let Some(vm) = system.vms.iter().find(|vm| floats(system, vm)) {
        let (origin, value) = match &vm.scheduling {
            Some(own) => (&own.origin, own.value.name()),
            None => (&system.translations.origin, value),
        };
        let key = match vm.scheduling {
            Some(_) => format!("vm.{}.scheduling", vm.name),
            None => String::from("translations"),
        };
        let message =
            "vCPUs go to other harts, where what they left behind would be used after a fence";
        let remedy =
            "say scheduling = \"fixed\", share one hart alone, or choose one-shot or last-host";
        problems.push(Problem::new(document, origin, key, message, remedy).with_value(value));
    }
}

/// A VM that has harts of its own is not scheduled on shared ones.
fn scheduling(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        let Some(own) = &vm.scheduling else { continue };
        if matches!(vm.allocation.value, Allocation::Shared { .. }) {
            continue;
        }
        let key = format!("vm.{}.scheduling", vm.name);
        let message = "the VM has harts of its own, one for each vCPU";
        let remedy = "leave scheduling away, or give the VM a share";
        problems.push(
            Problem::new(document, &own.origin, key, message, remedy).with_value(own.value.name()),
        );
    }
}

fn memory(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let mut sizes: Vec<Bytes> = system.vms.iter().map(|vm| vm.memory.value).collect();
    let tables = system
        .vms
        .iter()
        .filter(|vm| vm.translation.value == VmTranslation::Shadow);
    sizes.extend(tables.map(|vm| Bytes(u64::from(vm.vcpus.value) * SHADOW_BYTES)));
    let free = free_memory(system.memory.value, image_size(system));
    let Err(size) = place(free.to_vec(), &sizes) else {
        return;
    };
    let origin = &system.memory.origin;
    let wanted: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(size.0));
    let message = format!(
        "the VMs' {} do not fit: there is no piece left for {size}, because firmware, hypervisor and \
         system image take some and divide the rest",
        Bytes(wanted)
    );
    problems.push(
        Problem::new(
            document,
            origin,
            "memory",
            message,
            "raise memory, or give the VMs less",
        )
        .with_value(document.source(origin)),
    );
}

/// About how large the system image will be. What is yet to be built is guessed.
fn image_size(system: &System) -> u64 {
    const GUESS: u64 = 32 << 20;
    let files = system
        .vms
        .iter()
        .flat_map(|vm| std::iter::once(&vm.kernel).chain(&vm.initrd));
    let files: BTreeSet<&FileName> = files.map(|file| &file.value).collect();
    let size = |file: &&FileName| match file {
        FileName::Built(_) => GUESS,
        FileName::Path(path) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
    };
    files.iter().map(size).sum()
}

/// Number of slots that a VM's devices take.
pub fn devices(vm: &Vm) -> usize {
    vm.disks.len() + vm.network.len() + usize::from(vm.rng) + usize::from(vm.terminals.is_some())
}

fn slots(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let mut taken: BTreeMap<u8, String> = BTreeMap::new();
    for (key, Disk { slot, .. }) in system.all_disks() {
        let Some(Located { value, origin }) = slot else {
            continue;
        };
        let Some(owner) = taken.insert(*value, key.clone()) else {
            continue;
        };
        let message = format!("{owner} has claimed slot {value} already");
        let remedy = "use another slot, or leave slot out and one is found";
        problems.push(
            Problem::new(document, origin, format!("{key}.slot"), message, remedy)
                .with_value(value.to_string()),
        );
    }
    let own: usize = system.vms.iter().map(devices).sum();
    let wanted = own + system.disks.len() + system.uplinks().count();
    if wanted > BOARD_SLOTS {
        problems.push(Problem::new(
            document,
            system
                .vms
                .last()
                .map_or(&Origin::File(0..0), |vm| &vm.origin),
            "vm",
            format!("the VMs and what they share have {wanted} devices, and the board has {BOARD_SLOTS} slots"),
            "take away disks, network cards, sources of random numbers or terminals",
        ));
    }
}

/// A disk that keeps what is written can be in one VM only, and nobody writes to what the cache holds.
fn disks(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let all: Vec<(String, Disk)> = (system.all_disks())
        .map(|(key, disk)| (key, disk.clone()))
        .collect();
    for (position, (key, disk)) in all.iter().enumerate() {
        let origin = &disk.file.origin;
        let mut report = |message: String, remedy: &str| {
            problems.push(
                Problem::new(document, origin, format!("{key}.file"), message, remedy)
                    .with_value(document.source(origin)),
            );
        };
        let same = all[..position]
            .iter()
            .find(|(_, other)| other.file.value == disk.file.value);
        if let Some((other_key, other)) = same
            && (disk.keep || other.keep)
        {
            report(
                format!("{other_key} has the same image, and one of them keeps what is written"),
                "give each its own copy of the image, or take keep away from both",
            );
        }
        if disk.keep && matches!(disk.file.value, FileName::Built(_)) {
            report(
                String::from("an image of the cache cannot keep what is written"),
                "copy it to a file of your own and name that",
            );
        }
    }
}
