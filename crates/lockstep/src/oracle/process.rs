//! Another computer as a process of the host.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::error::OracleError;

/// Longest run, in seconds.
const PATIENCE: u64 = 120;

/// MiB of RAM for an image of `size` bytes.
pub(super) const fn memory(size: usize) -> u64 {
    // The device tree lies near the end of RAM.
    ((size as u64 >> 20) + 8).next_multiple_of(4)
}

/// Tests whether a program can be started.
pub(super) fn is_installed(name: &str) -> bool {
    Command::new(name)
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Runs a program, silent, to its end.
pub(super) fn run(name: &'static str, command: &mut Command) -> Result<(), OracleError> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| OracleError::Start {
            program: name,
            error,
        })?;
    wait(name, &mut child)
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
fn wait(program: &'static str, child: &mut Child) -> Result<(), OracleError> {
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
