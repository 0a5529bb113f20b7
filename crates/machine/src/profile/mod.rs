//! Profiles: what a machine is like, in TOML. docs/reference/machine.md has the table of the keys.

mod check;
mod costs;
mod field;
mod measure;
mod mistake;
mod reader;
mod service;
mod structures;
mod vector;

pub use costs::Costs;
pub use field::{Field, Need, ValueKind, fields};
pub use measure::{Found, MeasureError, Measurements};
pub use mistake::{Mistake, Mistakes};
pub use service::{Chance, Faults, Service};
pub use structures::{
    CacheProfile, DiskProfile, FenceRules, Geometry, Honours, IommuProfile, MemoryProfile,
    NetworkProfile, PredictorProfile, PrefetcherProfile, ReplacementPolicy, TlbProfile,
    UartProfile,
};
pub use vector::{VectorCosts, VectorProfile};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::{Paging, PmpEntries};
use crate::extension::{Extensions, Options, VmidBits};

/// A machine's make-up and speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The harts' frequency in hertz, 1,000 to 10^12.
    pub hertz: u64,
    /// timebase-frequency in hertz, 1 to `hertz`.
    pub timebase: u64,
    /// Guest interrupt files a hart, 0 to 63.
    pub guest_files: u8,
    /// True if the harts can set A and D bits of page tables themselves (Svadu; menvcfg.ADUE can
    /// be set), or never do (Svade).
    pub svadu: bool,
    /// Bits of virtual addresses in the widest scheme that the harts have: 39, 48 or 57; 48 if left
    /// out.
    #[serde(default = "virtual_address_bits")]
    pub virtual_address_bits: u8,
    /// Bits of VMIDs that the harts have, 0 to 14; 14 if left out.
    #[serde(default = "vmid_bits")]
    pub vmid_bits: u8,
    /// Entries of physical memory protection that the harts have, 16 or 64; 16 if left out.
    #[serde(default = "pmp_entries")]
    pub pmp_entries: u8,
    /// Cycles that a hart runs before the next one's turn, 1 to 1,000,000.
    pub quantum: u64,
    /// Cycles after which WRS.NTO traps where it may.
    pub wrs_nto_limit: u64,
    /// Cycles that WRS.STO waits.
    pub wrs_sto_limit: u64,
    /// True if FENCE.I empties the first-level instruction cache.
    pub fence_i_clears: bool,
    /// True if misaligned loads and stores trap in the timing mode, so that firmware carries them out.
    #[serde(default)]
    pub misaligned_traps: bool,
    /// True if a miss of the first-level data cache brings the next line of the page as well.
    #[serde(default)]
    pub prefetch_next_line: bool,
    /// Stores whose lines may be on their way while the hart goes on; 0 if it waits for each.
    #[serde(default)]
    pub store_buffer: u16,
    /// Channels and banks of memory, and lines that are written back to it; without them memory takes lines one after the other.
    #[serde(default)]
    pub memory: Option<MemoryProfile>,
    /// Prefetcher of streams, if there is one.
    #[serde(default)]
    pub prefetcher: Option<PrefetcherProfile>,
    /// Predictor of branches, if there is one.
    #[serde(default)]
    pub predictor: Option<PredictorProfile>,
    /// First-level instruction cache, a hart's own.
    pub l1i: CacheProfile,
    /// First-level data cache, a hart's own.
    pub l1d: CacheProfile,
    /// Second-level cache, shared by all harts, if there is one.
    #[serde(default)]
    pub l2: Option<CacheProfile>,
    /// First-level instruction TLB.
    pub itlb: TlbProfile,
    /// First-level data TLB.
    pub dtlb: TlbProfile,
    /// Second-level TLB for both, if there is one.
    #[serde(default)]
    pub l2tlb: Option<TlbProfile>,
    /// G-stage translations that walks keep, if they do.
    #[serde(default)]
    pub guest_tlb: Option<TlbProfile>,
    /// Entries of S- and VS-stage tables that lead to tables, which walks keep, if they do.
    #[serde(default)]
    pub walk_cache: Option<TlbProfile>,
    /// The same of the G-stage.
    #[serde(default)]
    pub guest_walk_cache: Option<TlbProfile>,
    /// Vector unit, if the harts have one.
    #[serde(default)]
    pub vector: Option<VectorProfile>,
    /// Entries that fences spare although they may remove them: everything unless it says otherwise.
    #[serde(default)]
    pub fences: FenceRules,
    /// Costs in cycles.
    pub costs: Costs,
    /// Disks.
    #[serde(default)]
    pub disk: DiskProfile,
    /// The network.
    #[serde(default)]
    pub network: NetworkProfile,
    /// The IOMMU of a board that has one.
    #[serde(default)]
    pub iommu: IommuProfile,
    /// The UART.
    #[serde(default)]
    pub uart: UartProfile,
    /// Ratified options: those of [`Options::default`] unless it says otherwise.
    #[serde(default)]
    pub options: Options,
    /// Custom extensions: none unless they are named.
    #[serde(default)]
    pub extensions: Extensions,
}

