//! Checks of what a system needs of the board: harts, memory, slots and disks, each claimed once.

mod served;
pub mod slices;
mod switches;
mod vectors;

use super::{BOARD_SLOTS, Bytes, Disk, Document, FileName, Located, Origin, Problem, System, Vm};
use crate::memory::{free_memory, place};
use abi::keys;
use abi::system::{
    Allocation, Confined, HartSet, Io, MAX_VCPUS, MAX_VCPUS_OF_A_SCHEDULER, Migration, Placement,
    RunQueue, SHADOW_BYTES, Scheduling, SpinMethod, TlbPurge, VmTranslation,
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
    mediated(document, system, &mut problems);
    paged(document, system, &mut problems);
    confined(document, system, &mut problems);
    balloons(document, system, &mut problems);
    slots(document, system, &mut problems);
    disks(document, system, &mut problems);
    slices::check(document, system, &mut problems);
    served::check(document, system, &mut problems);
    switches::check(document, system, &mut problems);
    vectors::check(document, system, &mut problems);
    problems
}

/// A device of the computer's finds no memory whose pages lie anywhere and come when the guest touches them.
fn paged(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let is_paged = |vm: &&Vm| vm.get(keys::PLACEMENT) == Placement::Paged;
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
            Problem::new(
                document,
                vm.origin_of(keys::PLACEMENT),
                path,
                message,
                remedy,
            )
            .with_value(vm.get(keys::PLACEMENT).name()),
        );
    }
}

/// No virtio device of the computer's own stands behind an IOMMU. Devices of a board are judged by the board's device tree.
fn confined(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let is_required = |vm: &&Vm| vm.get(keys::CONFINED) == Confined::Required;
    let driving = system.vms.iter().filter(is_required);
    for vm in driving.filter(|vm| vm.drives_devices()) {
        let origin = vm.origin_of(keys::CONFINED);
        let key = format!("vm.{}.confined", vm.name);
        let message = "the VM drives a device of the computer itself, which no IOMMU confines";
        let remedy = "use io = \"general\" for all of its devices, or leave confined away if its guest is trusted";
        let problem = Problem::new(document, origin, key, message, remedy);
        problems.push(problem.with_value(vm.get(keys::CONFINED).name()));
    }
}

/// A guest gives pages back that come when they are touched, and no others.
fn balloons(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        if !vm.get(keys::BALLOON) || vm.get(keys::PLACEMENT) == Placement::Paged {
            continue;
        }
        let origin = vm.origin_of(keys::BALLOON);
        let key = format!("vm.{}.balloon", vm.name);
        let message = "the VM's memory lies in one piece, of which no page goes";
        let remedy = "use placement = \"paged\", or take the balloon away";
        problems.push(Problem::new(document, origin, key, message, remedy).with_value("true"));
    }
}

/// Terminals have more queues than a mediated device.
fn mediated(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        if vm.get(keys::IO) == Io::Direct || vm.terminals.is_none() {
            continue;
        }
        let key = format!("vm.{}.io", vm.name);
        let message = "the VM has terminals, which the hypervisor does not mediate";
        let remedy = "use io = \"direct\", or leave away the terminals";
        problems.push(
            Problem::new(document, vm.origin_of(keys::IO), key, message, remedy)
                .with_value(vm.get(keys::IO).name()),
        );
    }
}

