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
