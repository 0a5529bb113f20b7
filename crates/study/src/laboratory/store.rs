//! The file that results are appended to: a line of JSON each, safe on the disk before the next run begins.
//!
//! The first line says what the file is. A run that is killed while it writes leaves a last line without an end,
//! which is dropped when the file is opened again; no other line is ever touched.

use super::{MadeBy, Outcome, Point};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::fingerprint::Fingerprint;

/// Version of the file's form: raised when a line's meaning changes.
const FORM: u32 = 2;
/// Oldest form that is read: its lines have the measures a second time.
const OLDEST_FORM: u32 = 1;
/// How often, and at which distance, a file that is in use is tried again.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// [`FORM`].
    partita_results: u32,
}

const HEAD: Head = Head {
    partita_results: FORM,
};

/// One finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// [`Point::identity`].
    pub id: Fingerprint,
    /// The point that was run.
    pub point: Point,
    /// Makers of the result.
    pub made_by: MadeBy,
    /// The result.
    pub outcome: Outcome,
}

/// Why results cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The host's system refuses.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// Another command writes to it.
    #[error(
        "{path}: another command is writing its results to this file; wait for it, or name another with --results", path = .0.display()
    )]
    InUse(PathBuf),
    /// The file holds something else.
    #[error("{path}:1: this is no file of results; name another with --results", path = .0.display())]
    Foreign(PathBuf),
    /// The file is of another version.
    #[error(
        "{path}:1: these results are of form {found}, and this version reads forms {OLDEST_FORM} to {FORM}; name another file with --results", path = path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its form.
        found: u32,
    },
    /// A line that was whole cannot be read.
    #[error(
        "{path}:{line}: {error}; the line is damaged or of another version: remove it and run again what it held, or name another file with --results", path = path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number from 1.
        line: usize,
        /// The problem.
        error: serde_json::Error,
    },
}

/// A file of results, open for more.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    entries: BTreeMap<Fingerprint, Entry>,
    /// Bytes of the file that are known to be whole lines.
    whole: u64,
    /// Entries that could not be written yet.
    unsaved: Vec<Fingerprint>,
}

impl Store {
    /// Opens a file of results, or makes one, and its folder.
    ///
    /// # Errors
    /// The file cannot be used: the message says which line and why.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::File {
            path: path.to_owned(),
            error,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        // A command that was killed while it started a run may have left the lock to that run for a moment.
        for attempt in 0.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let Parsed {
            entries,
            whole,
            form,
        } = parse(path, &bytes)?;
        let mut store = Self {
            path: path.to_owned(),
            file,
            entries,
            whole,
            unsaved: Vec::new(),
        };
        match form {
            None => store.write(&HEAD).map_err(failed)?,
            Some(FORM) => {}
            // Lines of this form follow, which an older command must not take for its own.
            Some(_) => store.renew_head().map_err(failed)?,
        }
        Ok(store)
    }

    /// Reads a file of results without the wish to add to it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Entry>, StoreError> {
        let bytes = std::fs::read(path).map_err(|error| StoreError::File {
            path: path.to_owned(),
            error,
        })?;
        Ok(parse(path, &bytes)?.entries.into_values().collect())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The result of a run that is known.
    pub fn get(&self, id: &Fingerprint) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Adds a result. It is on the disk when this returns. A result that cannot be written is kept in memory, and
    /// written along with the next that can.
    ///
    /// # Errors
    /// The result is not on the disk.
    pub fn add(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.unsaved.push(entry.id.clone());
        self.entries.insert(entry.id.clone(), entry);
        self.save()
    }

    /// Writes what could not be written before.
    ///
    /// # Errors
    /// A result still cannot be written.
    pub fn save(&mut self) -> Result<(), StoreError> {
        while let Some(id) = self.unsaved.first() {
            if let Some(entry) = self.entries.get(id).cloned() {
                self.write(&entry).map_err(|error| StoreError::File {
                    path: self.path.clone(),
                    error,
                })?;
            }
            self.unsaved.remove(0);
        }
        Ok(())
    }

    /// Writes the first line of this form over that of an older one, which is as long.
    fn renew_head(&mut self) -> std::io::Result<()> {
        let head = serde_json::to_vec(&HEAD)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.sync_data()
    }

    /// Writes one line behind the whole ones; what a failed attempt left is overwritten.
    fn write(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.file.set_len(self.whole)?;
        self.file.seek(SeekFrom::Start(self.whole))?;
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.whole += line.len() as u64;
        Ok(())
    }
}

/// Contents of a file.
struct Parsed {
    entries: BTreeMap<Fingerprint, Entry>,
    /// Bytes of the file that are whole lines.
    whole: u64,
    /// Form of the file, if it has a first line.
    form: Option<u32>,
}

/// Reads the lines of a file.
fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, StoreError> {
    let mut entries = BTreeMap::new();
    let mut form = None;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = whole.map_or(0, |last| last + 1);
    let lines = bytes.get(..whole).unwrap_or_default();
    let torn = bytes.get(whole..).unwrap_or_default();
    let foreign = || StoreError::Foreign(path.to_owned());
    let start = if whole == 0 { torn } else { lines };
    if !start.is_empty() && !is_start_of_head(start) {
        return Err(foreign());
    }
    for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if index == 0 && whole > 0 {
            let head: Head = serde_json::from_slice(line).map_err(|_| foreign())?;
            if !(OLDEST_FORM..=FORM).contains(&head.partita_results) {
                return Err(StoreError::Version {
                    path: path.to_owned(),
                    found: head.partita_results,
                });
            }
            form = Some(head.partita_results);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let entry: Entry = serde_json::from_slice(line).map_err(|error| StoreError::Line {
            path: path.to_owned(),
            line: index + 1,
            error,
        })?;
        entries.insert(entry.id.clone(), entry);
    }
    Ok(Parsed {
        entries,
        whole: whole as u64,
        form,
    })
}

/// Returns whether bytes begin as our first line does, as far as they go.
fn is_start_of_head(bytes: &[u8]) -> bool {
    let head = br#"{"partita_results":"#;
    let compared = head.len().min(bytes.len());
    bytes.get(..compared) == head.get(..compared)
}

#[cfg(test)]
mod tests;
