//! A row of the table of keys.

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
    /// `[disk.NAME]` with `file`: a disk that VMs share.
    SharedDisk,
    /// `[disk.NAME]` with `served-by`: a disk that a VM serves to others.
    ServedDisk,
    /// `[switch.NAME]`.
    Switch,
    /// A table of `vm.NAME.network`.
    Card,
    /// `vm.NAME.terminals`.
    Terminals,
}

impl Scope {
    /// Every scope, in the order of the reference.
    pub const ALL: [Self; 11] = [
        Self::System,
        Self::Vm,
        Self::Disk,
        Self::Slice,
        Self::SharedDisk,
        Self::ServedDisk,
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
            Self::SharedDisk | Self::ServedDisk => "disk.NAME",
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
    /// A list of paths in the board's device tree.
    Paths,
    /// A list of [`HIDEABLE`](crate::system::HIDEABLE) extensions.
    Extensions,
    /// A table.
    Table(Scope),
    /// A table of named tables, as `[vm.NAME]`.
    Named(&'static [Scope]),
    /// A list of tables, each of one of these scopes.
    Tables(&'static [Scope]),
    /// A list of names, each of which may be a table.
    NamesOr(Scope),
}

/// Value of a key that a file does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// The key must be given.
    Required,
    /// Default: a number, microseconds, the place of a word, or 0 and 1.
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
    /// Set if the description carries the key to the hypervisor as a property of the same name.
    pub property: bool,
}

/// A key, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Meaning of the key in one or two sentences.
    pub text: &'static str,
    /// A value as a file has it.
    pub example: &'static str,
}

impl Row {
    /// Returns true if the key may stand in a table of `scope`.
    pub fn is_in(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}
