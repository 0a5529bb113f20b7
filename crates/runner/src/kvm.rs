//! A system under KVM on the machine: what Partita is measured beside.
//!
//! The host is Debian's kernel with its own kvm module, each VM one of Debian's own QEMU, on the same machine, from the
//! same kernels, initial RAM disks, command lines and disks, and with the same users at the same terminals.

use crate::checkpoint::Span;
use crate::checkpoint::{Boot, CheckpointFailure, make_of};
use crate::computer::{Chosen, ComputerError, Setup};
use crate::headless::{Limits, Run};
use crate::native::Native;
use abi::system::Allocation;
use guest_images::{ImagesError, Progress, kvm_host};
use machine::board::map;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::cache::Cache;
use system::image::archive;
use system::image::slots::{Assignment, Device};
use system::{System, Vm};

/// The host's first process.
const INIT: &str = include_str!("../../../guests/kvm-system");
/// The host's kernel, among the built files.
const KERNEL: &str = "debian/kernel";
/// Line of the host about a failure of its own.
const FAILED: &str = "partita-guest failed ";

/// Why a system cannot be started under KVM.
#[derive(Debug, thiserror::Error)]
pub enum KvmError {
    /// The host's files.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The computer.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointFailure),
    /// The initial RAM disk.
    #[error(transparent)]
    Archive(#[from] archive::TooLarge),
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
}

/// The files that the host boots from, by what they are.
pub fn host_files(cache: &Cache) -> [(&'static str, PathBuf); 2] {
    [
        ("kvm.kernel", cache.folder().join(KERNEL)),
        ("kvm.initrd", kvm_host::initrd(cache)),
    ]
}

/// Runs every VM of a system under KVM. Every line of the console goes to `show`; a VM's lines begin with its name in
/// brackets, as under Partita.
///
/// # Errors
/// The run cannot be started.
pub fn under_kvm(
    system: &System,
    cache: &Cache,
    chosen: &Chosen,
    limit: Option<Duration>,
    show: &mut dyn FnMut(&str),
) -> Result<Native, KvmError> {
    let mut run = boot_host(system, cache, chosen)?;
    let mut verdict = None;
    let limits = Limits::of(system, limit, run.machine.clock());
    let stop = run.follow(&limits, &mut |line| {
        if line.contains(FAILED) {
            verdict.get_or_insert_with(|| String::from(line));
        }
        show(line);
    });
    Ok(Native::of(run, stop, verdict, "host"))
}

/// Boots the host with KVM, in the functional mode, to where all guests say that they are up, and writes the checkpoint to `path`.
///
/// # Errors
/// [`KvmError`].
pub fn kvm_checkpoint(boot: &Boot<'_>, path: &Path) -> Result<(), KvmError> {
    let chosen = Chosen {
        fast: true,
        ..boot.chosen.clone()
    };
    let run = boot_host(boot.system, boot.cache, &chosen)?;
    Ok(make_of(run, boot, false, path)?)
}

/// Goes on from such a checkpoint, and counts a span.
///
/// # Errors
/// [`KvmError`].
pub fn kvm_span(
    boot: &Boot<'_>,
    path: &Path,
    span: &Span,
    show: &mut dyn FnMut(&str),
) -> Result<Native, KvmError> {
    Ok(Native::of_span(boot, boot.system, path, None, span, show)?)
}

/// Boots the host.
fn boot_host(system: &System, cache: &Cache, chosen: &Chosen) -> Result<Run, KvmError> {
    let read = |path: PathBuf| std::fs::read(&path).map_err(|error| KvmError::File { path, error });
    let base = kvm_host::ensure(cache, &Progress::new())?;
    let slots = Assignment::of(system);
    let mut guests = archive::Writer::new();
    guests.file("init", 0o755, INIT.as_bytes())?;
    guests.folder("guests")?;
    let mut networks = Vec::new();
    for (index, vm) in system.vms.iter().enumerate() {
        let folder = format!("guests/{}", vm.name);
        guests.folder(&folder)?;
        let path = vm.kernel.value.path(cache);
        let kernel =
            system::kernel::read(&path, vm.boot).map_err(|error| KvmError::File { path, error })?;
        guests.file(&format!("{folder}/kernel"), 0o644, &kernel)?;
        let initrd = vm.initrd.as_ref().map(|file| file.value.path(cache));
        let initrd = initrd.map(read).transpose()?.unwrap_or_default();
        guests.file(&format!("{folder}/initrd"), 0o644, &initrd)?;
        let line = vm.command_line.as_bytes();
        guests.file(&format!("{folder}/command-line"), 0o644, line)?;
        let mut description = describe(vm, index, slots.vm(index), &mut networks);
        description += &weight(system, vm);
        guests.file(&format!("{folder}/vm"), 0o644, description.as_bytes())?;
    }
    let image = [read(base)?, guests.finish()].concat();
    let kernel = cache.folder().join(KERNEL);
    let setup = Setup {
        system,
        slots: &slots,
        image: &image,
        // What is booted in the place of the hypervisor.
        hypervisor: &kernel,
        cache,
    };
    let chosen = Chosen {
        command_line: String::from("console=ttyS0 quiet"),
        ..chosen.clone()
    };
    Ok(Run::boot(&setup, &chosen)?)
}

/// Line of a VM's weight for the host, where VMs have different ones.
fn weight(system: &System, vm: &Vm) -> String {
    let share = |vm: &Vm| match vm.allocation.value {
        Allocation::Shared { share } => Some(share),
        Allocation::Dedicated { .. } => None,
    };
    let differ = system.vms.iter().any(|other| share(other) != share(vm));
    let share = share(vm).filter(|_| differ);
    share.map_or_else(String::new, |share| format!("share {share}\n"))
}

/// Description of a VM for the host, the one with this `index` (guests/kvm-system). `networks` are those of the VMs before it.
fn describe(
    vm: &Vm,
    index: usize,
    devices: &[(abi::system::Slot, Device)],
    networks: &mut Vec<String>,
) -> String {
    let mebibytes = vm.memory.value.0 >> 20;
    let mut text = format!("size {} {mebibytes}\n", vm.vcpus.value);
    for extension in vm.hidden.names() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "hide {extension}");
    }
    for (slot, device) in devices {
        let address = map::VIRTIO.base + u64::from(slot.0) * map::VIRTIO_STRIDE;
        // Writing to a String does not fail.
        let _ = match device {
            Device::Disk(_) => writeln!(text, "disk {address:x}"),
            Device::Terminals => writeln!(text, "terminals {address:x}"),
            Device::Rng => writeln!(text, "rng"),
            Device::Card(number) => {
                let Some(card) = vm.network.get(*number) else {
                    continue;
                };
                let name = &card.network.value;
                let known = networks.iter().position(|other| other == name);
                let network = known.unwrap_or_else(|| {
                    networks.push(name.clone());
                    networks.len() - 1
                });
                writeln!(text, "card {network} 52:54:00:00:{index:02x}:{number:02x}")
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::{Document, System};

    #[test]
    fn hidden_extensions_stay_hidden_under_kvm() {
        let text = "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 2\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"image:debian/kernel\"\nhide = [\"zawrs\"]\n";
        let document = Document::new(std::path::Path::new("a.toml"), String::from(text), &[]);
        let system = System::read(&document.unwrap()).unwrap();
        let slots = Assignment::of(&system);
        let described = describe(&system.vms[0], 0, slots.vm(0), &mut Vec::new());
        assert_eq!(described, "size 2 64\nhide zawrs\n");
    }

    #[test]
    fn different_shares_are_weights_under_kvm() {
        let vm = "vcpus = 1\nmemory = \"64 MiB\"\nkernel = \"image:debian/kernel\"\n";
        let weights = |shares: [u32; 2]| {
            let [a, b] = shares.map(|share| format!("{vm}share = {share}\n"));
            let text = format!("harts = 2\nmemory = \"1 GiB\"\n[vm.a]\n{a}[vm.b]\n{b}");
            let document = Document::new(std::path::Path::new("a.toml"), text, &[]).unwrap();
            let system = System::read(&document).unwrap();
            [0, 1].map(|index: usize| weight(&system, &system.vms[index]))
        };
        assert_eq!(weights([200, 100]), ["share 200\n", "share 100\n"]);
        assert_eq!(weights([50, 50]), ["", ""]);
    }

    #[test]
    fn kvm_cards_share_networks_with_own_addresses() {
        let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 1\nkernel = \"image:debian/kernel\"\n";
        let text = format!(
            "harts = 2\nmemory = \"1 GiB\"\n[vm.a]\n{vm}network = [\"lan\", \"wan\"]\n[vm.b]\n{vm}network = [\"wan\"]\n"
        );
        let document = Document::new(std::path::Path::new("a.toml"), text, &[]).unwrap();
        let system = System::read(&document).unwrap();
        let slots = Assignment::of(&system);
        let mut networks = Vec::new();
        let mut of =
            |index: usize| describe(&system.vms[index], index, slots.vm(index), &mut networks);
        assert_eq!(
            of(0),
            "size 1 64\ncard 0 52:54:00:00:00:00\ncard 1 52:54:00:00:00:01\n"
        );
        assert_eq!(of(1), "size 1 64\ncard 1 52:54:00:00:01:00\n");
    }
}
