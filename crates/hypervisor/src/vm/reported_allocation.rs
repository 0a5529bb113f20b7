//! Allocation that a guest can read (paper 000 §3.1).

use core::sync::atomic::{Ordering, fence};

use abi::sbi::{AllocationForm, COMMUNICATION_AREA_SIZE, communication_area};

use crate::memory::address::GuestPhysical;
use crate::memory::guest::{GuestMemory, HostMemory};

/// Allocation that a VM's guest reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedAllocation {
    /// Number of harts of its own, 0 if it shares.
    dedicated: u32,
    /// Number of changes since the VM was started.
    changes: u32,
    /// Address of its communication area.
    area: Option<GuestPhysical>,
    /// Sequence in the area, which is odd while the other words change.
    sequence: u32,
}

impl ReportedAllocation {
    /// Allocation of a VM that has so many harts of its own.
    #[must_use]
    pub fn new(dedicated: Option<u32>) -> Self {
        Self {
            dedicated: dedicated.unwrap_or(0),
            changes: 0,
            area: None,
            sequence: 0,
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

    /// Sets the number of dedicated harts, 0 for shared harts, and updates the area. The guest may run.
    pub fn change(&mut self, dedicated: u32, (memory, host): (&GuestMemory, &impl HostMemory)) {
        self.dedicated = dedicated;
        self.changes = self.changes.wrapping_add(1);
        self.write(memory, host);
    }

    /// Gives the guest its area at `address`, or takes it away (`u64::MAX`).
    ///
    /// # Errors
    /// [`AreaError`]; nothing has changed then.
    pub fn set_area(
        &mut self,
        address: u64,
        (memory, host): (&GuestMemory, &impl HostMemory),
    ) -> Result<(), AreaError> {
        self.area = match address {
            u64::MAX => None,
            address => {
                let fits = address.is_multiple_of(COMMUNICATION_AREA_SIZE);
                let area = GuestPhysical::new(address);
                if !fits || memory.bytes(area, COMMUNICATION_AREA_SIZE).is_none() {
                    return Err(AreaError::InvalidAddress);
                }
                let frame = memory.in_one(area, COMMUNICATION_AREA_SIZE);
                frame.ok_or(AreaError::NoFrame)?;
                Some(area)
            }
        };
        self.write(memory, host);
        Ok(())
    }

    /// Writes the area. The guest may have written the sequence meanwhile, so it is not read from there.
    fn write(&mut self, memory: &GuestMemory, host: &impl HostMemory) {
        let area = self.area;
        let Some(at) = area.and_then(|area| memory.in_one(area, COMMUNICATION_AREA_SIZE)) else {
            return;
        };
        let set = |offset, word: u32| host.set_word(at.skip(offset), word.to_le());
        self.sequence = self.sequence.wrapping_add(2);
        set(communication_area::SEQUENCE, self.sequence.wrapping_sub(1));
        fence(Ordering::Release);
        set(communication_area::FLAG, self.form() as u32);
        set(communication_area::DEDICATED_HARTS, self.dedicated);
        set(communication_area::CHANGES, self.changes);
        fence(Ordering::Release);
        set(communication_area::SEQUENCE, self.sequence);
    }
}

/// Refusal of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaError {
    /// The address is no page of the VM's memory.
    InvalidAddress,
    /// No frame is free for the page.
    NoFrame,
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::vec::Vec;

    use super::*;
    use crate::memory::address::GuestRegion;
    use crate::memory::guest::{Pages, Piece};
    use crate::memory::owned::OwnedRegion;

    const GUEST: u64 = 0x8000_0000;
    const HOST: u64 = 0x4_0000;

    /// The first words of the guest's page: as they were from the start on, after each store.
    struct Host(RefCell<Vec<[u32; 4]>>);

    impl HostMemory for Host {
        fn set_word(&self, at: OwnedRegion, value: u32) {
            let mut seen = self.0.borrow_mut();
            let mut words = *seen.last().unwrap();
            words[((at.base().raw() - HOST) / 4) as usize] = u32::from_le(value);
            seen.push(words);
        }

        fn byte(&self, _: OwnedRegion) -> u8 {
            unreachable!("the area is not read")
        }

        fn set_byte(&self, _: OwnedRegion, _: u8) {
            unreachable!("the area is written by words")
        }

        fn doubleword(&self, _: OwnedRegion) -> u64 {
            unreachable!("the area is not read")
        }

        fn half(&self, _: OwnedRegion) -> u16 {
            unreachable!("the area is not read")
        }

        fn set_half(&self, _: OwnedRegion, _: u16) {
            unreachable!("the area is written by words")
        }

        fn set_doubleword(&self, _: OwnedRegion, _: u64) {
            unreachable!("the area is written by words")
        }

        fn copy(&self, _: OwnedRegion, _: &[u8]) {
            unreachable!("the area is written by words")
        }

        fn zero(&self, _: OwnedRegion) {
            unreachable!("the area is written by words")
        }
    }

    /// Demand-paged memory for which no frame is free.
    struct Exhausted;

    impl Pages for Exhausted {
        fn contiguous_from(&self, _: GuestPhysical) -> Option<OwnedRegion> {
            None
        }

        fn mapped(&self) -> &[Piece] {
            &[]
        }

        fn are_demand_paged(&self) -> bool {
            true
        }
    }

    #[test]
    fn area_without_frame_is_refused() {
        let region = GuestRegion::new(GuestPhysical::new(GUEST), 0x2000).unwrap();
        let exhausted = GuestMemory::of_pages(region, std::boxed::Box::new(Exhausted));
        let host = Host(RefCell::new(vec![[0; 4]]));
        let mut reported = ReportedAllocation::new(Some(2));
        let before = reported;
        for (address, error) in [
            (GUEST, AreaError::NoFrame),
            (GUEST + 4, AreaError::InvalidAddress),
            (GUEST + 0x2000, AreaError::InvalidAddress),
        ] {
            assert_eq!(reported.set_area(address, (&exhausted, &host)), Err(error));
            assert_eq!(reported, before);
        }
        assert_eq!(reported.set_area(u64::MAX, (&exhausted, &host)), Ok(()));
    }

    /// A vCPU reads a word after the other while the operator changes the allocation on another hart, with any stores between two reads.
    #[test]
    fn words_of_even_sequence_agree() {
        let guest = GuestRegion::new(GuestPhysical::new(GUEST), 0x1000).unwrap();
        let host = OwnedRegion::for_test(HOST, 0x1000);
        let memory = GuestMemory::new(vec![Piece { guest, host }]).unwrap();
        let host = Host(RefCell::new(vec![[0x5a5a_5a5a; 4]]));
        let mut reported = ReportedAllocation::new(None);
        reported.set_area(GUEST, (&memory, &host)).unwrap();
        // The guest has its area from here on.
        let (first, mut whole) = (host.0.borrow().len() - 1, vec![[0, 0, 0]]);
        for (changes, dedicated) in (1..).zip([2, 0, 3]) {
            reported.change(dedicated, (&memory, &host));
            whole.push([u32::from(dedicated != 0), dedicated, changes]);
        }
        let seen = &host.0.borrow()[first..];
        let (last, mut agreed) = (seen.len(), vec![0; whole.len()]);
        for before in 0..last {
            for flag in before..last {
                for harts in flag..last {
                    for changes in harts..last {
                        for after in changes..last {
                            let sequence = seen[before][3];
                            if !sequence.is_multiple_of(2) || sequence != seen[after][3] {
                                continue;
                            }
                            let words = [seen[flag][0], seen[harts][1], seen[changes][2]];
                            let place = whole.iter().position(|whole| *whole == words);
                            agreed[place.expect("the words of one change")] += 1;
                        }
                    }
                }
            }
        }
        assert!(agreed.iter().all(|times| *times > 0), "{agreed:?}");
    }
}
