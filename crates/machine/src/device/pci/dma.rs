//! Accesses that devices behind the bridge make by themselves.

use crate::board::map;
use crate::device::iommu::{Access, Iommu, Place, Request};
use crate::device::target::Target;
use crate::device::{AccessFault, Cycles, DevicesConfig, Memory, Msi};

/// Bytes of a page: an access is translated page by page.
const PAGE: u64 = map::IMSIC_PAGE;
/// Pages of a request that are translated ahead, at most.
const MAX_PAGES: u64 = 1 << 14;

/// Memory and the interrupt files behind it, as the IOMMU and devices reach them by physical addresses.
pub(crate) struct Bus<'a> {
    memory: &'a mut dyn Memory,
    config: &'a DevicesConfig,
    /// Words that were stored to interrupt files.
    pub messages: Vec<Msi>,
}

impl<'a> Bus<'a> {
    pub fn new(memory: &'a mut dyn Memory, config: &'a DevicesConfig) -> Self {
        Self {
            memory,
            config,
            messages: Vec::new(),
        }
    }
}

impl Memory for Bus<'_> {
    fn load(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), AccessFault> {
        self.memory.load(address, buffer)
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        if self.memory.contains(address, bytes.len() as u64) {
            return self.memory.store(address, bytes);
        }
        let word = bytes.try_into().map_err(|_| AccessFault)?;
        match Target::of(address, 4, self.config) {
            Some(Target::Imsic(..)) if address.is_multiple_of(4) => {
                let data = u32::from_le_bytes(word);
                self.messages.push(Msi { address, data });
                Ok(())
            }
            _ => Err(AccessFault),
        }
    }

    fn contains(&self, address: u64, length: u64) -> bool {
        self.memory.contains(address, length)
    }
}

/// Accesses of one function.
pub(crate) struct Dma<'a, 'b> {
    /// Where they go.
    pub bus: &'a mut Bus<'b>,
    /// IOMMU that they go through.
    pub iommu: Option<&'a mut Iommu>,
    /// The function's id.
    pub device: u32,
    /// True if software lets the function access memory.
    pub is_master: bool,
}

impl Dma<'_, '_> {
    const fn request(&self, address: u64, access: Access) -> Request {
        Request {
            device: self.device,
            process: None,
            access,
            address,
        }
    }

    /// Makes an access page by page.
    fn each(
        &mut self,
        address: u64,
        length: usize,
        mut act: impl FnMut(&mut Self, u64, usize, usize) -> Result<(), AccessFault>,
    ) -> Result<(), AccessFault> {
        if !self.is_master || address.checked_add(length as u64).is_none() {
            return Err(AccessFault);
        }
        let mut done = 0;
        while done < length {
            let at = address + done as u64;
            let room = (PAGE - at % PAGE) as usize;
            let piece = room.min(length - done);
            act(self, at, done, piece)?;
            done += piece;
        }
        Ok(())
    }
}

impl Memory for Dma<'_, '_> {
    fn load(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), AccessFault> {
        self.each(address, buffer.len(), |dma, at, done, piece| {
            let request = dma.request(at, Access::Read);
            let physical = match &mut dma.iommu {
                None => at,
                Some(iommu) => match iommu.translate(&request, dma.bus)?.place {
                    Place::Physical(physical) => physical,
                    Place::File { .. } => return Err(AccessFault),
                },
            };
            let buffer = buffer.get_mut(done..done + piece).ok_or(AccessFault)?;
            dma.bus.load(physical, buffer)
        })
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        self.each(address, bytes.len(), |dma, at, done, piece| {
            let bytes = bytes.get(done..done + piece).ok_or(AccessFault)?;
            let request = dma.request(at, Access::Write);
            match &mut dma.iommu {
                None => dma.bus.store(at, bytes),
                Some(iommu) => iommu.write(&request, bytes, dma.bus),
            }
        })
    }

    /// A device finds out by the access itself.
    fn contains(&self, address: u64, length: u64) -> bool {
        address.checked_add(length).is_some()
    }

    fn prepare(&mut self, address: u64, length: u64, store: bool) {
        let access = if store { Access::Write } else { Access::Read };
        let Some(iommu) = self.iommu.as_mut().filter(|_| self.is_master) else {
            return;
        };
        let first = address / PAGE;
        let last = address.saturating_add(length.saturating_sub(1)) / PAGE;
        for page in first..=last.min(first + MAX_PAGES) {
            let request = Request {
                device: self.device,
                process: None,
                access,
                address: address.max(page * PAGE),
            };
            if iommu.prepare(&request, self.bus).is_none() {
                return;
            }
        }
    }

    fn take_time(&mut self) -> Cycles {
        match &mut self.iommu {
            Some(iommu) => iommu.take_time(),
            None => Cycles(0),
        }
    }
}
