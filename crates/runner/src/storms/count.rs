//! Accounts of the pause-loop exits of a run.

use std::collections::BTreeMap;

/// Why a pause loop that exits had nothing to do but wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The lock's holder was off its hart: lock-holder preemption.
    HolderOff,
    /// The lock had been passed on, and the vCPU whose turn it was had not had a hart since: lock-waiter preemption.
    NextOff,
    /// The vCPU whose turn it was had a hart, or nobody had the lock: the exit was false.
    Runs,
    /// The word is a lock, but its holder got it before anybody listened to the word.
    HolderUnknown,
    /// The word is no lock that is told from its stores: a queue node, a flag, a counter.
    OtherWord,
    /// The loop's code does not tell its word.
    NotRead,
}

impl Class {
    /// All, in the order of [`Storms::exits`].
    pub const ALL: [Self; 6] = [
        Self::HolderOff,
        Self::NextOff,
        Self::Runs,
        Self::HolderUnknown,
        Self::OtherWord,
        Self::NotRead,
    ];

    /// Its name in measures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HolderOff => "holder-off",
            Self::NextOff => "next-off",
            Self::Runs => "runs",
            Self::HolderUnknown => "holder-unknown",
            Self::OtherWord => "other-word",
            Self::NotRead => "not-read",
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
    /// How many exits were of each class, in the order of [`Class::ALL`].
    pub exits: [u64; Class::ALL.len()],
    /// For how long waits went on after an exit of each class, to the wait's next exit or its end, in nanoseconds.
    pub lost: [u64; Class::ALL.len()],
    /// The sum, over all exits, of how many vCPUs had one within [`TOGETHER`], its own among them.
    pub together: u64,
    /// The largest of these numbers.
    pub together_most: u64,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Held {
    /// How often.
    pub times: u64,
    /// In all, in nanoseconds.
    pub nanoseconds: u64,
    /// For the longest time, in nanoseconds.
    pub most: u64,
}

/// Exits of different vCPUs that are no further apart than this happen together, in nanoseconds.
pub const TOGETHER: u64 = 100_000;
/// Most waits, and most holds, whose lengths are kept: a guest may make as many as it likes.
const MOST: usize = 1 << 22;
/// Most loops that are told apart.
const MOST_LOOPS: usize = 4096;
/// Most locks that are told apart.
const MOST_LOCKS: usize = 1 << 16;

impl Storms {
    /// An exit of this class.
    pub(super) fn exit(&mut self, class: Class) {
        for (count, known) in self.exits.iter_mut().zip(Class::ALL) {
            *count += u64::from(known == class);
        }
    }

    /// A wait went on for so many nanoseconds after an exit of this class.
    pub(super) fn lose(&mut self, class: Class, nanoseconds: u64) {
        for (lost, known) in self.lost.iter_mut().zip(Class::ALL) {
            let more = if known == class { nanoseconds } else { 0 };
            *lost = lost.saturating_add(more);
        }
    }

    /// At an exit, so many vCPUs had one within [`TOGETHER`].
    pub(super) fn at_once(&mut self, vcpus: u64) {
        self.together += vcpus;
        self.together_most = self.together_most.max(vcpus);
    }

    /// The PAUSE at this address was exited from.
    pub(super) fn at(&mut self, pause: u64) {
        if self.loops.len() < MOST_LOOPS || self.loops.contains_key(&pause) {
            *self.loops.entry(pause).or_default() += 1;
        }
    }

    /// All exits.
    pub fn all_exits(&self) -> u64 {
        self.exits.iter().sum()
    }

    /// A wait is over.
    pub(super) fn wait(&mut self, wait: Wait) {
        if self.exits_of_waits.len() < MOST {
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
        if self.locks.len() < MOST_LOCKS || self.locks.contains_key(&word) {
            let held = self.locks.entry(word).or_default();
            held.times += 1;
            held.nanoseconds = held.nanoseconds.saturating_add(nanoseconds);
            held.most = held.most.max(nanoseconds);
        }
        if self.holds.len() < MOST {
            self.holds.push(nanoseconds);
        }
    }
}
