//! Events that are counted, and the numbers by which software selects them: docs/reference/machine.md.

use serde::{Deserialize, Serialize};

/// Something that is counted. The numbers are those of mhpmevent and of the device tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Event {
    /// Cycles, those spent waiting too.
    Cycles = 1,
    /// Instructions retired.
    Instructions = 2,
    /// Synchronous exceptions taken.
    Exceptions = 3,
    /// Interrupts taken.
    Interrupts = 4,
    /// Traps from V = 1 to HS- or M-mode.
    Exits = 5,
    /// Cycles spent waiting in WFI and WRS.
    Waited = 6,
    /// Loads and stores that a device answered.
    DeviceAccesses = 7,
    /// Fetches that the first-level instruction cache did not have.
    FetchMisses = 8,
    /// Loads, those of walks too, that the first-level data cache did not have.
    LoadMisses = 9,
    /// Stores that the first-level data cache did not have.
    StoreMisses = 10,
    /// Stores to lines that the first-level data cache had, but other harts too.
    Upgrades = 11,
    /// First-level misses that another hart's cache answered or had to give up a line for.
    Transfers = 12,
    /// First-level misses that the second level did not have; all of them if there is none.
    SharedMisses = 13,
    /// Fetches whose page the first-level instruction TLB did not have.
    FetchTlbMisses = 14,
    /// Loads whose page the first-level data TLB did not have.
    LoadTlbMisses = 15,
    /// Stores whose page the first-level data TLB did not have.
    StoreTlbMisses = 16,
    /// Page-table walks: accesses whose page no TLB had.
    Walks = 17,
    /// Entries of S-stage and VS-stage page tables that walks read from memory.
    WalkReferences = 18,
    /// Entries of G-stage page tables that walks read from memory.
    GuestWalkReferences = 19,
    /// Cycles lost to caches, TLBs and walks.
    Stalled = 20,
    /// Fences of translations executed: SFENCE, HFENCE, SINVAL, HINVAL.
    TranslationFences = 21,
    /// Purges by hardware at entries to guests.
    EntryPurges = 22,
    /// Lines that a prefetcher brought into the first-level data cache.
    Prefetches = 23,
    /// Cycles of page-table walks, without the look-up of the second-level TLB before them: the part of the lost cycles that a
    /// hit there saves.
    WalkCycles = 24,
    /// Cycles that the hart's lines waited for their turn with memory, those that nothing waited for too.
    MemoryQueue = 25,
    /// Lines that had to be written back to memory because of the hart.
    WriteBacks = 26,
    /// Branches and jumps whose direction or target the predictor had wrong.
    Mispredictions = 27,
    /// Branches and jumps whose direction was predicted rightly, and whose target the branch target buffer lacked.
    TargetMisses = 28,
}

