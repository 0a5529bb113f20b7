//! Values that a hart's vsatp can hold: the modes and the ASID bits, found out by writing and reading back (privileged architecture, "Virtual
//! Supervisor Address Translation and Protection Register": WARL as satp is).

use riscv::csr::address_translation::{ASID_MAX, ASID_SHIFT, MODE_SHIFT, SV39, SV57};
use scheduler::MAX_NUMBERS;

use super::dropped::SPACES;
use crate::hart::csr::{self, number};
use crate::memory::gstage::offer::Register;

/// vsatp of the hart that runs this, whose hgatp is Bare. No guest runs there.
#[derive(Debug)]
pub struct VirtualSpace;

impl Register for VirtualSpace {
    fn write(&mut self, value: u64) {
        // SAFETY: vsatp concerns guests alone, and none runs on this hart while it is looked into.
        unsafe { csr::write::<{ number::VSATP }>(value) };
    }

    fn read(&self) -> u64 {
        csr::read::<{ number::VSATP }>()
    }
}

/// Sv39, Sv48 and Sv57.
const FIRST_MODE: u64 = SV39;
const LAST_MODE: u64 = SV57;

/// A hart's vsatp holds other modes or ASIDs than the first hart's. A mode that it lacks would leave vsatp as it was, with
/// nothing to confine the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "translation = \"shadow\" needs the same modes and ASID bits in vsatp of all harts, and this hart's differ from the first hart's"
)]
pub struct OtherSpaces;

/// Values that vsatp can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceOffer {
    /// A bit for each mode.
    modes: u16,
    asids: u16,
}

impl SpaceOffer {
    /// Tries the modes and the ASID bits, and leaves 0 in the register. The translations of the VS-stage must be dropped afterwards.
    #[must_use]
    pub fn find(register: &mut impl Register) -> Self {
        let mut modes = 1;
        let mut asids = 0;
        for mode in FIRST_MODE..=LAST_MODE {
            register.write(mode << MODE_SHIFT | ASID_MAX << ASID_SHIFT);
            let kept = register.read();
            if kept >> MODE_SHIFT == mode {
                modes |= 1 << mode;
                asids = (kept >> ASID_SHIFT & ASID_MAX) as u16;
            }
            register.write(0);
        }
        Self { modes, asids }
    }

    /// Tests whether the guest's view of another hart's vsatp holds for this hart's too.
    ///
    /// # Errors
    /// [`OtherSpaces`].
    pub fn is(self, other: Self) -> Result<(), OtherSpaces> {
        (self == other).then_some(()).ok_or(OtherSpaces)
    }

    /// Value of satp after `value` was written to it; `None` where the write has no effect.
    #[must_use]
    pub const fn written(self, value: u64) -> Option<u64> {
        if self.modes >> (value >> MODE_SHIFT) & 1 == 0 {
            return None;
        }
        Some(value & !((ASID_MAX & !(self.asids as u64)) << ASID_SHIFT))
    }

    /// The address space identifier that an operand of a fence names: the hart looks at no more bits than it has (privileged
    /// architecture, "Supervisor Memory-Management Fence Instruction").
    #[must_use]
    pub const fn named(self, operand: u64) -> u16 {
        operand as u16 & self.asids
    }

    /// The ASID of a vCPU's space, by the vCPU's place among all and the space's number; `None` where there are too few
    /// for all of the first vCPUs, or for all of the others.
    #[must_use]
    pub fn asid(self, vcpu: usize, space: usize) -> Option<u16> {
        let bits = if vcpu < FIRST {
            FIRST_TAG_BITS
        } else {
            TAG_BITS
        };
        let enough = self.asids.trailing_ones() >= bits;
        // ASID 0 is no vCPU's: it is the ASID of a hart without ASIDs.
        let asid = 1 + vcpu * SPACES + space;
        u16::try_from(asid).ok().filter(|_| enough)
    }
}

/// Number of vCPUs that have ASIDs if there are too few for all.
const FIRST: usize = 64;

/// Bits of the largest ASID that a space of the first vCPUs has.
const FIRST_TAG_BITS: u32 = (FIRST * SPACES).ilog2() + 1;

/// Bits of the largest ASID that a space has.
const TAG_BITS: u32 = (MAX_NUMBERS * SPACES).ilog2() + 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// A vsatp of a hart with these modes and ASID bits.
    struct Satp {
        modes: &'static [u64],
        asids: u64,
        value: u64,
    }

    impl Register for Satp {
        fn write(&mut self, value: u64) {
            let mode = value >> 60;
            if mode == 0 || self.modes.contains(&mode) {
                self.value = value & !((0xffff & !self.asids) << 44);
            }
        }

        fn read(&self) -> u64 {
            self.value
        }
    }

    fn offer(modes: &'static [u64], asids: u64) -> SpaceOffer {
        let mut register = Satp {
            modes,
            asids,
            value: 0,
        };
        let offer = SpaceOffer::find(&mut register);
        assert_eq!(register.value, 0);
        offer
    }

    #[test]
    fn write_acts_like_the_harts_satp() {
        let sv39 = offer(&[8], 0xff);
        assert_eq!(
            sv39.written(8 << 60 | 0x1ff << 44 | 5),
            Some(8 << 60 | 0xff << 44 | 5)
        );
        assert_eq!(sv39.written(9 << 60 | 5), None);
        assert_eq!(sv39.written(3 << 60), None);
        assert_eq!(sv39.written(0), Some(0));
        assert_eq!(
            offer(&[8, 9, 10], 0).written(10 << 60 | 7 << 44),
            Some(10 << 60)
        );
    }

    #[test]
    fn harts_that_differ_are_refused() {
        let first = offer(&[8, 9], 0x3ff);
        assert_eq!(first.is(first), Ok(()));
        for other in [
            offer(&[8], 0x3ff),
            offer(&[8, 9, 10], 0x3ff),
            offer(&[8, 9], 0xff),
        ] {
            assert_eq!(other.is(first), Err(OtherSpaces));
        }
    }

    #[test]
    fn fence_uses_only_implemented_asid_bits() {
        assert_eq!(offer(&[8], 0xff).named(0x1_0105), 5);
        assert_eq!(offer(&[8], 0xffff).named(0x1_0105), 0x105);
    }

    #[test]
    fn spaces_all_have_asids_or_none() {
        for (asids, vcpus) in [(0xfff, FIRST), (0x7fff, MAX_NUMBERS)] {
            let all = offer(&[8], asids);
            let mut seen = std::collections::BTreeSet::new();
            for vcpu in 0..vcpus {
                for space in 0..SPACES {
                    let asid = all.asid(vcpu, space).unwrap();
                    assert!(asid != 0 && u64::from(asid) <= asids && seen.insert(asid));
                }
            }
        }
        assert_eq!(offer(&[8], 0x3fff).asid(FIRST, 0), None);
        assert_eq!(offer(&[8], 0x7ff).asid(0, 0), None);
        assert_eq!(offer(&[8], 0).asid(0, 0), None);
    }
}
