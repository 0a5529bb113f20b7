//! Profiles: what a machine is like, in TOML.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::device::virtio::{Faults, Service};
use crate::extension::Extensions;

use super::mistake::{self, Mistakes};
use super::{Geometry, LINE_SHIFT};

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheProfile {
    /// Bytes.
    pub size: u64,
    /// Lines of a set.
    pub ways: u16,
}

impl CacheProfile {
    /// Sets and ways of 64-byte lines.
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

/// A TLB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbProfile {
    /// Entries, each for a 4 KiB page.
    pub entries: u32,
    /// Entries of a set; as many as there are entries makes it fully associative.
    pub ways: u16,
}

impl TlbProfile {
    /// Sets and ways.
    #[must_use]
    pub fn geometry(self) -> Geometry {
        let ways = usize::from(self.ways.max(1));
        Geometry {
            sets: (self.entries as usize / ways).max(1),
            ways,
        }
    }
}

/// Cycles beyond the first of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A miss of the first-level cache that the second answers.
    pub l2_hit: u64,
    /// A miss of both.
    pub memory: u64,
    /// A miss of the first-level TLB that the second answers.
    pub l2_tlb_hit: u64,
    /// A multiplication.
    pub multiply: u64,
    /// A division or remainder.
    pub divide: u64,
    /// A floating-point computation.
    pub float: u64,
    /// Entry into a trap handler.
    pub trap: u64,
    /// A CSR instruction.
    pub csr: u64,
    /// SRET, MRET, fences of translations, WFI and the like.
    pub system: u64,
    /// FENCE.I.
    pub fence_i: u64,
}

/// Disks: how long they take and how they fail. What is left out takes no time and does not fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskProfile {
    /// Service times.
    pub service: Service,
    /// What goes wrong on purpose.
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
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// A machine's make-up and speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The harts' frequency in hertz.
    pub hertz: u64,
    /// timebase-frequency in hertz.
    pub timebase: u64,
    /// Guest interrupt files a hart, 0..=63.
    pub guest_files: u8,
    /// Cycles that a hart runs before the next one's turn.
    pub quantum: u64,
    /// Cycles after which WRS.NTO traps where it may.
    pub wrs_nto_limit: u64,
    /// Cycles that WRS.STO waits.
    pub wrs_sto_limit: u64,
    /// First-level instruction cache, a hart's own.
    pub l1i: CacheProfile,
    /// First-level data cache, a hart's own.
    pub l1d: CacheProfile,
    /// Second-level cache, shared by all harts.
    pub l2: CacheProfile,
    /// First-level instruction TLB.
    pub itlb: TlbProfile,
    /// First-level data TLB.
    pub dtlb: TlbProfile,
    /// Second-level TLB for both, if there is one.
    #[serde(default)]
    pub l2tlb: Option<TlbProfile>,
    /// Costs in cycles.
    pub costs: Costs,
    /// Disks.
    #[serde(default)]
    pub disk: DiskProfile,
    /// The network.
    #[serde(default)]
    pub network: NetworkProfile,
    /// The UART.
    #[serde(default)]
    pub uart: UartProfile,
    /// Custom extensions: none unless they are named.
    #[serde(default)]
    pub extensions: Extensions,
}

/// Why a profile cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the host says.
        reason: String,
    },
    /// Mistakes in its text.
    #[error("{0}")]
    Mistakes(#[from] Mistakes),
    /// No profile that ships has this name.
    #[error("there is no profile `{0}`: give a file or one of {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// A structure that cannot exist.
    #[error("{what}: sets must be a power of two and at least one, ways 1 to 255")]
    Geometry {
        /// Which one.
        what: &'static str,
    },
}

/// The names of the profiles that ship.
pub const NAMES: [&str; 4] = ["ideal", "rocket-h", "k3-class", "mainframe-1994"];

impl Profile {
    /// A profile from TOML.
    ///
    /// # Errors
    /// [`ProfileError::Mistakes`]: all of them, with lines of `file`, which is only for that.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        Ok(mistake::read(file, text)?)
    }

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
        let text = match name {
            "ideal" => include_str!("../../../../profiles/ideal.toml"),
            "rocket-h" => include_str!("../../../../profiles/rocket-h.toml"),
            "k3-class" => include_str!("../../../../profiles/k3-class.toml"),
            "mainframe-1994" => include_str!("../../../../profiles/mainframe-1994.toml"),
            _ => return Err(ProfileError::Unknown(name.to_owned())),
        };
        Self::parse(name, text)
    }

    /// Checks that such a machine can exist.
    ///
    /// # Errors
    /// [`ProfileError::Geometry`] that names the structure.
    pub fn check(&self) -> Result<(), ProfileError> {
        let lines = |cache: CacheProfile| (cache.size >> LINE_SHIFT, cache.ways);
        let entries = |tlb: TlbProfile| (u64::from(tlb.entries), tlb.ways);
        let structures = [
            ("l1i", lines(self.l1i)),
            ("l1d", lines(self.l1d)),
            ("l2", lines(self.l2)),
            ("itlb", entries(self.itlb)),
            ("dtlb", entries(self.dtlb)),
            ("l2tlb", self.l2tlb.map_or((1, 1), entries)),
        ];
        for (what, (entries, ways)) in structures {
            if !is_possible(entries, ways) {
                return Err(ProfileError::Geometry { what });
            }
        }
        Ok(())
    }
}

/// Whether so many lines or entries can be divided into sets of so many ways.
pub(super) fn is_possible(entries: u64, ways: u16) -> bool {
    let ways = u64::from(ways);
    (1..=255).contains(&ways) && entries.is_multiple_of(ways) && (entries / ways).is_power_of_two()
}

impl Default for Profile {
    /// `k3-class` in shape, for tests and for whoever names no other.
    fn default() -> Self {
        let cache = |size, ways| CacheProfile { size, ways };
        let tlb = |entries, ways| TlbProfile { entries, ways };
        Self {
            hertz: 1_000_000_000,
            timebase: 10_000_000,
            guest_files: 7,
            quantum: 1000,
            wrs_nto_limit: 2000,
            wrs_sto_limit: 200,
            l1i: cache(64 << 10, 4),
            l1d: cache(64 << 10, 4),
            l2: cache(4 << 20, 16),
            itlb: tlb(32, 32),
            dtlb: tlb(32, 32),
            l2tlb: Some(tlb(512, 4)),
            costs: Costs {
                l2_hit: 20,
                memory: 100,
                l2_tlb_hit: 6,
                multiply: 2,
                divide: 20,
                float: 3,
                trap: 15,
                csr: 3,
                system: 15,
                fence_i: 5,
            },
            disk: DiskProfile::default(),
            network: NetworkProfile::default(),
            uart: UartProfile::default(),
            extensions: Extensions::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_usable() {
        for name in NAMES {
            assert!(
                Profile::named(name).is_ok(),
                "{name}: {:?}",
                Profile::named(name)
            );
        }
    }

    #[test]
    fn structures_are_checked_without_a_text_too() {
        let mut profile = Profile::default();
        assert_eq!(profile.check(), Ok(()));
        profile.l1i.ways = 0;
        let what = "l1i";
        assert_eq!(profile.check(), Err(ProfileError::Geometry { what }));
    }
}
