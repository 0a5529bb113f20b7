//! The keys of a system file: one table, a row a key.
//!
//! The reader of TOML, the writer and the reader of the description, the reference, the schema and the remedies of mistakes all follow
//! from [`ROWS`] and [`NOTES`]. A new parameter is a row in `rows.rs`, its use by [`Settings::get`], and a test of that use.
//!
//! [`ROWS`] is what a program needs to read a key; [`NOTES`] is for people. The hypervisor names the first alone, so that the
//! texts of the second are no part of it.

pub mod limits;
mod renamed;
mod rows;
mod settings;
#[cfg(test)]
mod tests;
mod value;
mod words;

pub use renamed::{RENAMED, RENAMED_WORDS, Renamed};
pub use rows::*;
pub use settings::Settings;
pub use value::{Structure, Value};
pub use words::{
    Io, Migration, OnFailure, PausePreset, Placement, Purging, RemoteFences, RunQueue, Scheduling,
    SpinMethod, TlbPurge, VmTranslation, WaitMethod, WhenIdle,
};

use core::marker::PhantomData;

/// The table that a key stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The file's own table.
    System,
    /// `[experiment]`.
    Experiment,
    /// `[vm.NAME]`.
    Vm,
    /// `[vm.NAME.experiment]`.
    VmExperiment,
    /// A table of `vm.NAME.disks` with `file`: a disk of the VM's own.
    Disk,
    /// A table of `vm.NAME.disks` with `slice-of`: a part of a shared disk.
    Slice,
    /// `[disk.NAME]`: a disk that VMs share.
    SharedDisk,
    /// `[switch.NAME]`.
    Switch,
    /// A table of `vm.NAME.network`.
    Card,
    /// `vm.NAME.terminals`.
    Terminals,
}

impl Scope {
    /// Every scope, in the order of the reference.
    pub const ALL: [Self; 10] = [
        Self::System,
        Self::Vm,
        Self::Disk,
        Self::Slice,
        Self::SharedDisk,
        Self::Switch,
        Self::Card,
        Self::Terminals,
        Self::Experiment,
        Self::VmExperiment,
    ];

    /// Path of the table in a file; empty for the file's own.
    pub const fn path(self) -> &'static str {
        match self {
            Self::System => "",
            Self::Experiment => "experiment",
            Self::Vm => "vm.NAME",
            Self::VmExperiment => "vm.NAME.experiment",
            Self::Disk | Self::Slice => "vm.NAME.disks",
            Self::SharedDisk => "disk.NAME",
            Self::Switch => "switch.NAME",
            Self::Card => "vm.NAME.network",
            Self::Terminals => "vm.NAME.terminals",
        }
    }

    /// Scope of the system whose value holds where a VM gives none.
    pub const fn of_system(self) -> Option<Self> {
        match self {
            Self::Vm => Some(Self::System),
            Self::VmExperiment => Some(Self::Experiment),
            _ => None,
        }
    }
}

/// Type and limits of a key's value. Both ends of a range are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A whole number.
    Number {
        /// Least.
        min: u32,
        /// Greatest.
        max: u32,
        /// Unit, in the plural; empty for a plain number.
        unit: &'static str,
    },
    /// A time, in microseconds.
    Time {
        /// Shortest.
        min: u64,
        /// Longest.
        max: u64,
    },
    /// One of these words. The value is the place of the word.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// An amount of memory or of a disk, in bytes.
    Size {
        /// Least.
        min: u64,
        /// The amount is a multiple of this.
        granule: u64,
    },
    /// A name of a VM, a disk or a network.
    Name,
    /// A text of at most so many bytes.
    Text(usize),
    /// A file: a path, or the name of a built image.
    File,
    /// A list of harts.
    Harts,
    /// A list of [`HIDEABLE`](crate::system::HIDEABLE) extensions.
    Extensions,
    /// A table.
    Table(Scope),
    /// A table of named tables, as `[vm.NAME]`.
    Named(Scope),
    /// A list of tables, each of one of these scopes.
    Tables(&'static [Scope]),
    /// A list of names, each of which may be a table.
    NamesOr(Scope),
}

/// Value of a key that a file does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// None: the key must be given.
    Required,
    /// This one: a number, microseconds, the place of a word, or 0 and 1.
    Value(u64),
    /// One that follows from something else, in words.
    Follows(&'static str),
}

/// A key, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Name in a file, and of the property in the description.
    pub name: &'static str,
    /// Tables that the key may stand in.
    pub scopes: &'static [Scope],
    /// Type and limits.
    pub takes: Takes,
    /// Value without it.
    pub without: Without,
    /// True if the description carries the key to the hypervisor as a property of the same name.
    pub property: bool,
}

/// A key, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What the key is, in one or two sentences.
    pub text: &'static str,
    /// A value as a file has it.
    pub example: &'static str,
}

impl Row {
    /// True if the key may stand in a table of `scope`.
    pub fn is_in(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// Every key of a scope with its notes, in the order of the table.
pub fn of(scope: Scope) -> impl Iterator<Item = (&'static Row, &'static Note)> + Clone {
    ROWS.iter()
        .zip(&NOTES)
        .filter(move |(row, _)| row.is_in(scope))
}

/// A key by its place in the table, with the type of its value.
#[derive(Debug)]
pub struct Key<T> {
    place: usize,
    row: &'static Row,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> Key<T> {
    const fn at(place: usize) -> Self {
        Self {
            place,
            row: &ROWS[place],
            value: PhantomData,
        }
    }

    /// Place in [`ROWS`].
    pub const fn place(self) -> usize {
        self.place
    }

    /// The row.
    pub const fn row(self) -> &'static Row {
        self.row
    }

    /// The note.
    pub fn note(self) -> &'static Note {
        // Both tables have the same rows.
        &NOTES[self.place]
    }

    /// Name in a file.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Limits of a number or of a time; of a time in microseconds.
    pub const fn limits(self) -> core::ops::RangeInclusive<u64> {
        match self.row().takes {
            Takes::Number { min, max, .. } => min as u64..=max as u64,
            Takes::Time { min, max } => min..=max,
            Takes::Flag => 0..=1,
            _ => 0..=u64::MAX,
        }
    }
}

impl<T: Value> Key<T> {
    /// Value for what was given.
    pub fn value(self, given: Option<u64>) -> T {
        T::of(given, self.row.without)
    }
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
    of(scope).map(|(row, _)| row).find(|row| row.name == name)
}