impl Event {
    /// One more than the greatest number.
    pub const COUNT: usize = 29;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT - 1] = [
        Self::Cycles,
        Self::Instructions,
        Self::Exceptions,
        Self::Interrupts,
        Self::Exits,
        Self::Waited,
        Self::DeviceAccesses,
        Self::FetchMisses,
        Self::LoadMisses,
        Self::StoreMisses,
        Self::Upgrades,
        Self::Transfers,
        Self::SharedMisses,
        Self::FetchTlbMisses,
        Self::LoadTlbMisses,
        Self::StoreTlbMisses,
        Self::Walks,
        Self::WalkReferences,
        Self::GuestWalkReferences,
        Self::Stalled,
        Self::TranslationFences,
        Self::EntryPurges,
        Self::Prefetches,
        Self::WalkCycles,
        Self::MemoryQueue,
        Self::WriteBacks,
        Self::Mispredictions,
        Self::TargetMisses,
    ];

    /// The event of a number.
    #[must_use]
    pub fn numbered(number: u64) -> Option<Self> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::Exceptions => "exceptions",
            Self::Interrupts => "interrupts",
            Self::Exits => "exits",
            Self::Waited => "waited-cycles",
            Self::DeviceAccesses => "device-accesses",
            Self::FetchMisses => "l1i-misses",
            Self::LoadMisses => "l1d-load-misses",
            Self::StoreMisses => "l1d-store-misses",
            Self::Upgrades => "l1d-upgrades",
            Self::Transfers => "transfers",
            Self::SharedMisses => "l2-misses",
            Self::FetchTlbMisses => "itlb-misses",
            Self::LoadTlbMisses => "dtlb-load-misses",
            Self::StoreTlbMisses => "dtlb-store-misses",
            Self::Walks => "walks",
            Self::WalkReferences => "walk-references",
            Self::GuestWalkReferences => "g-stage-walk-references",
            Self::Stalled => "stalled-cycles",
            Self::TranslationFences => "translation-fences",
            Self::EntryPurges => "entry-purges",
            Self::Prefetches => "prefetches",
            Self::WalkCycles => "walk-cycles",
            Self::MemoryQueue => "memory-queue-cycles",
            Self::WriteBacks => "write-backs",
            Self::Mispredictions => "mispredictions",
            Self::TargetMisses => "btb-misses",
        }
    }

    /// Exact definition of the event, for reports.
    #[must_use]
    pub const fn definition(self) -> &'static str {
        match self {
            Self::Cycles => "cycles of the hart, those spent waiting too",
            Self::Instructions => "instructions retired",
            Self::Exceptions => "synchronous exceptions taken",
            Self::Interrupts => "interrupts taken",
            Self::Exits => "traps from V = 1 to HS- or M-mode",
            Self::Waited => "cycles spent waiting in WFI and WRS",
            Self::DeviceAccesses => "loads and stores that a device answered",
            Self::FetchMisses => "fetches of a line that the first-level instruction cache lacked",
            Self::LoadMisses => {
                "loads, those of walks too, of a line that the first-level data cache lacked"
            }
            Self::StoreMisses => "stores to a line that the first-level data cache lacked",
            Self::Upgrades => "stores to a line of the own cache that others had as well",
            Self::Transfers => "first-level misses for a line that another hart could have changed",
            Self::SharedMisses => "first-level misses of a line that the second level lacked",
            Self::FetchTlbMisses => "fetches of a page that the first-level TLB lacked",
            Self::LoadTlbMisses => "loads of a page that the first-level TLB lacked",
            Self::StoreTlbMisses => "stores to a page that the first-level TLB lacked",
            Self::Walks => "accesses to a page that no TLB had: page-table walks",
            Self::WalkReferences => {
                "S- and VS-stage page-table entries that walks read from memory"
            }
            Self::GuestWalkReferences => "G-stage page-table entries that walks read from memory",
            Self::Stalled => "cycles lost to caches, TLBs and walks",
            Self::TranslationFences => "SFENCE, HFENCE, SINVAL and HINVAL instructions executed",
            Self::EntryPurges => "purges of translations by hardware at entries to guests",
            Self::Prefetches => "lines that a prefetcher brought into the first-level data cache",
            Self::WalkCycles => {
                "cycles of page-table walks behind the second-level TLB's look-up, which are part of stalled-cycles"
            }
            Self::MemoryQueue => {
                "cycles that lines waited for their turn with memory, prefetched lines and those of buffered stores too"
            }
            Self::WriteBacks => {
                "lines written back to memory to make room or by CBO.CLEAN and CBO.FLUSH"
            }
            Self::Mispredictions => {
                "branches and jumps whose direction or target the predictor had wrong"
            }
            Self::TargetMisses => {
                "branches and jumps of a direction predicted rightly whose target the branch target buffer lacked"
            }
        }
    }
}

/// A count of every event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts([u64; Event::COUNT]);

impl EventCounts {
    /// The count of an event.
    #[must_use]
    pub fn get(&self, event: Event) -> u64 {
        self.0.get(event as usize).copied().unwrap_or(0)
    }

    /// Counts an event `times` more.
    #[inline]
    pub fn add(&mut self, event: Event, times: u64) {
        if let Some(count) = self.0.get_mut(event as usize) {
            *count = count.wrapping_add(times);
        }
    }

    /// Adds all of another's counts.
    pub fn add_all(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.wrapping_add(more);
        }
    }

    /// Counts since an earlier sample.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        for (count, before) in difference.0.iter_mut().zip(earlier.0) {
            *count = count.wrapping_sub(before);
        }
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_events() {
        for (index, event) in (1_u64..).zip(Event::ALL) {
            assert_eq!(event as u64, index, "{}", event.name());
            assert_eq!(Event::numbered(index), Some(event));
        }
        assert_eq!(Event::numbered(0), None);
        assert_eq!(Event::numbered(Event::COUNT as u64), None);
    }

    #[test]
    fn a_difference_is_what_was_added() {
        let mut counts = EventCounts::default();
        counts.add(Event::Walks, 3);
        let before = counts;
        counts.add(Event::Walks, 4);
        counts.add(Event::Exits, 1);
        let difference = counts.since(&before);
        assert_eq!(
            (difference.get(Event::Walks), difference.get(Event::Exits)),
            (4, 1)
        );
    }
}
