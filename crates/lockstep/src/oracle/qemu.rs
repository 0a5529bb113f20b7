//! QEMU's virt board, with its RAM in a file that is read when it has ended.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::OracleError;
use crate::{elf, layout};

const NAME: &str = "qemu-system-riscv64";
/// What it may take, in seconds.
const PATIENCE: u64 = 300;
/// The extensions of this machine, and none that it has not.
const CPU: &str = "rv64,h=on,sstc=on,svadu=on,svpbmt=on,svinval=on,zicond=on,zawrs=on,\
    zba=on,zbb=on,zbc=on,zbs=on,zbkb=on,zbkx=on,zfh=on,zicbom=on,zicboz=on,smstateen=on,\
    svnapot=off,zfa=off,zacas=off,v=off";

/// MiB of RAM for an image of `size` bytes.
pub(super) const fn memory(size: usize) -> u64 {
    // The device tree lies near the end of RAM.
    ((size as u64 >> 20) + 8).next_multiple_of(4)
}

/// Whether QEMU can be started.
pub(super) fn is_installed() -> bool {
    Command::new(NAME)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A folder for the files of a run, removed at its end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self, OracleError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lockstep-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| OracleError::File {
            path: path.clone(),
            error,
        })?;
        Ok(Self(path))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, OracleError> {
        let path = self.file(name);
        std::fs::write(&path, bytes).map_err(|error| OracleError::File {
            path: path.clone(),
            error,
        })?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, OracleError> {
    std::fs::read(path).map_err(|error| OracleError::File {
        path: path.to_owned(),
        error,
    })
}

/// Waits for a process, and ends it if it takes too long.
pub(super) fn wait(program: &'static str, child: &mut Child) -> Result<(), OracleError> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) => return Err(OracleError::Start { program, error }),
        }
        if begun.elapsed() > Duration::from_secs(PATIENCE) {
            // It may have ended by itself in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return Err(OracleError::Endless(program, PATIENCE));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn run(image: &[u8]) -> Result<Vec<u8>, OracleError> {
    let folder = Folder::new()?;
    let program = folder.write("programs.elf", &elf::write(image))?;
    let ram = folder.file("ram");
    let size = memory(image.len());
    let mut child = Command::new(NAME)
        .args(["-M", "virt,aia=aplic-imsic,aia-guests=7,memory-backend=ram"])
        .args(["-cpu", CPU])
        .arg("-object")
        .arg(format!(
            "memory-backend-file,id=ram,size={size}M,share=on,mem-path={}",
            ram.display()
        ))
        .args(["-m", &format!("{size}M"), "-display", "none"])
        .args(["-monitor", "none", "-serial", "none", "-bios"])
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| OracleError::Start {
            program: NAME,
            error,
        })?;
    wait(NAME, &mut child)?;
    let bytes = read(&ram)?;
    let start = (layout::SLOTS - layout::RAM) as usize;
    bytes
        .get(start..image.len())
        .map(<[u8]>::to_vec)
        .ok_or_else(|| OracleError::NoResult(NAME, "its RAM is too small".to_owned()))
}
