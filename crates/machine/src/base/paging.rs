//! Which virtual-memory schemes a hart has.

use serde::{Deserialize, Serialize};

/// The widest virtual-memory scheme of a hart. It has the narrower ones too, and the same for the
/// G-stage: privileged specification, "Supervisor Address Translation and Protection (satp)
/// Register" and "Hypervisor Guest Address Translation and Protection (hgatp) Register".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Paging {
    /// Three levels of tables.
    Sv39,
    /// Four levels.
    #[default]
    Sv48,
    /// Five levels.
    Sv57,
}

impl Paging {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sv39, Self::Sv48, Self::Sv57];

    /// Bits of a virtual address.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Sv39 => 39,
            Self::Sv48 => 48,
            Self::Sv57 => 57,
        }
    }

    /// The `mmu-type` of device trees.
    #[must_use]
    pub const fn mmu_type(self) -> &'static str {
        match self {
            Self::Sv39 => "riscv,sv39",
            Self::Sv48 => "riscv,sv48",
            Self::Sv57 => "riscv,sv57",
        }
    }

    /// The scheme of virtual addresses with so many bits.
    #[must_use]
    pub fn of_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|paging| paging.bits() == bits)
    }

    /// The scheme of an `mmu-type`.
    #[must_use]
    pub fn of_mmu_type(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|paging| paging.mmu_type() == name)
    }

    /// Tests whether MODE of a satp, vsatp or hgatp is Bare or a scheme of the hart.
    #[must_use]
    pub const fn supports(self, atp: u64) -> bool {
        match levels(atp) {
            Some(levels) => 12 + 9 * levels <= self.bits() as u32,
            None => atp >> 60 == 0,
        }
    }
}

/// The levels of tables that MODE of a satp, vsatp or hgatp asks for; `None` for Bare and for what
/// is reserved.
#[must_use]
pub const fn levels(atp: u64) -> Option<u32> {
    match atp >> 60 {
        8 => Some(3),
        9 => Some(4),
        10 => Some(5),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_brings_the_narrower_ones() {
        let supported =
            |paging: Paging| (0..16_u64).filter(move |mode| paging.supports(mode << 60));
        assert!(supported(Paging::Sv39).eq([0, 8]));
        assert!(supported(Paging::Sv48).eq([0, 8, 9]));
        assert!(supported(Paging::Sv57).eq([0, 8, 9, 10]));
    }

    #[test]
    fn names_lead_back() {
        for paging in Paging::ALL {
            assert_eq!(Paging::of_mmu_type(paging.mmu_type()), Some(paging));
            assert_eq!(Paging::of_bits(paging.bits()), Some(paging));
        }
    }
}
