//! Documents that a command writes at its end, and its text for people.
//!
//! A document is a file, or standard output where its name is `-`. Whether a file can be written is found out at the beginning, with
//! room for it, and a file that is there afterwards is whole. Where a document goes to standard output, all text for people goes to
//! standard error.

mod fold;

use super::failure::{Failure, at};
use fold::fold;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError};
use study::laboratory::tidy::Tidy;

/// Name of a document that goes to standard output.
const STANDARD: &str = "-";
/// Bytes of the disk that are kept free for each file until it is written.
const RESERVED_BYTES: u64 = 1 << 20;
/// Exit code where the command line has mistakes.
const USAGE: u8 = 2;

/// Standard output for the document, once text for people goes to standard error instead.
static DOCUMENT: OnceLock<File> = OnceLock::new();
/// Nameless files that keep room for those that will be written: nothing remains of them, however the process ends.
static RESERVED: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());
/// First failure to write text for people.
static UNSHOWN: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Checks that all of these documents can be written, keeps room for them, and leaves what is in their files as it is.
///
/// # Errors
/// The first that cannot, or a second one for standard output.
pub(super) fn check<'a>(
    paths: impl IntoIterator<Item = Option<&'a PathBuf>>,
) -> Result<(), Failure> {
    paths
        .into_iter()
        .flatten()
        .try_for_each(|path| check_one(path))
}

fn check_one(path: &Path) -> Result<(), Failure> {
    if path == Path::new(STANDARD) {
        let document = redirect().map_err(lost(path))?;
        return DOCUMENT.set(document).map_err(|_| Failure::Documents);
    }
    let tried = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // What is no file, such as a terminal, is not replaced.
        Ok(_) => std::fs::OpenOptions::new()
            .append(true)
            .open(path)
            .map(drop),
        Err(_) => Ok(()),
    };
    tried.map_err(at(path))?;
    if is_replaced(path) {
        beside(path).map(drop).map_err(at(path))?;
        let room = reserve(path).map_err(at(path))?;
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.extend(room.map(|room| (path.to_owned(), room)));
    }
    Ok(())
}

/// Makes a folder for files that are written later, if it is not there, and checks that they can be.
///
/// # Errors
/// They cannot.
pub(super) fn check_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    let tried = tempfile::tempfile_in(folder);
    // The file whose name this error would tell is none that the user has named.
    tried
        .map(drop)
        .map_err(|error| at(folder)(error.kind().into()))
}

/// Sends text for people to standard error from here on, and returns the standard output that was there.
fn redirect() -> std::io::Result<File> {
    let document = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(File::from(document))
}

/// Keeps room for a file in its folder; `None` where the file system cannot.
fn reserve(path: &Path) -> std::io::Result<Option<File>> {
    use rustix::fs::{FallocateFlags, fallocate};
    let file = tempfile::tempfile_in(folder_of(path))?;
    match fallocate(&file, FallocateFlags::empty(), 0, RESERVED_BYTES) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes a document whole, or leaves what was there.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new(STANDARD) {
        let written = match DOCUMENT.get() {
            Some(mut document) => document.write_all(bytes),
            None => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
        };
        return written.map_err(lost(path));
    }
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    reserved.retain(|(of, _)| of != path);
    drop(reserved);
    if !is_replaced(path) {
        return std::fs::write(path, bytes).map_err(lost(path));
    }
    let mut file = beside(path).map_err(lost(path))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(lost(path))?;
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.persist(place)
        .map_err(|error| lost(path)(error.error))?;
    Ok(())
}

/// Makes an I/O error a failure to write a document.
fn lost(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let place = match path == Path::new(STANDARD) {
        true => String::from("standard output"),
        false => path.display().to_string(),
    };
    move |error| Failure::Output { place, error }
}

/// Shows text for people, in lines that fit, if standard output is a terminal. A failure is kept for [`shown`].
pub(super) fn say(text: fmt::Arguments<'_>) {
    match columns(std::io::stdout()) {
        Some(columns) => say_unfolded(&fold(&text.to_string(), columns)),
        None => say_unfolded(&text.to_string()),
    }
}

/// Shows text that programs read too, in its own lines. A failure is kept for [`shown`].
pub(super) fn say_unfolded(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        keep_failure(error);
    }
}

/// Shows a line for people. A failure is kept for [`shown`].
pub(super) fn say_line(text: fmt::Arguments<'_>) {
    say(format_args!("{text}\n"));
}

