//! The G-stage tables in the machine's memory.

use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::TableMemory;

/// Table memory by its physical address; the hypervisor runs untranslated.
#[derive(Debug)]
pub struct PhysicalTables<'a> {
    /// Where new tables come from, and whose they are; without it none can be made, only changed.
    pub frames: Option<(&'a mut Frames, FrameOwner)>,
}

impl TableMemory for PhysicalTables<'_> {
    fn read(&self, address: HostPhysical) -> u64 {
        // SAFETY: the address lies in a table that `allocate` gave, which nothing else uses.
        unsafe { (address.raw() as *const u64).read_volatile() }
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        // SAFETY: as for `read`; harts that walk the table at the same time see the old entry or the new one.
        unsafe { (address.raw() as *mut u64).write_volatile(value) };
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        let (frames, owner) = self.frames.as_mut()?;
        let region = frames.give(*owner, size, size)?;
        for offset in (0..size).step_by(PAGE_SIZE as usize) {
            let page = (region.base().raw() + offset) as *mut u8;
            // SAFETY: the frame allocator has just given these pages to nobody else.
            unsafe { page.write_bytes(0, PAGE_SIZE as usize) };
        }
        Some(region.base())
    }
}
