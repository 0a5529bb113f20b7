//! QEMU as a computer.

use super::board;
use super::error::ComputerError;
use super::interface::{Computer, End, Piece, Setup};
use super::process::Process;
use crate::qemu::{self, Boot, QemuError, Variant};
use abi::keys;
use machine::device::virtio::FileDisk;
use machine::front::firmware;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use tempfile::TempDir;

/// QEMU, running, the folder with what it boots, and the locks of its disks: QEMU's own are of another kind than the
/// machine's, so that neither would notice the other.
#[derive(Debug)]
struct Emulator {
    process: Process,
    _folder: TempDir,
    _disks: Vec<FileDisk>,
}

/// Starts QEMU.
pub fn start(
    setup: &Setup<'_>,
    variant: &Variant,
    output: Sender<Piece>,
) -> Result<Box<dyn Computer>, ComputerError> {
    let host = |what| move |error| ComputerError::Host(what, error);
    qemu::check()?;
    let guest_files = setup.system.get(keys::GUEST_INTERRUPT_FILES);
    if let Some(files) = guest_files.filter(|files| *files > qemu::GUEST_FILES) {
        return Err(QemuError::GuestFiles(files).into());
    }
    if let Some(vm) = setup.system.vms.iter().find(|vm| vm.terminals.is_some()) {
        return Err(QemuError::Terminals(vm.name.to_string()).into());
    }
    board::read_firmware()?;
    let firmware = firmware::find()?;
    let disks = board::lock_disks(setup.system, setup.cache)?;
    let folder = tempfile::tempdir().map_err(host("a folder for this run"))?;
    let image = folder.path().join("system.image");
    std::fs::write(&image, setup.image).map_err(host("the system image"))?;
    let boot = Boot {
        firmware: &firmware,
        hypervisor: setup.hypervisor,
        image: &image,
    };
    let mut arguments = qemu::arguments(setup.system, setup.slots, boot, setup.cache);
    variant.add_to(&mut arguments);
    let (bytes, console) = channel::<Vec<u8>>();
    let begun = Instant::now();
    std::thread::spawn(move || {
        for bytes in console {
            let at = begun.elapsed();
            if output.send(Piece { bytes, at }).is_err() {
                return;
            }
        }
    });
    let process = Process::start(&arguments, bytes).map_err(QemuError::Start)?;
    Ok(Box::new(Emulator {
        process,
        _folder: folder,
        _disks: disks,
    }))
}

impl Computer for Emulator {
    fn send(&mut self, keys: &[u8]) {
        self.process.send(keys);
    }

    fn end(self: Box<Self>, kill: bool) -> std::io::Result<End> {
        let (status, errors) = self.process.end(kill)?;
        let failed = !status.success() && !kill;
        let failure = failed.then(|| format!("QEMU ended with {status}: {}", errors.trim()));
        Ok(End {
            failure,
            ..End::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::device::virtio::{Access, DiskError};
    use system::cache::Cache;
    use system::{Document, System};

    #[test]
    fn kept_disk_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept.raw");
        std::fs::write(&kept, vec![0; 4096]).unwrap();
        let text = "harts = 1\nmemory = \"2 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"image:debian/kernel\"\ndisks = [{ file = \"kept.raw\", persistent = true }]\n";
        let file = folder.path().join("a.toml");
        let document = Document::new(&file, String::from(text), &[]).unwrap();
        let system = System::read(&document).unwrap();
        let cache = Cache::new(folder.path());
        // What a run on QEMU holds keeps the machine out,
        let on_qemu = board::lock_disks(&system, &cache).unwrap();
        let machine = FileDisk::open(&kept, Access::Write);
        assert!(
            matches!(machine, Err(DiskError::InUse { .. })),
            "{machine:?}"
        );
        assert!(FileDisk::open(&kept, Access::Read).is_err());
        drop(on_qemu);
        // and the other way.
        let on_machine = FileDisk::open(&kept, Access::Write).unwrap();
        let refused = board::lock_disks(&system, &cache).unwrap_err().to_string();
        assert!(
            refused.contains("vm.a.disks[0]") && refused.contains("in use"),
            "{refused}"
        );
        drop(on_machine);
        assert!(board::lock_disks(&system, &cache).is_ok());
    }
}