/// All VMs together have no more vCPUs than the hypervisor keeps, and than its schedulers serve.
fn vcpus(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let schedulers = match system.get(keys::RUN_QUEUE) {
        RunQueue::Global => 1,
        RunQueue::PerHart => system.harts.value as usize,
    };
    let most = MAX_VCPUS.min(schedulers.saturating_mul(MAX_VCPUS_OF_A_SCHEDULER));
    let mut many = 0;
    for vm in &system.vms {
        many += vm.vcpus.value as usize;
        if many > most {
            let origin = &vm.vcpus.origin;
            let key = format!("vm.{}.vcpus", vm.name);
            let message = format!("the VMs up to this one have {many} vCPUs together");
            let remedy = match system.get(keys::RUN_QUEUE) {
                RunQueue::Global if schedulers < system.harts.value as usize => format!(
                    "give them {most} at most, or use run-queue = \"{}\"",
                    RunQueue::PerHart
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
        gang(document, system, problems);
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

/// Returns true if the vCPUs of a VM may move between shared harts.
fn floats(system: &System, vm: &Vm) -> bool {
    let own = vm.settings.given(keys::SCHEDULING);
    matches!(vm.allocation.value, Allocation::Shared { .. })
        && own.unwrap_or_else(|| system.get(keys::SCHEDULING)) == Scheduling::Floating
}

/// Checks that vCPUs that move at every dispatch have at least two of the `left` shared harts, and one queue for them.
fn migration(document: &Document, system: &System, left: usize, problems: &mut Vec<Problem>) {
    let is_floating = system.get(keys::SCHEDULING) == Scheduling::Floating;
    let floating = is_floating && system.vms.iter().any(|vm| floats(system, vm));
    let value = system.get(keys::MIGRATION);
    let Some(origin) = system.settings.origin(keys::MIGRATION) else {
        return;
    };
    let per_hart = system.get(keys::RUN_QUEUE) == RunQueue::PerHart;
    if value != Migration::Always || left > 1 && floating && !per_hart {
        return;
    }
    let message = if left < 2 {
        format!("{left} of the harts is shared, so that no vCPU can go to another")
    } else if !floating {
        String::from("scheduling is pinned, so that no vCPU can go to another hart")
    } else {
        String::from("run-queue is per-hart, so that a hart dispatches the vCPUs of its own queue")
    };
    let remedy =
        "share at least two harts by one queue, or leave migration out: `always` is for tests";
    let key = "experiment.migration";
    problems.push(Problem::new(document, origin, key, message, remedy).with_value(value.name()));
}

/// Checks that gang scheduling has one scheduler, which knows what all harts run.
fn gang(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let value = system.get(keys::SPIN);
    let Some(origin) = system.settings.origin(keys::SPIN) else {
        return;
    };
    if value != SpinMethod::Gang || system.get(keys::RUN_QUEUE) != RunQueue::PerHart {
        return;
    }
    let message = "run-queue is per-hart, so that no scheduler knows when a VM's other vCPUs run";
    let remedy = format!("use run-queue = \"{}\"", RunQueue::Global);
    problems.push(Problem::new(document, origin, "spin", message, remedy).with_value(value.name()));
}

/// Checks that vCPUs whose translations are never purged never move to another hart.
fn translations(document: &Document, system: &System, left: usize, problems: &mut Vec<Problem>) {
    let rule = system.get(keys::TLB_PURGE);
    let Some(origin) = system.settings.origin(keys::TLB_PURGE) else {
        return;
    };
    if rule != TlbPurge::Keep || left < 2 {
        return;
    }
    if let Some(vm) = system.vms.iter().find(|vm| floats(system, vm)) {
        let own = vm.settings.origin(keys::SCHEDULING);
        let (key, origin, value) = match own {
            Some(own) => {
                let value = vm.get(keys::SCHEDULING).name();
                (format!("vm.{}.scheduling", vm.name), own, value)
            }
            None => (String::from("tlb-purge"), origin, rule.name()),
        };
        let message =
            "vCPUs go to other harts, whose TLB entries of them would be used after a fence";
        let remedy =
            "say scheduling = \"pinned\", share one hart alone, or choose one-shot or last-host";
        problems.push(Problem::new(document, origin, key, message, remedy).with_value(value));
    }
}

/// A VM that has harts of its own is not scheduled on shared ones.
fn scheduling(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        let own = vm.settings.given(keys::SCHEDULING);
        let own = own.zip(vm.settings.origin(keys::SCHEDULING));
        let Some((value, origin)) = own else { continue };
        if matches!(vm.allocation.value, Allocation::Shared { .. }) {
            continue;
        }
        let key = format!("vm.{}.scheduling", vm.name);
        let message = "the VM has harts of its own, one for each vCPU";
        let remedy = "leave scheduling away, or give the VM a share";
        problems
            .push(Problem::new(document, origin, key, message, remedy).with_value(value.name()));
    }
}

fn memory(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let mut sizes: Vec<Bytes> = system.vms.iter().map(|vm| vm.memory.value).collect();
    let tables = system
        .vms
        .iter()
        .filter(|vm| vm.get(keys::TRANSLATION) == VmTranslation::Shadow);
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
    vm.disks.len()
        + vm.network.len()
        + usize::from(vm.get(keys::RNG))
        + usize::from(vm.terminals.is_some())
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

/// A disk that keeps what is written can be in one VM only, and no VM writes to the cache's files.
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
            && (disk.get(keys::PERSISTENT) || other.get(keys::PERSISTENT))
        {
            report(
                format!("{other_key} has the same image, and one of them is persistent"),
                "give each its own copy of the image, or take persistent away from both",
            );
        }
        if disk.get(keys::PERSISTENT) && matches!(disk.file.value, FileName::Built(_)) {
            report(
                String::from("an image of the cache cannot be persistent"),
                "copy it to a file of your own and name that",
            );
        }
    }
}
