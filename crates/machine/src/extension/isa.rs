//! Which instruction set a hart has.

use crate::base::{PmpEntries, VectorLength};
use crate::vector::extensions;
use serde::{Deserialize, Serialize};

/// Instruction set of the harts, as the device tree tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isa {
    /// `riscv,isa-base`, such as `rv64i`.
    pub base: String,
    /// `riscv,isa-extensions`, in the order in which they are to be listed; single-letter ones
    /// first, in canonical order.
    pub extensions: Vec<String>,
    /// The largest translation mode, such as `riscv,sv48`.
    pub mmu: String,
    /// Size of the blocks of Zicbom, Zicbop and Zicboz in bytes; zero leaves the properties out.
    pub cache_block: u32,
    /// How many bits of VMIDs the harts have.
    pub vmid_bits: VmidBits,
    /// How many entries of physical memory protection the harts have.
    pub pmp_entries: PmpEntries,
    /// How long the harts' vector registers are, if they have any.
    pub vector_length: VectorLength,
}

/// How many bits of hgatp.VMID are implemented, the lowest first (privileged architecture, "Hypervisor Guest Address Translation
/// and Protection Register"): 0 to 14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmidBits(u8);

impl VmidBits {
    /// As many as there can be in an hgatp of 64 bits.
    pub const MAX: u8 = 14;

    /// So many, but not more than there can be.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self(if bits > Self::MAX { Self::MAX } else { bits })
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0
    }

    /// The largest VMID, whose other bits are zero.
    #[must_use]
    pub const fn mask(self) -> u64 {
        (1 << self.0) - 1
    }
}

impl Default for VmidBits {
    fn default() -> Self {
        Self(Self::MAX)
    }
}

impl Isa {
    /// Gives the harts a vector unit with registers of a length, and names what it has; takes nothing away.
    pub fn set_vector_length(&mut self, length: VectorLength) {
        self.vector_length = length;
        if !length.exists() {
            return;
        }
        // Single letters come first, in canonical order: V before H.
        let place = self
            .extensions
            .iter()
            .position(|name| name == "h" || name.len() > 1);
        let place = place.unwrap_or(self.extensions.len());
        self.extensions.insert(place, "v".to_owned());
        self.extensions
            .extend(extensions(length).map(str::to_owned));
    }

    /// The single string that `riscv,isa` holds: the base, the letters, then the rest.
    #[must_use]
    pub fn string(&self) -> String {
        let mut text = self.base.trim_end_matches('i').to_owned();
        for extension in &self.extensions {
            if extension.len() > 1 {
                text.push('_');
            }
            text.push_str(extension);
        }
        text
    }
}
