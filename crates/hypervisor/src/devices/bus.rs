//! A VM's bus: owners of guest-physical addresses, besides memory.
//!
//! A range has an owner. Some owners are mapped and answer without the hypervisor; an access that traps is given to the
//! owner's emulation, with its offset in the range. How a device is added stands in `TRAPPED.md`.

use alloc::vec::Vec;

use crate::devices::trapped_devices::DeviceNumber;
use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};

/// Owner of a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A device whose registers trap.
    Trapped(DeviceNumber),
    /// The vCPUs' interrupt files, a page each. Files of a hart are mapped, and do not trap.
    InterruptFiles,
    /// Pages that come and go: those that a VM which serves others is granted.
    Window,
    /// Device of the board. It is mapped; accesses that trap are not for it.
    Direct,
}

/// Two ranges of a bus would overlap, or a range exceeds the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no room at {0} on the VM's bus")]
pub struct NoRoom(pub GuestPhysical);

/// A VM's bus.
#[derive(Clone, Debug, Default)]
pub struct Bus {
    ranges: Vec<(GuestRegion, Owner)>,
}

impl Bus {
    /// Gives `size` bytes from `base` to `owner`.
    ///
    /// # Errors
    /// [`NoRoom`], if a part of the range belongs to another owner already.
    pub fn add(&mut self, base: GuestPhysical, size: u64, owner: Owner) -> Result<(), NoRoom> {
        let region = GuestRegion::new(base, size).ok_or(NoRoom(base))?;
        if self.ranges.iter().any(|(other, _)| other.overlaps(region)) {
            return Err(NoRoom(base));
        }
        self.ranges.push((region, owner));
        Ok(())
    }

    /// Owner of `address`, and the offset of `address` in the owner's range.
    #[inline]
    #[must_use]
    pub fn at(&self, address: GuestPhysical) -> Option<(Owner, u64)> {
        let (region, owner) = self
            .ranges
            .iter()
            .find(|(region, _)| region.contains(address))?;
        Some((*owner, address.raw() - region.base().raw()))
    }
}

/// vCPU whose page an offset in [`Owner::InterruptFiles`] lies in, and the offset in the page.
#[must_use]
pub fn interrupt_file(offset: u64) -> (usize, u64) {
    ((offset / PAGE_SIZE) as usize, offset % PAGE_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APLIC: Owner = Owner::Trapped(DeviceNumber::CONTROLLER);

    fn address(raw: u64) -> GuestPhysical {
        GuestPhysical::new(raw)
    }

    #[test]
    fn addresses_belong_to_their_range() {
        let mut bus = Bus::default();
        bus.add(address(0x1000), 0x100, APLIC).unwrap();
        bus.add(address(0x1100), 0x1000, Owner::Direct).unwrap();
        bus.add(address(0x4000), 0x3000, Owner::InterruptFiles)
            .unwrap();
        for (raw, expected) in [
            (0xfff, None),
            (0x1000, Some((APLIC, 0))),
            (0x10ff, Some((APLIC, 0xff))),
            (0x1100, Some((Owner::Direct, 0))),
            (0x20ff, Some((Owner::Direct, 0xfff))),
            (0x2100, None),
            (0x6fff, Some((Owner::InterruptFiles, 0x2fff))),
            (0x7000, None),
            (u64::MAX, None),
        ] {
            assert_eq!(bus.at(address(raw)), expected, "{raw:#x}");
        }
        assert_eq!(interrupt_file(0x2004), (2, 4));
    }

    #[test]
    fn ranges_do_not_overlap() {
        let mut bus = Bus::default();
        bus.add(address(0x1000), 0x1000, APLIC).unwrap();
        for (base, size) in [
            (0x1000, 1),
            (0x1fff, 1),
            (0, 0x1001),
            (0, u64::MAX),
            (u64::MAX, 2),
        ] {
            let refused = bus.add(address(base), size, Owner::InterruptFiles);
            assert_eq!(refused, Err(NoRoom(address(base))), "{base:#x}");
        }
        bus.add(address(0x2000), 0x1000, Owner::InterruptFiles)
            .unwrap();
        assert_eq!(bus.at(address(0x1fff)), Some((APLIC, 0xfff)));
    }
}
