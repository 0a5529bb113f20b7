//! The IOMMUs of the computer itself.

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
    iommus: Vec<&'static Iommu<BoardPort>>,
    number: u16,
}

impl Confinement {
    /// The devices of the VM with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        let iommus = Vec::new();
        Self { iommus, number }
    }

    /// Adds an IOMMU that has the VM's table, unless it is there.
    pub fn add(&mut self, iommu: &'static Iommu<BoardPort>) {
        if !self.iommus.iter().any(|own| core::ptr::eq(*own, iommu)) {
            self.iommus.push(iommu);
        }
    }

    /// Drops what IOMMUs know of a page of the VM's table, which has changed.
    #[inline(never)]
    pub fn page_changed(&self, page: GuestPhysical) {
        for iommu in &self.iommus {
            iommu.page_changed(self.number, page);
        }
    }

    /// Drops what IOMMUs know of the VM's table, of which many pages have changed.
    #[inline(never)]
    pub fn table_changed(&self) {
        for iommu in &self.iommus {
            iommu.table_changed(self.number);
        }
    }

    /// Begins or ends the accesses of the VM's devices.
    #[inline(never)]
    pub fn admit(&self, admitted: bool) {
        for iommu in &self.iommus {
            iommu.admit(self.number, admitted);
        }
    }
}
