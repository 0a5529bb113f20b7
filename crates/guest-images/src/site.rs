//! The folder in which images are built: it goes with whoever builds, however that ends.

use crate::error::{ImagesError, at};
use crate::progress::Progress;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::fs::{self, File};
use std::path::Path;
use system::cache::Cache;
use tempfile::TempDir;

/// Beginning of its name.
const PREFIX: &str = "building-";

/// A folder for what is needed on the way, removed when it is dropped and when a signal ends the process.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    folder: TempDir,
    signals: Handle,
}

impl WorkFolder {
    /// Makes one in `root`, whose lock the caller has: what others have left there was left by those that were killed, and
    /// is removed.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new(root: &Path) -> Result<Self, ImagesError> {
        for entry in fs::read_dir(root).map_err(at(root))? {
            let entry = entry.map_err(at(root))?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(at(&path))?;
            }
        }
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(root)
            .map_err(at(root))?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(at(root))?;
        let handle = signals.handle();
        let path = folder.path().to_owned();
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // What cannot be removed now is removed by the next one.
                let _ = fs::remove_dir_all(&path);
                end_by(signal)
            }
        });
        Ok(Self {
            folder,
            signals: handle,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        self.signals.close();
    }
}

/// Waits, and says so, until no other process builds into the cache. None does while the file is kept open.
pub(crate) fn alone(cache: &Cache, progress: &Progress) -> Result<File, ImagesError> {
    let root = cache.folder();
    let path = root.join("lock");
    let lock = fs::create_dir_all(root).and_then(|()| File::create(&path));
    let lock = lock.map_err(|error| ImagesError::Cache {
        path: root.to_owned(),
        error,
    })?;
    if lock.try_lock().is_err() {
        progress.step("waiting for another partita that builds images");
        lock.lock().map_err(at(&path))?;
    }
    Ok(lock)
}

/// Ends this process as the signal does by default.
fn end_by(signal: i32) -> ! {
    // This fails for unknown signals alone.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Says to the test that it is the process that builds, and where.
    const BUILDS: &str = "PARTITA_TEST_BUILDS";

    #[test]
    fn ended_builders_leave_no_folder() {
        if let Some(root) = std::env::var_os(BUILDS) {
            let root = Path::new(&root);
            let work = WorkFolder::new(root).unwrap();
            fs::write(work.path().join("large"), "much").unwrap();
            fs::write(root.join("ready"), "").unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let left = || {
            let entries = fs::read_dir(root.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| name.to_string_lossy().starts_with(PREFIX))
                .count()
        };
        for (signal, remains) in [("-INT", 0), ("-TERM", 0), ("-KILL", 1)] {
            let mut builder = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "site::tests::ended_builders_leave_no_folder"])
                .env(BUILDS, root.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            while !root.path().join("ready").is_file() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            fs::remove_file(root.path().join("ready")).unwrap();
            let id = builder.id().to_string();
            assert!(
                Command::new("kill")
                    .args([signal, &id])
                    .status()
                    .unwrap()
                    .success()
            );
            assert!(!builder.wait().unwrap().success());
            assert_eq!(left(), remains, "after {signal}");
        }
        let next = WorkFolder::new(root.path()).unwrap();
        assert_eq!(left(), 1);
        drop(next);
        assert_eq!(left(), 0);
    }

    #[test]
    fn one_builds_while_others_wait() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path());
        let first = alone(&cache, &Progress::new()).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = alone(&cache, &Progress::new()).unwrap();
                tell.send(()).unwrap();
            });
            let early = told.recv_timeout(std::time::Duration::from_millis(50));
            assert!(early.is_err(), "two build at once");
            drop(first);
            told.recv().unwrap();
        });
    }
}
