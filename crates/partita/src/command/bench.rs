//! `partita bench`.

use super::{BenchArguments, Failure, write_json};
use partita::bench;
use partita::cache::Cache;
use partita::images::{self, Progress};
use std::io::Write;

pub(super) fn execute(arguments: &BenchArguments) -> Result<(), Failure> {
    let cache = Cache::from_environment()?;
    let benchmark = {
        let progress = Progress::new();
        images::ensure(&cache, &progress)?;
        bench::run(&cache, &arguments.hypervisor.path()?, &progress)?
    };
    // A reader that has gone needs no table.
    let _ = write!(std::io::stdout(), "{benchmark}");
    match &arguments.json {
        Some(path) => write_json(path, &benchmark),
        None => Ok(()),
    }
}
