//! Area of a guest's memory for the configurations of its triggers. Each access looks it up in the VM's memory again.

use riscv::sbi::NO_SHARED_MEMORY;
use riscv::sbi::debug_triggers::{ENTRY_SIZE, ENTRY_WORDS};

use crate::memory::address::GuestPhysical;
use crate::memory::guest::{GuestMemory, HostMemory};
use crate::vm::steal_time::AreaError;

/// Area of a vCPU, if its guest has given it one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriggerArea(Option<GuestPhysical>);

/// Area that was given.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a, H> {
    area: GuestPhysical,
    memory: &'a GuestMemory,
    host: &'a H,
}

impl TriggerArea {
    /// Sets the area for `max` triggers at an address of two halves, or takes it away (FID #1).
    ///
    /// # Errors
    /// [`AreaError::InvalidParameter`], [`AreaError::InvalidAddress`]; nothing has changed then.
    pub fn set(
        &mut self,
        [low, high, flags]: [u64; 3],
        max: usize,
        memory: &GuestMemory,
    ) -> Result<(), AreaError> {
        if flags != 0 {
            return Err(AreaError::InvalidParameter);
        }
        if (low, high) == (NO_SHARED_MEMORY, NO_SHARED_MEMORY) {
            self.0 = None;
            return Ok(());
        }
        if !low.is_multiple_of(8) {
            return Err(AreaError::InvalidParameter);
        }
        let area = GuestPhysical::new(low);
        if high != 0 || memory.bytes(area, ENTRY_SIZE * max as u64).is_none() {
            return Err(AreaError::InvalidAddress);
        }
        self.0 = Some(area);
        Ok(())
    }

    /// The area in the VM's memory, if there is one.
    #[must_use]
    pub fn get<'a, H>(self, memory: &'a GuestMemory, host: &'a H) -> Option<Shared<'a, H>> {
        self.0.map(|area| Shared { area, memory, host })
    }
}

impl<H: HostMemory> Shared<'_, H> {
    fn at(&self, entry: usize, word: u64) -> Option<GuestPhysical> {
        self.area.checked_add(ENTRY_SIZE * entry as u64 + 8 * word)
    }

    /// Words of an entry, each read once: the guest may change them meanwhile. `None` if there is no frame for the page.
    #[must_use]
    pub fn read(&self, entry: usize) -> Option<[u64; ENTRY_WORDS as usize]> {
        let mut words = [0; ENTRY_WORDS as usize];
        for (place, word) in (0..).zip(&mut words) {
            *word = self.memory.doubleword(self.at(entry, place)?, self.host)?;
        }
        Some(words)
    }

    /// Writes the first words of an entry. `None` if there is no frame for the page.
    #[must_use]
    pub fn write(&self, entry: usize, words: &[u64]) -> Option<()> {
        for (place, word) in (0..).zip(words) {
            let at = self.at(entry, place)?;
            self.memory.set_doubleword(at, *word, self.host)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::memory::Host;
    use crate::memory::address::GuestRegion;
    use crate::memory::owned::OwnedRegion;

    const GUEST: u64 = 0x8000_0000;
    const HOST: u64 = 0x4000;
    const MAX: usize = 4;

    /// A page of a guest.
    fn memory() -> GuestMemory {
        let guest = GuestRegion::new(GuestPhysical::new(GUEST), 0x1000).unwrap();
        GuestMemory::in_one_piece(guest, OwnedRegion::for_test(HOST, 0x1000)).unwrap()
    }

    #[test]
    fn area_is_checked() {
        let memory = memory();
        let mut area = TriggerArea::default();
        assert!(area.get(&memory, &Host::new(0x8000)).is_none());
        // The last four entries of the page.
        area.set([GUEST + 0xf80, 0, 0], MAX, &memory).unwrap();
        let before = area;
        for (arguments, error) in [
            ([GUEST, 0, 1], AreaError::InvalidParameter),
            ([u64::MAX, u64::MAX, 1], AreaError::InvalidParameter),
            ([GUEST + 4, 0, 0], AreaError::InvalidParameter),
            ([u64::MAX, 0, 0], AreaError::InvalidParameter),
            ([GUEST, 1, 0], AreaError::InvalidAddress),
            ([GUEST, u64::MAX, 0], AreaError::InvalidAddress),
            ([GUEST + 0xf88, 0, 0], AreaError::InvalidAddress),
            ([GUEST - 8, 0, 0], AreaError::InvalidAddress),
            ([u64::MAX - 7, 0, 0], AreaError::InvalidAddress),
        ] {
            let answer = area.set(arguments, MAX, &memory);
            assert_eq!(answer, Err(error), "{arguments:x?}");
            assert_eq!(area, before);
        }
        area.set([u64::MAX, u64::MAX, 0], MAX, &memory).unwrap();
        assert_eq!(area, TriggerArea::default());
    }

    #[test]
    fn entries_have_the_specified_places() {
        let (memory, host) = (memory(), Host::new(0x8000));
        let mut area = TriggerArea::default();
        area.set([GUEST + 0x100, 0, 0], MAX, &memory).unwrap();
        let shared = area.get(&memory, &host).unwrap();
        shared.write(3, &[1, 2, 3, 4]).unwrap();
        assert_eq!(host.get(HOST + 0x100 + 3 * 32 + 8), 2u64.to_ne_bytes());
        shared.write(3, &[9]).unwrap();
        assert_eq!(shared.read(3), Some([9, 2, 3, 4]));
        let unwritten = u64::from_ne_bytes([0x5a; 8]);
        assert_eq!(shared.read(2), Some([unwritten; 4]));
    }
}
