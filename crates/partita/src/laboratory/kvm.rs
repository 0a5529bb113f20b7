//! A system under KVM on the machine: what Partita is measured beside.
//!
//! The host is Debian's kernel with its own kvm module, each VM one of Debian's own QEMU, on the same machine, from the
//! same kernels, initial RAM disks, command lines and disks, and with the same users at the same terminals.

use super::native::Native;
use crate::bench::{kvm_host, kvm_initrd as initrd};
use crate::cache::Cache;
use crate::computer::headless::{Limits, Run};
use crate::computer::{Chosen, ComputerError, Setup};
use crate::image::slots::{Assignment, Device};
use crate::image::{archive, locate};
use crate::images::{ImagesError, Progress};
use crate::system::{System, Vm};
use machine::board::map;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The host's first process.
const INIT: &str = include_str!("../../../../guests/kvm-system");
/// The host's kernel, among the built files.
const KERNEL: &str = "debian/kernel";
/// What the host says if something of its own fails.
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
    /// The initial RAM disk.
    #[error(transparent)]
    Archive(#[from] archive::TooLarge),
    /// What QEMU would have to be told otherwise.
    #[error("vm.{vm}: {what} cannot be had with --kvm; {remedy}")]
    NotThere {
        /// The VM.
        vm: String,
        /// What.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        error: std::io::Error,
    },
}

/// The files that the host boots from, by what they are.
pub(super) fn host_files(cache: &Cache) -> [(&'static str, PathBuf); 2] {
    [
        ("kvm.kernel", cache.folder().join(KERNEL)),
        ("kvm.initrd", initrd(cache)),
    ]
}

/// Runs every VM of a system under KVM. Every line of the console goes to `show`; a VM's lines begin with its name in
/// brackets, as under Partita.
///
/// # Errors
/// It cannot be started.
pub fn under_kvm(
    system: &System,
    cache: &Cache,
    chosen: &Chosen,
    limit: Option<Duration>,
    show: &mut dyn FnMut(&str),
) -> Result<Native, KvmError> {
    let read = |path: PathBuf| std::fs::read(&path).map_err(|error| KvmError::File { path, error });
    let base = kvm_host(cache, &Progress::new())?;
    let slots = Assignment::of(system);
    let mut guests = archive::Writer::new();
    guests.file("init", 0o755, INIT.as_bytes())?;
    guests.folder("guests")?;
    for (index, vm) in system.vms.iter().enumerate() {
        let folder = format!("guests/{}", vm.name);
        guests.folder(&folder)?;
        let kernel = read(locate(&vm.kernel.value, cache))?;
        guests.file(&format!("{folder}/kernel"), 0o644, &kernel)?;
        let initrd = vm.initrd.as_ref().map(|file| locate(&file.value, cache));
        let initrd = initrd.map(read).transpose()?.unwrap_or_default();
        guests.file(&format!("{folder}/initrd"), 0o644, &initrd)?;
        let line = vm.command_line.as_bytes();
        guests.file(&format!("{folder}/command-line"), 0o644, line)?;
        let description = describe(vm, slots.vm(index))?;
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
    let mut run = Run::boot(&setup, &chosen)?;
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

/// What the host is told of a VM (guests/kvm-system).
fn describe(vm: &Vm, devices: &[(abi::system::Slot, Device)]) -> Result<String, KvmError> {
    let mebibytes = vm.memory.value.0 >> 20;
    let mut text = format!("size {} {mebibytes}\n", vm.vcpus.value);
    for (slot, device) in devices {
        let address = map::VIRTIO.base + u64::from(slot.0) * map::VIRTIO_STRIDE;
        // Writing to a String does not fail.
        let _ = match device {
            Device::Disk(_) => writeln!(text, "disk {address:x}"),
            Device::Terminals => writeln!(text, "terminals {address:x}"),
            Device::Rng => writeln!(text, "rng"),
            Device::Card(_) => {
                return Err(KvmError::NotThere {
                    vm: vm.name.to_string(),
                    what: "a network card",
                    remedy: "leave network out",
                });
            }
        };
    }
    Ok(text)
}
