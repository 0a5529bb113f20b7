//! IOMMUs between given devices and memory.

use alloc::vec::Vec;

use super::Chooser;
use super::behind::Behind;
use crate::Range;
use crate::tree::Node;

/// IOMMU that Partita drives.
const IOMMU: &str = "riscv,iommu";
/// Bits of a device's id on PCI, below those of its bus.
const FUNCTION_BITS: u32 = 8;

impl Chooser<'_, '_> {
    /// IOMMUs through which all DMA of the device goes, and its ids there; none if a part of it, or another device of the hypervisor's, would
    /// reach memory past them, or could not.
    pub(super) fn behind(&self, device: Node<'_, '_>) -> Option<Vec<Behind>> {
        let mut all = Vec::new();
        for part in device.subtree().filter(|part| !part.is_on_pci()) {
            let mut ids = match part.is_pci_bridge() {
                true => self.of_bridge(part)?,
                false => self.of_device(part)?,
            };
            let makes_dma = !part.registers().is_empty() && !self.makes_no_dma(part);
            if makes_dma && ids.is_empty() {
                return None;
            }
            all.append(&mut ids);
        }
        Some(all)
    }

    /// Registers of the IOMMU with this handle, if the hypervisor can drive it.
    fn iommu(&self, handle: u32) -> Option<Range> {
        let node = self.tree.by_phandle(handle)?;
        let drives = node.is_compatible(IOMMU) && node.is_enabled() && !node.is_on_pci();
        // virtio's devices have no place of their own in the directory.
        let mut virtio = self.tree.compatible("virtio,mmio");
        let serves_virtio = virtio.any(|device| device.cells("iommus").next() == Some(handle));
        let registers = node.registers().first().copied();
        registers.filter(|_| drives && !serves_virtio)
    }

    /// Ids by `iommus`; none at all if there is none, `None` if one leads to an IOMMU that is not driven.
    fn of_device(&self, node: Node<'_, '_>) -> Option<Vec<Behind>> {
        let mut cells = node.cells("iommus");
        let mut found = Vec::new();
        while let Some(handle) = cells.next() {
            let iommu = self.iommu(handle)?;
            let of_iommu = self.tree.by_phandle(handle)?;
            if of_iommu.word("#iommu-cells") != Some(1) {
                return None;
            }
            let id = cells.next()?;
            found.push(Behind {
                iommu,
                ids: id..=id,
            });
        }
        Some(found)
    }

    /// Ids by `iommu-map`, which must name all functions on all buses in their order. QEMU's board leaves the last function of the last bus out; if it is there, it
    /// reaches nothing.
    fn of_bridge(&self, node: Node<'_, '_>) -> Option<Vec<Behind>> {
        let mask = node.word("iommu-map-mask").unwrap_or(u32::MAX);
        let mut buses = node.cells("bus-range");
        let first = buses.next().unwrap_or(0) << FUNCTION_BITS & 0xffff;
        let last = buses.next().unwrap_or(0xff) << FUNCTION_BITS & 0xffff | 0xff;
        let mut cells = node.cells("iommu-map");
        let (mut found, mut end) = (Vec::new(), first);
        while let (Some(function), Some(handle), Some(id), Some(length)) =
            (cells.next(), cells.next(), cells.next(), cells.next())
        {
            let Some(more) = length.checked_sub(1) else {
                continue;
            };
            let ids = id..=id.checked_add(more)?;
            if function > end {
                return None;
            }
            end = end.max(function.checked_add(length)?);
            let iommu = self.iommu(handle)?;
            found.push(Behind { iommu, ids });
        }
        (mask & 0xffff == 0xffff && end >= last).then_some(found)
    }
}
