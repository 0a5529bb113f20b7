//! The keys of a system file: one table, a row a key.
//!
//! The reader of TOML, the writer and the reader of the description, the reference, the schema and the remedies of mistakes all follow
//! from [`ROWS`] and [`NOTES`]. A new parameter is a row in `rows.rs`, its use by [`Settings::get`], and a test of that use.
//!
//! [`ROWS`] is what a program needs to read a key; [`NOTES`] is for people. The hypervisor names the first alone, so that the
//! texts of the second are no part of it.

mod key;
pub mod limits;
mod papers;
mod renamed;
mod row;
mod rows;
mod settings;
#[cfg(test)]
mod tests;
mod value;
mod words;

pub use key::Key;
pub use papers::PapersMethod;
pub use renamed::{RENAMED, RENAMED_WORDS, Renamed};
pub use row::{Note, Row, Scope, Takes, Without};
pub use rows::*;
pub use settings::Settings;
pub use value::{Structure, Value};
pub use words::{
    Confined, Io, Migration, OnFailure, PausePreset, Placement, Purging, RemoteFences, RunQueue,
    Scheduling, SpinMethod, TlbPurge, VmTranslation, WaitMethod, WhenIdle,
};

/// Every key of a scope with its notes, in the order of the table.
pub fn of(scope: Scope) -> impl Iterator<Item = (&'static Row, &'static Note)> + Clone {
    ROWS.iter()
        .zip(&NOTES)
        .filter(move |(row, _)| row.is_in(scope))
}

/// The row of a key by its path in a file, such as `vm.web.memory`; `None` for a path of no key, and inside of lists.
pub fn by_path(path: &str) -> Option<&'static Row> {
    let mut parts = path.split('.');
    let parts: [Option<&str>; 5] = core::array::from_fn(|_| parts.next());
    let (scope, name) = match parts {
        [Some(name), None, ..] => (Scope::System, name),
        [Some("experiment"), Some(name), None, ..] => (Scope::Experiment, name),
        [Some("vm"), Some(_), Some(name), None, _] => (Scope::Vm, name),
        [Some("vm"), Some(_), Some("experiment"), Some(name), None] => (Scope::VmExperiment, name),
        [Some("vm"), Some(_), Some("terminals"), Some(name), None] => (Scope::Terminals, name),
        [Some("disk"), Some(_), Some(name), None, _] => (Scope::SharedDisk, name),
        [Some("switch"), Some(_), Some(name), None, _] => (Scope::Switch, name),
        _ => return None,
    };
    let also = (scope == Scope::SharedDisk).then_some(Scope::ServedDisk);
    let mut rows = of(scope).chain(also.into_iter().flat_map(of));
    rows.find(|(row, _)| row.name == name).map(|(row, _)| row)
}
