//! Area of a guest's memory for the values of a vCPU's counters (RISC-V SBI specification 3.0, "Set PMU snapshot shared memory").
//!
//! The area is an address that the guest named. Each access looks it up in the VM's memory again. It is read only when counters are started from it,
//! and written only when counters are stopped.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use riscv::sbi::NO_SHARED_MEMORY;
use riscv::sbi::performance::{SNAPSHOT_OVERFLOWS, SNAPSHOT_SIZE, SNAPSHOT_VALUES};

use crate::memory::address::GuestPhysical;
use crate::memory::guest::{GuestMemory, HostMemory};
use crate::vm::steal_time::AreaError;

/// Values in the area. A call names counters by a bit each of a doubleword, so a place is below it.
const VALUES: u64 = 64;

/// Area of a vCPU, if its guest has given it one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotArea(Option<GuestPhysical>);

/// Area that was given.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a, H> {
    area: GuestPhysical,
    memory: &'a GuestMemory,
    host: &'a H,
}

impl SnapshotArea {
    /// Sets the area at an address of two halves, or takes it away.
    ///
    /// # Errors
    /// [`AreaError::InvalidParameter`], [`AreaError::InvalidAddress`]; nothing has changed then.
    pub fn set(
        &mut self,
        [low, high, flags]: [u64; 3],
        memory: &GuestMemory,
    ) -> Result<(), AreaError> {
        if flags != 0 {
            return Err(AreaError::InvalidParameter);
        }
        if (low, high) == (NO_SHARED_MEMORY, NO_SHARED_MEMORY) {
            self.0 = None;
            return Ok(());
        }
        if !low.is_multiple_of(SNAPSHOT_SIZE) {
            return Err(AreaError::InvalidParameter);
        }
        let area = GuestPhysical::new(low);
        if high != 0 || memory.bytes(area, SNAPSHOT_SIZE).is_none() {
            return Err(AreaError::InvalidAddress);
        }
        self.0 = Some(area);
        Ok(())
    }

    /// The area in the VM's memory, if there is one.
    #[must_use]
    pub fn get<'a, H>(self, memory: &'a GuestMemory, host: &'a H) -> Option<Snapshot<'a, H>> {
        self.0.map(|area| Snapshot { area, memory, host })
    }
}

impl<H: HostMemory> Snapshot<'_, H> {
    fn at(&self, place: u64) -> Option<GuestPhysical> {
        (place < VALUES)
            .then(|| self.area.checked_add(SNAPSHOT_VALUES + 8 * place))
            .flatten()
    }

    /// Value of the counter at `place` behind the call's first one. `None` if there is no frame for the page.
    #[must_use]
    pub fn value(&self, place: u64) -> Option<u64> {
        self.memory.doubleword(self.at(place)?, self.host)
    }

    /// Writes the value of the counter at `place` behind the call's first one. `None` if there is no frame for the page.
    #[must_use]
    pub fn set_value(&self, place: u64, value: u64) -> Option<()> {
        self.memory
            .set_doubleword(self.at(place)?, value, self.host)
    }

    /// Writes which counters have overflowed, a bit each from the call's first one on. `None` if there is no frame for the page.
    #[must_use]
    pub fn set_overflows(&self, overflows: u64) -> Option<()> {
        let at = self.area.checked_add(SNAPSHOT_OVERFLOWS)?;
        self.memory.set_doubleword(at, overflows, self.host)
    }
}

#[cfg(test)]
mod tests;
