//! The IOMMUs of the computer itself.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Iommu, Port};
use crate::hart::decode::Width;
use crate::hart::{self, device};
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::gstage::TableMemory;
use crate::memory::owned::OwnedRegion;
use crate::memory::tables::PhysicalTables;

/// Registers and tables of an IOMMU of the board.
#[derive(Debug)]
pub struct BoardPort {
    base: u64,
    /// Pages for tables and queues, filled with zeros.
    spare: Vec<OwnedRegion>,
    /// Ticks after which an IOMMU has not answered.
    patience: u64,
}

impl BoardPort {
    /// The IOMMU with registers at `base`.
    ///
    /// # Safety
    /// An IOMMU has its registers there, and `spare` are pages of zeros that nothing else uses from now on.
    #[must_use]
    pub const unsafe fn new(base: u64, spare: Vec<OwnedRegion>, patience: u64) -> Self {
        Self {
            base,
            spare,
            patience,
        }
    }

    fn load(&self, register: u64, width: Width) -> u64 {
        // SAFETY: the registers are the IOMMU's, as `new` was told.
        let value = unsafe { device::load(self.base.wrapping_add(register), width) };
        value.map_or(u64::MAX, u64::from_le)
    }

    fn store(&self, register: u64, width: Width, value: u64) {
        // SAFETY: as for `load`. The driver lets the IOMMU access its own tables and queues, and tables of VMs.
        let _ = unsafe { device::store(self.base.wrapping_add(register), width, value) };
    }
}

impl TableMemory for BoardPort {
    fn read(&self, address: HostPhysical) -> u64 {
        // SAFETY: the address lies in a page that `allocate` gave.
        unsafe { PhysicalTables::standing() }.read(address)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        // SAFETY: as for `read`.
        unsafe { PhysicalTables::standing() }.write(address, value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        let page = self.spare.pop().filter(|page| page.size() == size)?;
        Some(page.base())
    }
}

impl Port for BoardPort {
    fn word(&self, register: u64) -> u32 {
        self.load(register, Width::Word) as u32
    }

    fn set_word(&self, register: u64, value: u32) {
        self.store(register, Width::Word, value.into());
    }

    fn doubleword(&self, register: u64) -> u64 {
        self.load(register, Width::Double)
    }

    fn set_doubleword(&self, register: u64, value: u64) {
        self.store(register, Width::Double, value);
    }

    fn order(&self) {
        hart::memory_before_devices();
        hart::devices_before_memory();
    }

    fn waited(&self, began: &mut Option<u64>) -> bool {
        let now = hart::time();
        now.wrapping_sub(*began.get_or_insert(now)) > self.patience
    }
}

/// Confinement of a VM's devices: IOMMUs that have its G-stage table, and its number there.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    iommus: Vec<Arc<Iommu<BoardPort>>>,
    number: u16,
}

impl Confinement {
    /// The devices of the VM with this number, at these IOMMUs.
    #[must_use]
    pub const fn new(iommus: Vec<Arc<Iommu<BoardPort>>>, number: u16) -> Self {
        Self { iommus, number }
    }

    /// IOMMUs that have not answered, which have just been switched off.
    fn failures(&self, mut each: impl FnMut(&Iommu<BoardPort>) -> bool) -> usize {
        self.iommus.iter().filter(|iommu| !each(iommu)).count()
    }

    /// Drops what IOMMUs know of a page of the VM's table, which has changed. Returns the number of those that have just failed.
    pub fn page_changed(&self, page: GuestPhysical) -> usize {
        self.failures(|iommu| iommu.page_changed(self.number, page))
    }

    /// Begins or ends the accesses of the VM's devices; returns as [`Confinement::page_changed`] does.
    pub fn admit(&self, admitted: bool) -> usize {
        self.failures(|iommu| iommu.admit(self.number, admitted))
    }
}
