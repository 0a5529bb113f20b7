//! Slices of shared disks: each lies on a disk of the system, and no VM writes another VM's slice.

use crate::cache::Cache;
use crate::{Document, Origin, Problem, SharedDisk, Slice, System, Vm};
use abi::system::{MAX_SHARING, MAX_SLICES, SECTOR, SliceDescription};

/// A slice with whose it is and the key of its table.
struct Known<'a> {
    key: String,
    slice: &'a Slice,
    description: SliceDescription,
}

/// Description of a slice for the hypervisor, if the system has the disk.
pub fn describe(system: &System, slice: &Slice) -> Option<SliceDescription> {
    let named = |disk: &SharedDisk| disk.name == slice.of.value;
    let place = system.disks.iter().position(named);
    let place = place.or_else(|| {
        let mut served = system.served.iter();
        // They are numbered behind the board's.
        let place = served.position(|disk| disk.name == slice.of.value)?;
        Some(system.disks.len() + place)
    })?;
    Some(SliceDescription {
        disk: u32::try_from(place).ok()?,
        first: slice.offset.value.0 / SECTOR,
        sectors: (slice.size.as_ref()).map_or(0, |size| size.value.0 / SECTOR),
        read_only: slice.read_only,
    })
}

/// Checks all slices of a system.
pub(super) fn check(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let cache = Cache::from_environment().ok();
    let mut known: Vec<Known<'_>> = Vec::new();
    for vm in &system.vms {
        number(document, vm, problems);
        for (index, slice) in vm.slices.iter().enumerate() {
            let key = format!("vm.{}.disks[{}]", vm.name, vm.disks.len() + index);
            let mut report = |origin: &Origin, part: &str, message: String, remedy: String| {
                let key = format!("{key}.{part}");
                let problem = Problem::new(document, origin, key, message, remedy);
                problems.push(problem.with_value(document.source(origin)));
            };
            let Some(description) = describe(system, slice) else {
                let own = system.disks.iter().map(|disk| disk.name.as_str());
                let served = system.served.iter().map(|disk| disk.name.as_str());
                let names: Vec<&str> = own.chain(served).collect();
                let remedy = match names[..] {
                    [] => format!("describe it: [disk.{}] with its file", slice.of.value),
                    _ => format!(
                        "name one of {}, or describe it as [disk.NAME]",
                        names.join(", ")
                    ),
                };
                let message = format!("no disk is called {:?}", slice.of.value);
                report(&slice.of.origin, "slice-of", message, remedy);
                continue;
            };
            let place = description.disk as usize;
            let size = match system.disks.get(place) {
                Some(disk) => cache.as_ref().and_then(|cache| {
                    // The size of a disk that is yet to be converted is not known.
                    let path = disk.disk.path(cache);
                    Some(std::fs::metadata(path).ok()?.len())
                }),
                None => {
                    let served = system.served.get(place - system.disks.len());
                    served.map(|served| served.size.value.0)
                }
            };
            let end = description.end();
            if let Some(size) = size.map(|size| size / SECTOR)
                && (description.first >= size || description.sectors != 0 && end > size)
            {
                let message = format!("the disk has {} bytes", size * SECTOR);
                let remedy =
                    String::from("let the slice end with the disk, or make the image larger");
                let origin = slice.size.as_ref().unwrap_or(&slice.offset);
                report(&origin.origin, "size", message, remedy);
            }
            let collides = |other: &&Known<'_>| other.description.collides_with(&description);
            if let Some(other) = known.iter().find(collides) {
                let message = format!("{} has a part of it, and one of them writes", other.key);
                let remedy = format!(
                    "let it begin behind the other, which begins at {} and has {}, or say read-only = true for both",
                    other.slice.offset.value,
                    match &other.slice.size {
                        Some(size) => size.value.to_string(),
                        None => String::from("the rest of the disk"),
                    }
                );
                report(&slice.offset.origin, "offset", message, remedy);
            }
            known.push(Known {
                key,
                slice,
                description,
            });
        }
    }
    if known.len() > MAX_SHARING {
        let origin = &known[MAX_SHARING].slice.of.origin;
        let key = known[MAX_SHARING].key.clone();
        let message = format!("the VMs have {} slices", known.len());
        let remedy = format!("use {MAX_SHARING} at most");
        problems.push(Problem::new(document, origin, key, message, remedy));
    }
    unused(document, system, problems);
}

/// A VM has no more slices than the hypervisor keeps.
fn number(document: &Document, vm: &Vm, problems: &mut Vec<Problem>) {
    if let Some(slice) = vm.slices.get(MAX_SLICES) {
        let key = format!("vm.{}.disks", vm.name);
        let message = format!("the VM has {} slices", vm.slices.len());
        let remedy = format!("use {MAX_SLICES} at most");
        problems.push(Problem::new(
            document,
            &slice.of.origin,
            key,
            message,
            remedy,
        ));
    }
}

/// A disk without slices is a slip of the pen.
fn unused(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    let slices = system.vms.iter().flat_map(|vm| &vm.slices);
    let own = system.disks.iter().map(|disk| (&disk.name, &disk.origin));
    let served = system.served.iter().map(|disk| (&disk.name, &disk.origin));
    for (name, origin) in own.chain(served) {
        if !slices.clone().any(|slice| slice.of.value == *name) {
            let key = format!("disk.{name}");
            let message = "no VM has a slice of this disk";
            let remedy =
                format!("give one to a VM: disks = [{{ slice-of = {name:?}, size = \"1 GiB\" }}]");
            problems.push(Problem::new(document, origin, key, message, remedy));
        }
    }
}
