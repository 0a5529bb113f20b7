//! Files that a command writes at its end: whether they can be written is found out at its beginning, and what is there
//! afterwards is whole.

use super::failure::{Failure, at};
use std::io::Write;
use std::path::{Path, PathBuf};
use study::laboratory::Entry;
use study::laboratory::tidy::Tidy;

/// Stands for standard output.
const STANDARD: &str = "-";

/// Checks that all of these files can be written, and leaves what is in them as it is.
///
/// # Errors
/// The first that cannot.
pub(super) fn check<'a>(
    paths: impl IntoIterator<Item = Option<&'a PathBuf>>,
) -> Result<(), Failure> {
    paths
        .into_iter()
        .flatten()
        .try_for_each(|path| check_one(path))
}

/// Whether one of these is standard output.
pub(super) fn has_standard<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> bool {
    let mut paths = paths.into_iter();
    paths.any(|path| path == Path::new(STANDARD))
}

fn check_one(path: &Path) -> Result<(), Failure> {
    if path == Path::new(STANDARD) {
        return Ok(());
    }
    let tried = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
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
    }
    Ok(())
}

/// Writes a file whole, or leaves what was there.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path == Path::new(STANDARD) {
        return std::io::stdout().write_all(bytes).map_err(at(path));
    }
    if !is_replaced(path) {
        return std::fs::write(path, bytes).map_err(at(path));
    }
    let mut file = beside(path).map_err(at(path))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(at(path))?;
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.persist(place).map_err(|error| at(path)(error.error))?;
    Ok(())
}

/// Writes every figure of every run to each of these files: Parquet where its name says so, else comma-separated values.
///
/// # Errors
/// One cannot be written.
pub(super) fn write_tidy(paths: &[PathBuf], entries: &[Entry]) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    let tidy = Tidy::of(entries);
    paths.iter().try_for_each(|path| {
        let is_parquet = path.extension().is_some_and(|end| end == "parquet");
        let bytes = match is_parquet {
            true => (tidy.parquet())
                .map_err(std::io::Error::other)
                .map_err(at(path))?,
            false => tidy.csv().into_bytes(),
        };
        write(path, &bytes)
    })
}

/// Whether something new is put in the place of what is there, if anything is.
fn is_replaced(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// A new file in the same folder.
fn beside(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = place
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Said of the folder itself, where that is what is missing.
    std::fs::metadata(folder)?;
    // As a file that is made in the usual way: the user's umask takes away.
    tempfile::Builder::new()
        .prefix(".partita-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        // The file whose name this error would tell is none that the user has named.
        .map_err(|error| error.kind().into())
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
    fn what_cannot_be_written_is_known_at_once_and_nothing_is_left() {
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
