//! The G-stage tables in the machine's memory.

use crate::memory::address::HostPhysical;
use crate::memory::address::PAGE_SIZE;
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::TableMemory;
use crate::memory::guest::HostMemory;
use crate::memory::physical::Physical;
use crate::memory::shadow;

/// Table memory by its physical address; the hypervisor runs untranslated.
#[derive(Debug)]
pub struct PhysicalTables<'a> {
    /// Where new tables come from, and whose they are; without it none can be made, only changed.
    frames: Option<(&'a mut Frames, FrameOwner)>,
    /// How new tables are zeroed.
    memory: Physical,
}

impl<'a> PhysicalTables<'a> {
    /// Tables that stand.
    #[must_use]
    pub const fn standing() -> Self {
        Self {
            frames: None,
            memory: Physical { zero_block: None },
        }
    }

    /// Tables to which more are added out of these frames.
    #[must_use]
    pub const fn growing(frames: &'a mut Frames, owner: FrameOwner, memory: Physical) -> Self {
        Self {
            frames: Some((frames, owner)),
            memory,
        }
    }
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
        // The frame allocator has just given these pages to nobody else.
        self.memory.zero(region.base(), size);
        Some(region.base())
    }
}

/// The frames of shadow tables, zeroed as the hart that runs this does it.
#[derive(Clone, Copy, Debug)]
pub struct ShadowFrames(pub Physical);

impl shadow::TableMemory for ShadowFrames {
    fn read(&self, at: HostPhysical) -> u64 {
        // SAFETY: the address lies in a frame of the vCPU's shadow tables, which nothing else uses, and is a multiple of 8.
        unsafe { (at.raw() as *const u64).read_volatile() }
    }

    fn write(&mut self, at: HostPhysical, value: u64) {
        // SAFETY: as for `read`; a hart that walks the table sees the old entry or the new one.
        unsafe { (at.raw() as *mut u64).write_volatile(value) };
    }

    fn clear(&mut self, at: HostPhysical) {
        // It is a whole frame of the vCPU's shadow tables.
        self.0.zero(at, PAGE_SIZE);
    }
}
