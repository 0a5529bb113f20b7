//! Nodes that the hypervisor, the firmware or the harts need.

use alloc::string::String;
use alloc::vec::Vec;

use crate::devices::dependencies;
use crate::tree::{Node, Tree};

/// Nodes by which the firmware switches the board off and on again, as the `regmap` of such nodes.
const POWER: [&str; 2] = ["syscon-poweroff", "syscon-reboot"];

/// Nodes that are in use, besides those whose kind alone says so.
pub(super) struct Needed {
    console: Option<usize>,
    /// Clocks, resets, regulators and pins of the console and of the harts.
    supplies: Vec<String>,
    /// Registers that switch the board off.
    power: Vec<usize>,
}

impl Needed {
    /// Finds the nodes, with the console at this path.
    pub fn of(tree: &Tree<'_>, console: Option<&str>) -> Self {
        let console = console.and_then(|path| tree.find(path));
        let harts = tree
            .nodes()
            .filter(|node| node.text("device_type") == Some("cpu"));
        let mut supplies = Vec::new();
        for node in harts.chain(console) {
            supplies.extend(dependencies(tree, node));
        }
        let switches = tree
            .nodes()
            .filter(|node| POWER.iter().any(|name| node.is_compatible(name)));
        let power = switches.filter_map(|node| tree.by_phandle(node.word("regmap")?));
        Self {
            console: console.map(Node::place),
            supplies,
            power: power.map(Node::place).collect(),
        }
    }

    /// The need for a node, if there is any. A controller that is disabled is needed too: the firmware may have it.
    pub fn role(&self, node: Node<'_, '_>) -> Option<&'static str> {
        let place = node.place();
        if self.console == Some(place) {
            return Some("the console");
        }
        if node.is_compatible("riscv,aplic") || leads_to_harts(node) {
            return Some("an interrupt controller or timer of the harts");
        }
        if node.is_compatible("riscv,iommu") || node.has("#iommu-cells") {
            return Some("an IOMMU");
        }
        let kind = node.text("device_type");
        if matches!(kind, Some("cpu" | "memory" | "cache")) || node.has("cache-level") {
            return Some("a part of the harts or their memory");
        }
        let parent = node.parent().map_or("", Node::name);
        if parent == "reserved-memory" {
            return Some("reserved memory");
        }
        if self.power.contains(&place) || node.is_compatible("sifive,test0") {
            return Some("the firmware's power switch");
        }
        let supplies = !self.supplies.is_empty() && self.supplies.contains(&node.path());
        supplies.then_some("a clock, reset or supply of the console or the harts")
    }
}

/// Tests whether the node interrupts harts: PLIC, CLINT, IMSIC and their like.
fn leads_to_harts(node: Node<'_, '_>) -> bool {
    let of_hart = |phandle| {
        let controller = node.tree().by_phandle(phandle);
        let hart = controller.and_then(Node::parent);
        hart.is_some_and(|hart| hart.text("device_type") == Some("cpu"))
    };
    node.word("interrupts-extended").is_some_and(of_hart)
}