/// Why a profile cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the host.
        reason: String,
    },
    /// Mistakes in its text.
    #[error("{0}")]
    Mistakes(#[from] Mistakes),
    /// No profile that ships has this name.
    #[error("there is no profile `{0}`: give a file or one of {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// Measurements of which no profile can be made.
    #[error("{path}: {reason}")]
    Measured {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: MeasureError,
    },
    /// Something that no machine can have, in a profile that was not read from a text.
    #[error("{key}: {message}; {remedy}")]
    Impossible {
        /// The key.
        key: String,
        /// Description of the fault.
        message: String,
        /// Remedy.
        remedy: String,
    },
}

/// The names of the profiles that ship.
pub const NAMES: [&str; 6] = [
    "ideal",
    "rocket-h",
    "k3-class",
    "xeon-class",
    "cva6",
    "mainframe-1994",
];

impl Profile {
    /// A profile from the file of this name, or one that ships if there is no such file.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        let path = Path::new(name);
        if !path.is_file() {
            return Self::named(name);
        }
        let text = std::fs::read_to_string(path).map_err(|error| ProfileError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        Self::parse(name, &text)
    }

    /// A profile that ships.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`].
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let text = Self::shipped(name).ok_or_else(|| ProfileError::Unknown(name.to_owned()))?;
        Self::parse(name, text)
    }

    /// The text of a profile that ships, with its comments.
    pub fn shipped(name: &str) -> Option<&'static str> {
        Some(match name {
            "ideal" => include_str!("../../../../profiles/ideal.toml"),
            "rocket-h" => include_str!("../../../../profiles/rocket-h.toml"),
            "k3-class" => include_str!("../../../../profiles/k3-class.toml"),
            "xeon-class" => include_str!("../../../../profiles/xeon-class.toml"),
            "cva6" => include_str!("../../../../profiles/cva6.toml"),
            "mainframe-1994" => include_str!("../../../../profiles/mainframe-1994.toml"),
            _ => return None,
        })
    }
}

impl Default for Profile {
    /// Like `k3-class` in shape, at 1 GHz, with seven guest interrupt files: for tests and for
    /// whoever names no other.
    fn default() -> Self {
        let tlb = |entries, ways, large| TlbProfile {
            entries,
            ways,
            large,
            any_size: false,
            replacement: ReplacementPolicy::Fifo,
        };
        Self {
            hertz: 1_000_000_000,
            timebase: 10_000_000,
            guest_files: 7,
            svadu: true,
            virtual_address_bits: virtual_address_bits(),
            vmid_bits: vmid_bits(),
            pmp_entries: pmp_entries(),
            quantum: 1000,
            wrs_nto_limit: 2000,
            wrs_sto_limit: 200,
            fence_i_clears: true,
            misaligned_traps: false,
            prefetch_next_line: false,
            store_buffer: 0,
            memory: None,
            prefetcher: None,
            predictor: None,
            l1i: CacheProfile::new(64 << 10, 4),
            l1d: CacheProfile::new(64 << 10, 4),
            l2: Some(CacheProfile::new(4 << 20, 16)),
            itlb: tlb(32, 32, 4),
            dtlb: tlb(32, 32, 4),
            l2tlb: Some(tlb(512, 4, 16)),
            guest_tlb: Some(tlb(64, 4, 4)),
            walk_cache: Some(tlb(16, 16, 0)),
            guest_walk_cache: Some(tlb(16, 16, 0)),
            vector: None,
            fences: FenceRules::default(),
            costs: Costs {
                l2_hit: 20,
                memory: 100,
                transfer: 40,
                l2_tlb_hit: 6,
                walk_step: 1,
                device: 50,
                multiply: 2,
                divide: 20,
                float: 3,
                float_divide: 20,
                atomic: 5,
                guest_access: 5,
                csr: 3,
                trap: 15,
                trap_return: 15,
                mode_change: 10,
                fence: 2,
                fence_i: 5,
                fence_translation: 15,
                wait: 5,
                pause: 1,
                pending_test: 40,
                update: 10,
                line_crossing: 1,
                memory_gap: 0,
                mispredict: 0,
                redirect: 0,
                purge: 15,
                broadcast: 40,
            },
            disk: DiskProfile::default(),
            network: NetworkProfile::default(),
            iommu: IommuProfile::default(),
            uart: UartProfile::default(),
            options: Options::default(),
            extensions: Extensions::default(),
        }
    }
}

/// All, where a profile does not say.
fn vmid_bits() -> u8 {
    VmidBits::MAX
}

/// As few as there can be, where a profile does not say.
fn pmp_entries() -> u8 {
    PmpEntries::MIN
}

/// Sv48, where a profile does not say.
fn virtual_address_bits() -> u8 {
    Paging::default().bits()
}
