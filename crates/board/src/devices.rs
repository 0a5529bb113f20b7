//! Devices of the board.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Range;
use crate::tree::{Node, Tree};

/// A device with registers and one wired interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardDevice {
    /// First register.
    pub base: u64,
    /// Bytes of registers.
    pub size: u64,
    /// Interrupt source.
    pub source: u32,
}

/// The virtio-mmio slots, in the order of their addresses.
pub(crate) fn virtio(tree: &Tree<'_>) -> Vec<BoardDevice> {
    let mut virtio: Vec<BoardDevice> = Vec::new();
    for device in tree.compatible("virtio,mmio").filter_map(device) {
        let place = virtio.partition_point(|other| other.base <= device.base);
        virtio.insert(place, device);
    }
    virtio
}

fn device(node: Node<'_, '_>) -> Option<BoardDevice> {
    let Range { start, size } = *node.registers().first()?;
    Some(BoardDevice {
        base: start,
        size,
        source: node.word("interrupts")?,
    })
}

/// Registers of the first device that is compatible with `name`.
pub(crate) fn first(tree: &Tree<'_>, name: &str) -> Option<Range> {
    tree.compatible(name)
        .find_map(|node| node.registers().first().copied())
}

/// Kinds of hardware that a description names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareKind {
    /// A host bridge of PCI Express with a standard configuration space (ECAM).
    PcieEcam,
    /// A host bridge of PCI Express of a vendor's own kind.
    PcieVendor,
    /// An IOMMU of the RISC-V IOMMU architecture.
    RiscvIommu,
    /// An IOMMU of another kind.
    OtherIommu,
    /// Anything else with registers.
    Other,
}

/// A piece of hardware, as a description of a board names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Path in the tree.
    pub path: String,
    /// `compatible`, the most exact first.
    pub compatible: Vec<String>,
    /// Kind.
    pub kind: HardwareKind,
    /// Registers as the harts address them.
    pub registers: Vec<Range>,
    /// Wired interrupts.
    pub interrupts: usize,
    /// Paths of the nodes that the device depends on: clocks, resets, regulators, power domains, pins, PHYs.
    pub depends_on: Vec<String>,
    /// Path of the IOMMU that the device's DMA goes through.
    pub iommu: Option<String>,
    /// Tells whether the device's DMA sees the harts' caches.
    pub dma_coherent: bool,
}

/// Properties that name other nodes by phandle, with the property of these nodes that says how many cells follow.
const DEPENDENCIES: [(&str, Option<&str>); 7] = [
    ("clocks", Some("#clock-cells")),
    ("resets", Some("#reset-cells")),
    ("power-domains", Some("#power-domain-cells")),
    ("phys", Some("#phy-cells")),
    ("mboxes", Some("#mbox-cells")),
    ("pinctrl-0", None),
    ("interconnects", Some("#interconnect-cells")),
];

/// Nodes whose registers belong to the harts or to the interrupt system.
fn is_of_the_core(node: Node<'_, '_>) -> bool {
    node.has("interrupt-controller")
        || node.has("#interrupt-cells") && !node.has("interrupt-map")
        || matches!(node.text("device_type"), Some("cpu" | "memory" | "cache"))
        || [
            "riscv,clint0",
            "sifive,clint0",
            "riscv,aclint-mswi",
            "riscv,aclint-mtimer",
            "thead,c900-clint",
        ]
        .iter()
        .any(|name| node.is_compatible(name))
        || node
            .parent()
            .is_some_and(|parent| parent.name() == "reserved-memory")
}

/// All enabled hardware with registers, except harts, memory and interrupt controllers.
#[must_use]
pub fn hardware(tree: &Tree<'_>) -> Vec<Hardware> {
    let candidates = tree
        .nodes()
        .filter(|node| node.is_enabled() && node.has("compatible") && !is_of_the_core(*node));
    candidates
        .filter_map(|node| {
            let registers = node.registers();
            (!registers.is_empty()).then(|| describe(tree, node, registers))
        })
        .collect()
}

fn describe(tree: &Tree<'_>, node: Node<'_, '_>, registers: Vec<Range>) -> Hardware {
    let listed = node.cells("interrupts").count() + node.cells("interrupts-extended").count();
    let cells = node
        .interrupt_parent()
        .and_then(|parent| parent.word("#interrupt-cells"))
        .unwrap_or(1)
        .max(1);
    let iommu = node
        .word("iommus")
        .or_else(|| node.cells("iommu-map").nth(1));
    Hardware {
        path: node.path(),
        compatible: node.texts("compatible").map(String::from).collect(),
        kind: kind(node),
        registers,
        interrupts: listed.div_ceil(cells as usize),
        depends_on: dependencies(tree, node),
        iommu: iommu
            .and_then(|phandle| tree.by_phandle(phandle))
            .map(Node::path),
        dma_coherent: is_coherent(node),
    }
}

/// `dma-coherent` and `dma-noncoherent`, of the node or of a bus above; RISC-V's default is coherent.
pub(crate) fn is_coherent(node: Node<'_, '_>) -> bool {
    if node.has("dma-coherent") {
        return true;
    }
    if node.has("dma-noncoherent") {
        return false;
    }
    node.parent().is_none_or(is_coherent)
}

fn kind(node: Node<'_, '_>) -> HardwareKind {
    let is = |name| node.is_compatible(name);
    if is("pci-host-ecam-generic") {
        HardwareKind::PcieEcam
    } else if node.text("device_type") == Some("pci") {
        HardwareKind::PcieVendor
    } else if is("riscv,iommu") {
        HardwareKind::RiscvIommu
    } else if node.has("#iommu-cells") {
        HardwareKind::OtherIommu
    } else {
        HardwareKind::Other
    }
}

pub(crate) fn dependencies(tree: &Tree<'_>, node: Node<'_, '_>) -> Vec<String> {
    let mut paths = Vec::new();
    let mut add = |path: String| {
        if !paths.contains(&path) {
            paths.push(path);
        }
    };
    for (property, following) in DEPENDENCIES {
        let mut cells = node.cells(property);
        while let Some(phandle) = cells.next() {
            let Some(provider) = tree.by_phandle(phandle) else {
                continue;
            };
            add(provider.path());
            let skip = following.and_then(|name| provider.word(name)).unwrap_or(0);
            for _ in 0..skip {
                cells.next();
            }
        }
    }
    for phandle in node.supplies() {
        if let Some(provider) = tree.by_phandle(phandle) {
            add(provider.path());
        }
    }
    paths
}
