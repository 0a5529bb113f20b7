//! `partita images`.

use super::{Failure, at};
use partita::cache::{BUILT_FILES, Cache};
use partita::images::{self, Progress};
use partita::laboratory::Fingerprints;
use std::io::Write;

pub(super) fn execute(again: bool, all: bool) -> Result<(), Failure> {
    let cache = Cache::from_environment()?;
    if again {
        images::forget(&cache)?;
    }
    let names: Vec<&str> = BUILT_FILES
        .into_iter()
        .filter(|name| all || name.starts_with("debian/"))
        .collect();
    let built = images::ensure(&cache, &names, &Progress::new())?;
    let mut out = std::io::stdout().lock();
    let mut known = Fingerprints::new();
    for name in names {
        let path = cache.folder().join(name);
        let size = std::fs::metadata(&path).map_err(at(&path))?.len() >> 20;
        // A reader that has gone needs no answer.
        let fingerprint = known.of(&path).map_err(at(&path))?;
        let _ = writeln!(
            out,
            "{name}: {} ({size} MiB, SHA-256 {})",
            path.display(),
            fingerprint.short()
        );
    }
    let _ = writeln!(out, "{}", if built { "built" } else { "there already" });
    Ok(())
}
