//! The files that a board boots from.

use super::super::failure::{Failure, at};
use super::super::input::{self, HypervisorArgument, SystemArguments};
use super::super::output;
use runner::board;
use std::path::Path;
use system::Disk;
use system::cache::Cache;
use system::image::{self, slots::Assignment};

pub(super) fn execute(
    arguments: &SystemArguments,
    folder: &Path,
    disk: Option<&Path>,
    hypervisor: &HypervisorArgument,
) -> Result<(), Failure> {
    output::check_folder(folder)?;
    let elf = hypervisor.path_for_board()?;
    let system = arguments.read_for(&elf)?;
    let cache = Cache::made()?;
    input::ensure_images(&system, &cache)?;
    let slots = Assignment::of(&system);
    let archive = image::compose(&system, &slots, &cache, None)
        .map_err(|error| Failure::Run(error.into()))?;
    let bytes = std::fs::read(&elf).map_err(at(&elf))?;
    let kernel = board::kernel_image(&bytes).map_err(|error| Failure::File {
        path: elf.clone(),
        error: std::io::Error::other(error),
    })?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(at(parent))?;
        output::write(&path, bytes)
    };
    let menu = board::menu();
    let files: [board::File<'_>; 4] = [
        (board::KERNEL, &kernel),
        (board::SYSTEM, &archive),
        (board::MENU, menu.as_bytes()),
        (board::PROGRAM, &kernel),
    ];
    for (name, bytes) in files {
        write(name, bytes)?;
    }
    if let Some(disk) = disk {
        let bytes = board::disk(&files).map_err(at(disk))?;
        output::write(disk, &bytes)?;
    }
    let disks = system.vms.iter().enumerate().flat_map(|(index, vm)| {
        let disks = slots.vm(index).iter();
        disks.map(move |(slot, device)| (vm, slot, device))
    });
    output::say_line(format_args!(
        "{folder}/{kernel}   the hypervisor, a kernel image for booti: {size} KiB\n\
         {folder}/{system}   the system image, its initial RAM disk: {archive} KiB\n\
         {folder}/{menu}   tells U-Boot of both\n\
         {folder}/{program}   the hypervisor once more, where EFI looks for it\n\
         Put them at these paths on a file system that the board's firmware reads: U-Boot needs the first three, EFI \
         the second and the last, on a FAT partition.",
        folder = folder.display(),
        kernel = board::KERNEL,
        system = board::SYSTEM,
        menu = board::MENU,
        size = kernel.len() >> 10,
        archive = archive.len() >> 10,
        program = board::PROGRAM,
    ));
    for (shared, slot) in system.disks.iter().zip(slots.shared()) {
        let what = disk_of(&shared.disk, &cache);
        let name = &shared.name;
        output::say_line(format_args!(
            "disk.{name} expects {what} in virtio-mmio slot {slot}"
        ));
    }
    for ((_, switch), slot) in system.uplinks().zip(slots.uplinks()) {
        let name = &switch.name;
        output::say_line(format_args!(
            "switch.{name} expects a network card in virtio-mmio slot {slot}"
        ));
    }
    for (vm, slot, device) in disks {
        let what = match device {
            image::slots::Device::Disk(number) => match vm.disks.get(*number) {
                Some(disk) => disk_of(disk, &cache),
                None => continue,
            },
            image::slots::Device::Card(_) => String::from("a network card"),
            image::slots::Device::Rng => String::from("a source of random numbers"),
            image::slots::Device::Terminals => String::from("a console device"),
        };
        output::say_line(format_args!(
            "{} expects {what} in virtio-mmio slot {slot}",
            vm.name
        ));
    }
    Ok(())
}

/// A disk as the board's owner is told of it.
fn disk_of(disk: &Disk, cache: &Cache) -> String {
    format!("a disk with {}", disk.path(cache).display())
}
