//! G-stage tables in the host's memory.

use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::TableMemory;
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;
use crate::memory::physical::Physical;
use crate::memory::shadow;

/// Gives memory for tables and pages.
pub trait FrameSource {
    /// Gives `size` bytes, [`PAGE_SIZE`] or the size of a root table, at a multiple of that.
    fn give(&mut self, size: u64) -> Option<OwnedRegion>;
}

/// Frames of one owner, while the system is assembled.
impl FrameSource for (&mut Frames, FrameOwner) {
    fn give(&mut self, size: u64) -> Option<OwnedRegion> {
        self.0.give(self.1, size, size)
    }
}

/// Table memory by its physical address; the hypervisor runs untranslated.
pub struct PhysicalTables<'a> {
    /// Source of new tables; without it tables can be changed, but none made.
    frames: Option<&'a mut dyn FrameSource>,
    /// Memory access that zeroes new tables.
    memory: Physical,
}

impl core::fmt::Debug for PhysicalTables<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter
            .debug_struct("PhysicalTables")
            .finish_non_exhaustive()
    }
}

impl<'a> PhysicalTables<'a> {
    /// Complete tables.
    ///
    /// # Safety
    /// It is used for tables alone whose memory [`Self::growing`] gave, and that were not given back.
    #[must_use]
    pub const unsafe fn standing() -> Self {
        Self {
            frames: None,
            memory: Physical { zero_block: None },
        }
    }

    /// Tables to which more are added out of these frames.
    ///
    /// # Safety
    /// As for [`Self::standing`].
    #[must_use]
    pub const unsafe fn growing(frames: &'a mut dyn FrameSource, memory: Physical) -> Self {
        Self {
            frames: Some(frames),
            memory,
        }
    }
}

impl TableMemory for PhysicalTables<'_> {
    fn read(&self, address: HostPhysical) -> u64 {
        // SAFETY: the address lies in a table that `allocate` gave, which nothing else uses: this is used for no other tables.
        unsafe { (address.raw() as *const u64).read_volatile() }
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        // SAFETY: as for `read`; harts that walk the table at the same time see the old entry or the new one.
        unsafe { (address.raw() as *mut u64).write_volatile(value) };
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        let region = self.frames.as_mut()?.give(size)?;
        self.memory.zero(region);
        Some(region.base())
    }
}

/// Frames of shadow tables, zeroed by the calling hart's means.
#[derive(Clone, Copy, Debug)]
pub struct ShadowFrames(Physical);

impl ShadowFrames {
    /// Frames that are zeroed by `memory`.
    ///
    /// # Safety
    /// It is used for tables alone that lie in memory which the frame allocator gave for them.
    #[must_use]
    pub const unsafe fn new(memory: Physical) -> Self {
        Self(memory)
    }
}

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
        if let Some(frame) = HostRegion::new(at, PAGE_SIZE) {
            // SAFETY: it is a whole frame of the vCPU's shadow tables, as `new` was told.
            self.0.zero(unsafe { OwnedRegion::new(frame) });
        }
    }
}
