//! Caches, TLBs and fences, as a profile describes them.

use serde::{Deserialize, Serialize};

use super::{Faults, Service};
use crate::base::LINE_SHIFT;

/// Size of a cache or TLB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Number of sets, a power of two.
    pub sets: usize,
    /// Entries of a set.
    pub ways: usize,
}

/// Which entry of a full set has to go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplacementPolicy {
    /// The ways in turn, whatever is used.
    #[default]
    Fifo,
    /// The way that has been unused for longest.
    Lru,
    /// The first way that has not been used since all others were: pseudo-LRU by one bit a way.
    Plru,
    /// A way that is drawn, from a sequence that is always the same.
    Random,
}

impl ReplacementPolicy {
    /// The values of the key.
    pub const NAMES: &'static [&'static str] = &["fifo", "lru", "plru", "random"];
}

/// Memory behind the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryProfile {
    /// Channels, over which lines are interleaved.
    pub channels: u16,
    /// Banks of a channel.
    pub banks: u16,
    /// Cycles from the beginning of a bank's line to that of its next one.
    pub bank_busy: u64,
}

/// A prefetcher of ascending streams into the first-level data cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetcherProfile {
    /// Streams that it follows at once.
    pub streams: u16,
    /// Lines that it is in front of a stream.
    pub distance: u16,
    /// Lines that are on their way at once, at most.
    pub outstanding: u16,
}

/// A predictor of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictorProfile {
    /// Two-bit counters of directions, a power of two.
    pub counters: u32,
    /// Last branches whose directions choose the counter together with the address (gshare); 0: the address alone does (bimodal).
    pub history: u8,
    /// Branches and jumps whose targets are kept: entries of the branch target buffer.
    pub targets: u32,
    /// Entries of a set of that buffer.
    pub target_ways: u16,
    /// Which entry of a full set of that buffer has to go.
    #[serde(default)]
    pub replacement: ReplacementPolicy,
    /// Return addresses that are kept.
    pub returns: u16,
}

impl PredictorProfile {
    /// Sets and ways of the branch target buffer.
    #[must_use]
    pub fn geometry(self) -> Geometry {
        let ways = usize::from(self.target_ways.max(1));
        Geometry {
            sets: (self.targets as usize / ways).max(1),
            ways,
        }
    }
}

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheProfile {
    /// Bytes.
    pub size: u64,
    /// Lines of a set.
    pub ways: u16,
    /// Bytes of a line: 64, which is also the block of Zicbom and the reservation set.
    #[serde(default = "line_bytes")]
    pub line: u64,
    /// Which line of a full set has to go.
    #[serde(default)]
    pub replacement: ReplacementPolicy,
}

const fn line_bytes() -> u64 {
    1 << LINE_SHIFT
}

impl CacheProfile {
    /// A cache with lines of 64 bytes.
    #[must_use]
    pub const fn new(size: u64, ways: u16) -> Self {
        Self {
            size,
            ways,
            line: line_bytes(),
            replacement: ReplacementPolicy::Fifo,
        }
    }

    /// Sets and ways.
    #[must_use]
    pub fn geometry(self) -> Geometry {
        let ways = usize::from(self.ways.max(1));
        let lines = (self.size >> LINE_SHIFT) as usize;
        Geometry {
            sets: (lines / ways).max(1),
            ways,
        }
    }
}

/// A TLB, or a cache of page-table entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbProfile {
    /// Entries, each for a 4 KiB page.
    pub entries: u32,
    /// Entries of a set; as many as there are entries makes it fully associative.
    pub ways: u16,
    /// More entries, fully associative, for 2 MiB and 1 GiB pages. Without them, and unless
    /// `any_size`, a large page takes an entry for each 4 KiB of it that is used.
    #[serde(default)]
    pub large: u16,
    /// True if the entries take pages of every size; they must be fully associative then.
    #[serde(default)]
    pub any_size: bool,
    /// Which entry of a full set has to go.
    #[serde(default)]
    pub replacement: ReplacementPolicy,
}

impl TlbProfile {
    /// Sets and ways of the entries for 4 KiB pages.
    #[must_use]
    pub fn geometry(self) -> Geometry {
        let ways = usize::from(self.ways.max(1));
        Geometry {
            sets: (self.entries as usize / ways).max(1),
            ways,
        }
    }

    /// Sets and ways of the entries for large pages alone.
    #[must_use]
    pub fn large_geometry(self) -> Option<Geometry> {
        (self.large > 0 && !self.any_size).then_some(Geometry {
            sets: 1,
            ways: self.large.into(),
        })
    }
}

/// Operands that a fence honours; it removes entries whatever the others say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Honours {
    /// A fence with an address leaves other pages alone.
    pub address: bool,
    /// A fence with an address space leaves others, and global entries, alone.
    pub asid: bool,
    /// A fence for a virtual machine leaves others alone.
    pub vmid: bool,
    /// A fence for virtual machines leaves the host's own entries alone. If not, it empties
    /// everything, whatever else is said here.
    pub host: bool,
}

impl Default for Honours {
    fn default() -> Self {
        Self {
            address: true,
            asid: true,
            vmid: true,
            host: true,
        }
    }
}

/// How coarse fences are. Some cores remove more than they were asked to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FenceRules {
    /// SFENCE.VMA and SINVAL.VMA; `vmid` and `host` are for those with V = 1.
    pub sfence: Honours,
    /// HFENCE.VVMA and HINVAL.VVMA.
    pub hfence_vvma: Honours,
    /// HFENCE.GVMA and HINVAL.GVMA; `asid` has no meaning for them.
    pub hfence_gvma: Honours,
    /// The broadcast fence of docs/reference/extensions.md. Paper 003's coarse forms: without `vmid` it ignores who
    /// is fenced, without `address` where.
    pub broadcast: Honours,
}

/// An IOMMU: what it keeps, and what its work costs. What is left out costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IommuProfile {
    /// Device contexts, and process contexts, that it keeps.
    pub contexts: u16,
    /// Translations that it keeps.
    pub entries: u16,
    /// True if it has MSI page tables, and device contexts of 64 bytes.
    pub message_tables: bool,
    /// Cycles of a translation, for each page that a device's access touches.
    pub hit: u64,
    /// Cycles of each reference to memory that a walk through contexts and tables makes.
    pub step: u64,
    /// Cycles of a command.
    pub command: u64,
}

impl Default for IommuProfile {
    fn default() -> Self {
        Self {
            contexts: 16,
            entries: 64,
            message_tables: true,
            hit: 0,
            step: 0,
            command: 0,
        }
    }
}

/// Disks: how long they take and how they fail. What is left out takes no time and does not fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskProfile {
    /// Service times.
    pub service: Service,
    /// Injected faults.
    pub faults: Faults,
}

/// The UART.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UartProfile {
    /// How long a character takes to leave.
    pub nanoseconds_per_character: u64,
}

/// Network cards and the switch between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkProfile {
    /// How long a frame takes from one card to the other, beside its line's service time.
    pub latency_nanoseconds: u64,
    /// Service times of a card's line.
    pub service: Service,
    /// Injected faults.
    pub faults: Faults,
}
