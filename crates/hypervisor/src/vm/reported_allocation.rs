//! Allocation that a guest can read (paper 000 §3.1).

use abi::sbi::{AllocationForm, COMMUNICATION_AREA_SIZE, communication_area};

use crate::memory::address::GuestPhysical;
use crate::memory::guest::GuestMemory;
use crate::memory::physical::Physical;

/// Allocation that a VM's guest reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedAllocation {
    /// Number of harts of its own, 0 if it shares.
    dedicated: u32,
    /// Number of changes since the VM was started.
    changes: u32,
    /// Address of its communication area.
    area: Option<GuestPhysical>,
}

impl ReportedAllocation {
    /// Allocation of a VM that has so many harts of its own.
    #[must_use]
    pub fn new(dedicated: Option<u32>) -> Self {
        Self {
            dedicated: dedicated.unwrap_or(0),
            changes: 0,
            area: None,
        }
    }

    fn form(self) -> AllocationForm {
        match self.dedicated {
            0 => AllocationForm::Shared,
            _ => AllocationForm::Dedicated,
        }
    }

    /// Encodes the allocation as the call returns it.
    #[must_use]
    pub fn code(self) -> u64 {
        u64::from(self.dedicated) << 8 | self.form() as u64
    }

    /// Resets the communication area and the count of changes, when the VM restarts.
    pub fn restart(&mut self) {
        self.changes = 0;
        self.area = None;
    }

    /// Sets the number of dedicated harts, 0 for shared harts, and updates the area.
    pub fn change(&mut self, dedicated: u32, memory: &GuestMemory) {
        self.dedicated = dedicated;
        self.changes = self.changes.wrapping_add(1);
        self.write(memory);
    }

    /// Gives the guest its area at `address`, or takes it away (`u64::MAX`).
    ///
    /// # Errors
    /// The address is no page of the VM's memory.
    pub fn set_area(&mut self, memory: &GuestMemory, address: u64) -> Result<(), NoArea> {
        self.area = match address {
            u64::MAX => None,
            address => {
                let fits = address.is_multiple_of(COMMUNICATION_AREA_SIZE);
                let area = GuestPhysical::new(address);
                if !fits || memory.bytes(area, COMMUNICATION_AREA_SIZE).is_none() {
                    return Err(NoArea);
                }
                Some(area)
            }
        };
        self.write(memory);
        Ok(())
    }

    fn write(self, memory: &GuestMemory) {
        let Some(bytes) = self
            .area
            .and_then(|area| memory.bytes(area, COMMUNICATION_AREA_SIZE))
        else {
            return;
        };
        for (offset, word) in [
            (communication_area::FLAG, self.form() as u32),
            (communication_area::DEDICATED_HARTS, self.dedicated),
            (communication_area::CHANGES, self.changes),
        ] {
            bytes.write_word(offset, word, &Physical::default());
        }
    }
}

/// The guest's area cannot be at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoArea;
