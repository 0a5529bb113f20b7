//! QEMU as a computer.

use super::{Computer, ComputerError, End, Piece, Process, Setup, firmware};
use crate::qemu::{self, Boot, QemuError};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use tempfile::TempDir;

/// QEMU, running, and the folder with what it boots.
#[derive(Debug)]
struct Emulator {
    process: Process,
    _folder: TempDir,
}

/// Starts QEMU.
pub fn start(setup: &Setup<'_>, output: Sender<Piece>) -> Result<Box<dyn Computer>, ComputerError> {
    let host = |what| move |error| ComputerError::Host(what, error);
    qemu::check()?;
    let guest_files = setup.system.guest_files;
    if let Some(files) = guest_files.filter(|files| *files > qemu::GUEST_FILES) {
        return Err(QemuError::GuestFiles(files).into());
    }
    if let Some(vm) = setup.system.vms.iter().find(|vm| vm.terminals.is_some()) {
        return Err(QemuError::Terminals(vm.name.to_string()).into());
    }
    let firmware = firmware::find()?;
    let folder = tempfile::tempdir().map_err(host("a folder for this run"))?;
    let image = folder.path().join("system.image");
    std::fs::write(&image, setup.image).map_err(host("the system image"))?;
    let boot = Boot {
        firmware: &firmware,
        hypervisor: setup.hypervisor,
        image: &image,
    };
    let arguments = qemu::arguments(setup.system, setup.slots, boot, setup.cache);
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
