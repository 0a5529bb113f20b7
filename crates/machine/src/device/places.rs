//! Places of virtio devices: the slots of the board, and behind them the functions of PCI.

use super::iommu::{IommuCosts, IommuStatistics};
use super::pci::{Function, Pci};
use super::virtio::{Slot, VirtioDevice};
use super::{Cycles, Devices};
use crate::board::map;

impl Devices {
    /// Number of places: those of the slots come first, and the function with device number 1 on PCI is [`map::VIRTIO_SLOTS`].
    #[must_use]
    pub fn places(&self) -> usize {
        map::VIRTIO_SLOTS + self.functions().len()
    }

    /// The device in a place.
    #[must_use]
    pub fn virtio(&self, place: usize) -> Option<&VirtioDevice> {
        match place.checked_sub(map::VIRTIO_SLOTS) {
            None => self.slots.get(place).and_then(Slot::device),
            Some(number) => self.functions().get(number).and_then(Function::device),
        }
    }

    /// The device in a place, to give a restored one its host's side.
    pub fn virtio_mut(&mut self, place: usize) -> Option<&mut VirtioDevice> {
        match place.checked_sub(map::VIRTIO_SLOTS) {
            None => self.slots.get_mut(place)?.device_mut(),
            Some(number) => {
                let functions = self.pci.as_mut()?.functions_mut();
                functions.get_mut(number)?.device_mut()
            }
        }
    }

    /// Puts a device on PCI, as the next function.
    ///
    /// # Errors
    /// The device, if the board has no host bridge, or its bus no room.
    pub fn insert_function(&mut self, device: VirtioDevice) -> Result<(), VirtioDevice> {
        let has_room = |pci: &&mut Box<Pci>| pci.functions().len() < super::pci::SLOTS;
        let Some(pci) = self.pci.as_mut().filter(has_room) else {
            return Err(device);
        };
        if let VirtioDevice::Net(net) = &device {
            self.switch.connect(net.port());
        }
        pci.insert(Function::new(device));
        self.next_event = Cycles(0);
        Ok(())
    }

    /// The functions of PCI, from device number 1 on.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.pci.as_ref().map_or(&[], |pci| pci.functions())
    }

    /// Sets what the IOMMU's translations cost.
    pub fn set_iommu_costs(&mut self, costs: IommuCosts) {
        if let Some(pci) = &mut self.pci {
            pci.set_costs(costs);
        }
    }

    /// Counts of the IOMMU, if there is one.
    #[must_use]
    pub fn iommu_statistics(&self) -> Option<IommuStatistics> {
        let iommu = self.pci.as_ref()?.iommu()?;
        Some(iommu.statistics())
    }
}
