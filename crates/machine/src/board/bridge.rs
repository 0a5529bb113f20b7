//! The host bridge of PCI and the IOMMU in the device tree (Linux's bindings `pci-host-ecam-generic`, `pci-iommu` and `riscv,iommu`).

use vm_fdt::Error;

use super::map::{self, Window};
use super::tree::{APLIC_SUPERVISOR, IMSIC_SUPERVISOR, IOMMU, LEVEL_HIGH, Tree};

/// Kinds of windows in `ranges`: 32-bit and 64-bit addresses of memory.
const NARROW: u32 = 0x0200_0000;
const WIDE: u32 = 0x0300_0000;
/// Function 0 of a device on bus 0.
const DEVICE_SHIFT: u32 = 11;
/// Ids of functions on all buses.
const IDS: u32 = 0xffff;

impl Tree<'_> {
    pub(super) fn pci(&mut self) -> Result<(), Error> {
        let Some(pci) = self.config.pci else {
            return Ok(());
        };
        if pci.iommu.is_some() {
            self.iommu()?;
        }
        let node = self.begin("pci", map::PCI_CONFIGURATION)?;
        self.compatible(&["pci-host-ecam-generic"])?;
        self.fdt.property_string("device_type", "pci")?;
        self.fdt.property_u32("#address-cells", 3)?;
        self.fdt.property_u32("#size-cells", 2)?;
        self.fdt.property_u32("#interrupt-cells", 1)?;
        self.fdt.property_u32("linux,pci-domain", 0)?;
        self.fdt.property_array_u32("bus-range", &[0, 0xff])?;
        self.fdt.property_null("dma-coherent")?;
        self.fdt.property_u32("msi-parent", IMSIC_SUPERVISOR)?;
        let windows = [
            (NARROW, map::PCI_NARROW),
            (WIDE, map::pci_wide(self.config.memory)),
        ];
        let ranges: Vec<u32> = windows.into_iter().flat_map(range).collect();
        self.fdt.property_array_u32("ranges", &ranges)?;
        // The wires of four devices, which those of the others share.
        let mask = [(map::PCI_LINES - 1) << DEVICE_SHIFT, 0, 0, 7];
        self.fdt.property_array_u32("interrupt-map-mask", &mask)?;
        let mut entries = Vec::new();
        for device in 0..map::PCI_LINES {
            for pin in 0..map::PCI_LINES {
                let source = map::PCI_SOURCE + (device + pin) % map::PCI_LINES;
                entries.extend([device << DEVICE_SHIFT, 0, 0, pin + 1]);
                entries.extend([APLIC_SUPERVISOR, source, LEVEL_HIGH]);
            }
        }
        self.fdt.property_array_u32("interrupt-map", &entries)?;
        if pci.iommu.is_some() {
            self.fdt
                .property_array_u32("iommu-map", &[0, IOMMU, 0, IDS])?;
        }
        self.fdt.end_node(node)
    }

    fn iommu(&mut self) -> Result<(), Error> {
        let node = self.begin("iommu", map::IOMMU)?;
        self.compatible(&["riscv,iommu"])?;
        self.fdt.property_phandle(IOMMU)?;
        self.fdt.property_u32("#iommu-cells", 1)?;
        self.fdt.property_u32("msi-parent", IMSIC_SUPERVISOR)?;
        self.fdt
            .property_u32("interrupt-parent", APLIC_SUPERVISOR)?;
        let wires = (0..4).flat_map(|wire| [map::IOMMU_SOURCE + wire, LEVEL_HIGH]);
        let wires: Vec<u32> = wires.collect();
        self.fdt.property_array_u32("interrupts", &wires)?;
        self.fdt.end_node(node)
    }
}

/// An entry of `ranges`: addresses of PCI are those of the harts.
fn range((kind, window): (u32, Window)) -> [u32; 7] {
    let halves = |value: u64| [(value >> 32) as u32, value as u32];
    let ([base_high, base_low], [size_high, size_low]) = (halves(window.base), halves(window.size));
    [
        kind, base_high, base_low, base_high, base_low, size_high, size_low,
    ]
}
