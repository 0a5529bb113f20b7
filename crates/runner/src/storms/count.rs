//! Accounts of the pause-loop exits of a run.

use std::collections::BTreeMap;

/// Reason why a pause loop that exits had nothing to do but wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseExitClass {
    /// The lock's holder was off its hart: lock-holder preemption.
    HolderPreempted,
    /// The lock had been passed on, and the vCPU whose turn it was had not had a hart since: lock-waiter preemption.
    WaiterPreempted,
    /// The vCPU whose turn it was had a hart, or no vCPU had the lock: the exit was false.
    FalseExit,
    /// The word is a lock, but its holder got it before the word was watched.
    HolderUnknown,
    /// The word is no lock that is told from its stores: a queue node, a flag, a counter.
    NotALock,
    /// The loop's code does not tell its word.
    Undecoded,
}

impl PauseExitClass {
    /// All classes, in the order of [`Storms::exits`].
    pub const ALL: [Self; 6] = [
        Self::HolderPreempted,
        Self::WaiterPreempted,
        Self::FalseExit,
        Self::HolderUnknown,
        Self::NotALock,
        Self::Undecoded,
    ];

    /// Name in measures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HolderPreempted => "holder-preempted",
            Self::WaiterPreempted => "waiter-preempted",
            Self::FalseExit => "false-exit",
            Self::HolderUnknown => "holder-unknown",
            Self::NotALock => "not-a-lock",
            Self::Undecoded => "undecoded",
        }
    }
}

/// A wait in which a vCPU's pause loop exited at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// VMID of the vCPU.
    pub vmid: u16,
    /// The physical address of the word.
    pub word: u64,
    /// When its first exit was, in nanoseconds since reset.
    pub start: u64,
    /// When its turn came, or what it waited for changed.
    pub end: u64,
    /// How many exits it had.
    pub exits: u64,
}

/// Accounts of the pause-loop exits of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storms {
    /// How many exits were of each class, in the order of [`PauseExitClass::ALL`].
    pub exits: [u64; PauseExitClass::ALL.len()],
    /// For how long waits went on after an exit of each class, to the wait's next exit or its end, in nanoseconds.
    pub lost: [u64; PauseExitClass::ALL.len()],
    /// The sum, over all exits, of how many vCPUs had one within [`TOGETHER`], its own among them.
    pub together: u64,
    /// The largest of these numbers.
    pub max_together: u64,
    /// How many exits each loop had, by the guest-virtual address of its PAUSE.
    pub loops: BTreeMap<u64, u64>,
    /// How many exits each wait on a word had.
    pub exits_of_waits: Vec<u64>,
    /// How long each of these waits took from its first exit on, in nanoseconds.
    pub waits: Vec<u64>,
    /// The wait with the most exits; the first of those that have as many.
    pub worst: Option<Wait>,
    /// Tickets of ticket locks that were drawn before it was their turn, of locks at which a loop had exited.
    pub contended: u64,
    /// How long the locks were held at which a loop had exited, in nanoseconds.
    pub holds: Vec<u64>,
    /// Accounts of these locks, by the physical address of its word.
    pub locks: BTreeMap<u64, Held>,
}

/// How long a lock was held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Held {
    /// How often.
    pub times: u64,
    /// In all, in nanoseconds.
    pub nanoseconds: u64,
    /// For the longest time, in nanoseconds.
    #[serde(alias = "most")]
    pub longest: u64,
}

/// Exits of different vCPUs that are no further apart than this happen together, in nanoseconds.
pub const TOGETHER: u64 = 100_000;
/// Most waits, and most holds, whose lengths are kept: a guest may make as many as it likes.
const MAX_LENGTHS: usize = 1 << 22;
/// Most loops that are told apart.
const MAX_LOOPS: usize = 4096;
/// Most locks that are told apart.
const MAX_LOCKS: usize = 1 << 16;

impl Storms {
    /// An exit of this class.
    pub(super) fn exit(&mut self, class: PauseExitClass) {
        for (count, known) in self.exits.iter_mut().zip(PauseExitClass::ALL) {
            *count += u64::from(known == class);
        }
    }

    /// A wait went on for so many nanoseconds after an exit of this class.
    pub(super) fn lose(&mut self, class: PauseExitClass, nanoseconds: u64) {
        for (lost, known) in self.lost.iter_mut().zip(PauseExitClass::ALL) {
            let more = if known == class { nanoseconds } else { 0 };
            *lost = lost.saturating_add(more);
        }
    }

    /// At an exit, so many vCPUs had one within [`TOGETHER`].
    pub(super) fn at_once(&mut self, vcpus: u64) {
        self.together += vcpus;
        self.max_together = self.max_together.max(vcpus);
    }

    /// The PAUSE at this address was exited from.
    pub(super) fn at(&mut self, pause: u64) {
        if self.loops.len() < MAX_LOOPS || self.loops.contains_key(&pause) {
            *self.loops.entry(pause).or_default() += 1;
        }
    }

    /// All exits.
    pub fn all_exits(&self) -> u64 {
        self.exits.iter().sum()
    }

    /// A wait is over.
    pub(super) fn wait(&mut self, wait: Wait) {
        if self.exits_of_waits.len() < MAX_LENGTHS {
            self.exits_of_waits.push(wait.exits);
            self.waits.push(wait.end.saturating_sub(wait.start));
        }
        if self.worst.is_none_or(|worst| worst.exits < wait.exits) {
            self.worst = Some(wait);
        }
    }

    /// The locks that were held for the longest time in all.
    pub fn most_held(&self, number: usize) -> Vec<(u64, Held)> {
        let mut locks: Vec<_> = self
            .locks
            .iter()
            .map(|(&word, &held)| (word, held))
            .collect();
        locks.sort_by_key(|&(word, held)| (std::cmp::Reverse(held.nanoseconds), word));
        locks.truncate(number);
        locks
    }

    /// The lock with this word was held for so many nanoseconds.
    pub(super) fn hold(&mut self, word: u64, nanoseconds: u64) {
        if self.locks.len() < MAX_LOCKS || self.locks.contains_key(&word) {
            let held = self.locks.entry(word).or_default();
            held.times += 1;
            held.nanoseconds = held.nanoseconds.saturating_add(nanoseconds);
            held.longest = held.longest.max(nanoseconds);
        }
        if self.holds.len() < MAX_LENGTHS {
            self.holds.push(nanoseconds);
        }
    }
}
