//! A timeline: lanes with slices and marks.

/// Meaning of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SliceKind {
    /// A vCPU has a hart.
    Runs,
    /// A guest has been left, and its exit is handled.
    Exit,
    /// A hart has nothing to run.
    Idle,
    /// A vCPU spins on a word and has a hart.
    Spins,
    /// A vCPU spins on a word and has given its hart away.
    SpinWait,
    /// A vCPU waits for an interrupt without a hart.
    Waits,
    /// A vCPU has a lock.
    Holds,
    /// An interrupt is on its way from its message to its handler.
    Delivery,
}

impl SliceKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Runs,
        Self::Exit,
        Self::Idle,
        Self::Spins,
        Self::SpinWait,
        Self::Waits,
        Self::Holds,
        Self::Delivery,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Exit => "exit",
            Self::Idle => "idle",
            Self::Spins => "spins",
            Self::SpinWait => "spin wait",
            Self::Waits => "waits",
            Self::Holds => "holds a lock",
            Self::Delivery => "interrupt to its handler",
        }
    }
}

/// A stretch of time. Times are in nanoseconds of machine time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
    /// Its description.
    pub kind: SliceKind,
    /// Its name.
    pub name: String,
    /// More about it, by name.
    pub details: Vec<(&'static str, String)>,
}

/// A moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When, in nanoseconds of machine time.
    pub at: u64,
    /// Its name.
    pub name: String,
    /// More about it, by name.
    pub details: Vec<(&'static str, String)>,
    /// Arrows that begin or end here.
    pub flows: Vec<Flow>,
}

/// An end of an arrow; both ends have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Start of the arrow.
    From(u64),
    /// End of the arrow.
    To(u64),
}

impl Flow {
    /// The arrow's number.
    pub const fn number(self) -> u64 {
        match self {
            Self::From(number) | Self::To(number) => number,
        }
    }
}

/// Owner of a lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A vCPU: its VM and its number.
    Vcpu(String, u32),
    /// A hart.
    Hart(u32),
    /// A lock: the physical address of its word.
    Lock(u64),
    /// The devices.
    Devices,
}

impl Owner {
    /// In words.
    pub fn name(&self) -> String {
        match self {
            Self::Vcpu(vm, number) => format!("{vm} vCPU {number}"),
            Self::Hart(number) => format!("hart {number}"),
            Self::Lock(word) => format!("lock {word:#x}"),
            Self::Devices => String::from("devices"),
        }
    }
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Its owner.
    pub owner: Owner,
    /// Its slices by their start; those of a lane nest or follow each other.
    pub slices: Vec<Slice>,
    /// Its marks by their time.
    pub marks: Vec<Mark>,
}

/// The stretch of machine time that is recorded, in nanoseconds since a vCPU first had a hart, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From here.
    pub start: u64,
    /// To here.
    pub end: u64,
    /// Most slices and marks together; later ones are counted and left out.
    pub most: usize,
}

/// All lanes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// The lanes: vCPUs, then harts, then locks, then devices.
    pub lanes: Vec<Lane>,
    /// Events that came after there was no room for more.
    pub lost: u64,
    /// How long each interrupt took from its message to its handler, in nanoseconds, sorted.
    pub deliveries: Vec<u64>,
}

impl Timeline {
    /// First start and last end, in nanoseconds.
    pub fn span(&self) -> Option<(u64, u64)> {
        let slices = || self.lanes.iter().flat_map(|lane| &lane.slices);
        let start = slices().map(|slice| slice.start).min()?;
        let end = slices().map(|slice| slice.end).max()?;
        Some((start, end))
    }

    /// The lengths of all slices of a kind, sorted, in nanoseconds.
    pub fn lengths(&self, kind: SliceKind) -> Vec<u64> {
        if kind == SliceKind::Delivery {
            return self.deliveries.clone();
        }
        let slices = self.lanes.iter().flat_map(|lane| &lane.slices);
        let of_kind = slices.filter(|slice| slice.kind == kind);
        let mut lengths: Vec<u64> = of_kind
            .map(|slice| slice.end.saturating_sub(slice.start))
            .collect();
        lengths.sort_unstable();
        lengths
    }
}
