//! Values that a hart's hgatp can hold: the modes and the VMID bits, found out by writing and reading back.
//!
//! MODE and VMID are WARL: a mode that the hart does not have becomes another one, Bare among them, and VMID bits above
//! VMIDLEN stay 0 (privileged architecture, "Hypervisor Guest Address Translation and Protection Register"). In mode Bare a
//! guest's addresses are the host's, so nothing is run before the mode is known.

use riscv::csr::address_translation::{MODE_SHIFT, VMID_SHIFT};

use super::Mode;
use crate::hart::csr::{self, number};
use crate::memory::translations::{MAX_TAG_BITS, Tags};

/// hgatp of the hart that runs this. No guest runs there.
pub trait Register {
    /// Writes it.
    fn write(&mut self, value: u64);
    /// Reads it.
    fn read(&self) -> u64;
}

/// The register of the hart that runs this.
#[derive(Debug)]
pub struct HartRegister;

impl Register for HartRegister {
    fn write(&mut self, value: u64) {
        // SAFETY: hgatp concerns guests alone, and none runs on this hart while it is looked into.
        unsafe { csr::write::<{ number::HGATP }>(value) };
    }

    fn read(&self) -> u64 {
        csr::read::<{ number::HGATP }>()
    }
}

/// Values that hgatp can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    sv39x4: bool,
    sv48x4: bool,
    tag_bits: u32,
}

/// A hart cannot confine guests as the system needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoConfinement {
    /// No mode of hgatp translates all guest-physical addresses.
    #[error(
        "guests cannot be confined: hgatp has no mode for {needed:#x} bytes of guest-physical addresses"
    )]
    Mode {
        /// The end of the guest-physical addresses.
        needed: u64,
    },
    /// A hart has fewer modes or VMIDs than the first one.
    #[error(
        "guests cannot be confined: this hart's hgatp has fewer modes or VMID bits than the first hart's"
    )]
    Less,
}

impl Offer {
    /// Tries the modes and the VMID bits, and leaves 0 in the register. The translations of both stages must be dropped afterwards.
    #[must_use]
    pub fn find(register: &mut impl Register) -> Self {
        let mut has = |mode: Mode| {
            register.write(mode.field() << MODE_SHIFT);
            register.read() >> MODE_SHIFT == mode.field()
        };
        let (sv39x4, sv48x4) = (has(Mode::Sv39x4), has(Mode::Sv48x4));
        let mode = if sv39x4 { Mode::Sv39x4 } else { Mode::Sv48x4 };
        let most = (1u64 << MAX_TAG_BITS) - 1;
        register.write(mode.field() << MODE_SHIFT | most << VMID_SHIFT);
        // The implemented bits are the lowest.
        let tag_bits = (register.read() >> VMID_SHIFT & most).trailing_ones();
        register.write(0);
        Self {
            sv39x4,
            sv48x4,
            tag_bits,
        }
    }

    /// The mode with the fewest levels that translates all guest-physical addresses below `limit`.
    ///
    /// # Errors
    /// [`NoConfinement::Mode`].
    pub fn mode_for(self, limit: u64) -> Result<Mode, NoConfinement> {
        [(Mode::Sv39x4, self.sv39x4), (Mode::Sv48x4, self.sv48x4)]
            .into_iter()
            .find(|(mode, has)| *has && limit <= mode.limit())
            .map(|(mode, _)| mode)
            .ok_or(NoConfinement::Mode { needed: limit })
    }

    /// The VMIDs.
    #[must_use]
    pub const fn tags(self) -> Tags {
        Tags::with_bits(self.tag_bits)
    }

    /// Tests whether another hart's tables and tags can be used here too.
    ///
    /// # Errors
    /// [`NoConfinement::Less`].
    pub fn covers(self, other: Self) -> Result<(), NoConfinement> {
        let covers = (self.sv39x4 || !other.sv39x4)
            && (self.sv48x4 || !other.sv48x4)
            && self.tag_bits >= other.tag_bits;
        covers.then_some(()).ok_or(NoConfinement::Less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// hgatp with these modes and VMID bits; a mode that is not there becomes `instead`.
    struct Model {
        modes: &'static [u64],
        bits: u32,
        instead: u64,
        value: u64,
    }

    impl Register for Model {
        fn write(&mut self, value: u64) {
            let asked = value >> MODE_SHIFT;
            let mode = if asked == 0 || self.modes.contains(&asked) {
                asked
            } else {
                self.instead
            };
            let tag = value >> VMID_SHIFT & ((1 << self.bits) - 1);
            self.value = mode << MODE_SHIFT | tag << VMID_SHIFT | value & ((1 << VMID_SHIFT) - 1);
        }

        fn read(&self) -> u64 {
            self.value
        }
    }

    fn find(modes: &'static [u64], bits: u32, instead: u64) -> Offer {
        let mut model = Model {
            modes,
            bits,
            instead,
            value: 0,
        };
        let offer = Offer::find(&mut model);
        assert_eq!(model.value, 0);
        offer
    }

    #[test]
    fn a_mode_that_becomes_bare_is_refused() {
        let offer = find(&[], 14, 0);
        assert_eq!(
            offer.mode_for(0x1000),
            Err(NoConfinement::Mode { needed: 0x1000 })
        );
        let three = find(&[8], 14, 0);
        assert_eq!(three.mode_for(1 << 41), Ok(Mode::Sv39x4));
        assert!(three.mode_for((1 << 41) + 1).is_err());
    }

    #[test]
    fn unsupported_mode_is_absent() {
        let four = find(&[9], 7, 9);
        assert_eq!(four.mode_for(0x1000), Ok(Mode::Sv48x4));
        let three = find(&[8], 7, 8);
        assert!(three.mode_for(1 << 45).is_err());
        assert_eq!(find(&[8, 9], 7, 8).mode_for(1 << 45), Ok(Mode::Sv48x4));
    }

    #[test]
    fn vmid_bits_are_counted() {
        for bits in 0..=14 {
            let offer = find(&[8, 9], bits, 0);
            assert_eq!(offer.tags(), Tags::with_bits(bits), "{bits}");
        }
    }

    #[test]
    fn a_weaker_hart_is_refused() {
        let first = find(&[8, 9], 7, 0);
        assert_eq!(find(&[8, 9], 14, 0).covers(first), Ok(()));
        assert_eq!(find(&[8], 14, 0).covers(first), Err(NoConfinement::Less));
        assert_eq!(find(&[8, 9], 6, 0).covers(first), Err(NoConfinement::Less));
    }
}