/// Shows a message on standard error, in lines that fit, if that is a terminal.
pub fn note(text: fmt::Arguments<'_>) {
    warn(&format!("partita: {text}\n"));
}

/// Shows text on standard error, in lines that fit, if that is a terminal.
fn warn(text: &str) {
    let folded = columns(std::io::stderr()).map(|columns| fold(text, columns));
    // Standard error may be gone; the exit code still tells.
    let _ = write!(std::io::stderr(), "{}", folded.as_deref().unwrap_or(text));
}

/// Columns of a terminal.
fn columns(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Shows the help or the version that was asked for, or says what is wrong with the command line.
///
/// # Errors
/// Standard output could not be written.
pub fn show_usage(usage: &clap::Error) -> Result<ExitCode, Failure> {
    let is_mistake = usage.use_stderr();
    let is_terminal = match is_mistake {
        true => std::io::stderr().is_terminal(),
        false => std::io::stdout().is_terminal(),
    };
    let coloured = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = match coloured {
        true => usage.render().ansi().to_string(),
        false => usage.render().to_string(),
    };
    if is_mistake {
        warn(&text);
        return Ok(ExitCode::from(USAGE));
    }
    say(format_args!("{text}"));
    shown().map(|()| ExitCode::SUCCESS)
}

/// Keeps the first failure to show text for people, for [`shown`].
fn keep_failure(error: std::io::Error) {
    let mut unshown = UNSHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    unshown.get_or_insert(error);
}

/// Returns whether all that was said so far could be shown: a reader that has gone wants no more.
pub(super) fn is_read() -> bool {
    let unshown = UNSHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    unshown.is_none()
}

/// Checks that all text for people was shown. A reader that has gone, such as `head`, wanted no more.
///
/// # Errors
/// Standard output could not be written.
pub(super) fn shown() -> Result<(), Failure> {
    let mut unshown = UNSHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match unshown.take() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(lost(Path::new(STANDARD))(error))
        }
        _ => Ok(()),
    }
}

/// Writes every figure of every run to each of these files: Parquet where its name says so, else comma-separated values.
///
/// # Errors
/// One cannot be written.
pub(super) fn write_tidy(paths: &[PathBuf], tidy: impl FnOnce() -> Tidy) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    let tidy = tidy();
    paths.iter().try_for_each(|path| {
        let is_parquet = path.extension().is_some_and(|end| end == "parquet");
        let bytes = match is_parquet {
            true => (tidy.parquet())
                .map_err(std::io::Error::other)
                .map_err(lost(path))?,
            false => tidy.csv().into_bytes(),
        };
        write(path, &bytes)
    })
}

/// Returns true if a new file can replace what is at this path, or nothing is there.
fn is_replaced(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// A new file in the same folder.
fn beside(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder_of(path);
    // Said of the folder itself, where that is what is missing.
    std::fs::metadata(&folder)?;
    // As a file that is made in the usual way: the user's umask takes away.
    tempfile::Builder::new()
        .prefix(".partita-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        // The file whose name this error would tell is none that the user has named.
        .map_err(|error| error.kind().into())
}

/// Folder that a file is in, or will be.
fn folder_of(path: &Path) -> PathBuf {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = place
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// Writes a value as JSON.
pub(super) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| Failure::File {
        path: path.to_owned(),
        error: error.into(),
    })?;
    text.push(b'\n');
    write(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_outputs_are_refused_without_remains() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        for path in [inside("none/report.json"), folder.path().to_owned()] {
            let error = check([Some(&path)]).unwrap_err().to_string();
            assert!(
                error.contains(&path.display().to_string()) && !error.contains(".partita-"),
                "{error}"
            );
        }
        let report = inside("report.json");
        check([Some(&report), None]).unwrap();
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
        std::fs::write(&report, "before").unwrap();
        check([Some(&report)]).unwrap();
        assert_eq!(std::fs::read_to_string(&report).unwrap(), "before");
        write(&report, b"after").unwrap();
        assert_eq!(std::fs::read_to_string(&report).unwrap(), "after");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_told() {
        // Whatever is written there does not fit.
        let full = Path::new("/dev/full");
        check_one(full).unwrap();
        let error = write(full, b"report").unwrap_err().to_string();
        assert!(error.contains("/dev/full"), "{error}");
    }
}
