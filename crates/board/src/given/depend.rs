//! Nodes that a device depends on.

use alloc::vec::Vec;

use super::Chooser;
use super::refusal::{Fault, Reason, fault};
use crate::tree::{Node, Tree};

/// Properties that name other nodes by phandle, with the property of these nodes that says how many cells follow.
const REFERENCES: [(&str, &str); 21] = [
    ("clocks", "#clock-cells"),
    ("resets", "#reset-cells"),
    ("power-domains", "#power-domain-cells"),
    ("phys", "#phy-cells"),
    ("mboxes", "#mbox-cells"),
    ("interconnects", "#interconnect-cells"),
    ("io-channels", "#io-channel-cells"),
    ("pwms", "#pwm-cells"),
    ("thermal-sensors", "#thermal-sensor-cells"),
    ("hwlocks", "#hwlock-cells"),
    ("nvmem-cells", "#nvmem-cell-cells"),
    ("phy-handle", ""),
    ("phy", ""),
    ("pcs-handle", ""),
    ("memory-region", ""),
    ("sram", ""),
    ("syscon", ""),
    ("regmap", ""),
    ("snps,axi-config", ""),
    ("snps,mtl-rx-config", ""),
    ("snps,mtl-tx-config", ""),
];

/// Properties that are left out of a copy: they tell of parts that no guest sees, or that the firmware has set up. Those of interrupts, registers and
/// phandles are written anew.
const LEFT_OUT: [&str; 21] = [
    "phandle",
    "linux,phandle",
    "reg",
    "ranges",
    "interrupts",
    "interrupts-extended",
    "interrupt-parent",
    "interrupt-map",
    "iommus",
    "iommu-map",
    "iommu-map-mask",
    "msi-parent",
    "msi-map",
    "msi-map-mask",
    "dmas",
    "dma-names",
    "dma-ranges",
    "assigned-clocks",
    "assigned-clock-rates",
    "assigned-clock-parents",
    "status",
];

/// Kinds of properties of a device.
pub(super) enum PropertyKind {
    /// Left out of the copy.
    LeftOut,
    /// The property names other nodes, each followed by as many cells as this property of theirs says.
    References(&'static str),
    /// Copied as it is.
    Plain,
}

/// The kind of a property.
pub(super) fn kind(tree: &Tree<'_>, name: &str, value: &[u8]) -> PropertyKind {
    if LEFT_OUT.contains(&name) || name.starts_with("pinctrl-") {
        return PropertyKind::LeftOut;
    }
    if let Some((_, cells)) = REFERENCES.iter().find(|(other, _)| *other == name) {
        return PropertyKind::References(cells);
    }
    if name.ends_with("-gpios") || name.ends_with("-gpio") {
        return PropertyKind::References("#gpio-cells");
    }
    // A vendor's property may begin with the handle of a system controller and go on with offsets in it.
    let vendors = name.contains(',');
    let first = value.first_chunk().map(|cell| u32::from_be_bytes(*cell));
    let named = first.filter(|_| vendors).and_then(|at| tree.by_phandle(at));
    if name.ends_with("-supply") || named.is_some_and(|node| node.is_compatible("syscon")) {
        return PropertyKind::References("");
    }
    PropertyKind::Plain
}

/// Words of a value.
pub(super) fn words(value: &[u8]) -> impl Iterator<Item = u32> {
    let words = value.as_chunks().0.iter();
    words.map(|cell| u32::from_be_bytes(*cell))
}

/// Calls `each` with the words of a property that names nodes: with the node where the word is a handle, and the word.
pub(super) fn references<'t>(
    tree: &'t Tree<'t>,
    (value, cells): (&[u8], &str),
    each: &mut dyn FnMut(Option<Node<'t, 't>>, u32),
) {
    let mut plain = 0;
    for word in words(value) {
        if plain > 0 {
            plain -= 1;
            each(None, word);
            continue;
        }
        let node = tree.by_phandle(word);
        // Without a name of its own number, a system controller's offsets follow to the end.
        plain = match (node, cells) {
            (Some(node), "") if node.is_compatible("syscon") => u32::MAX,
            (Some(node), _) => node.word(cells).unwrap_or(0),
            (None, _) => 0,
        };
        // A handle of 0 leaves a place empty.
        if node.is_some() || word != 0 {
            each(node, word);
        }
    }
}

/// Rate of a fixed clock, or of one that derives from a fixed clock by a fixed factor, in hertz.
pub(super) fn fixed_rate(tree: &Tree<'_>, node: Node<'_, '_>) -> Option<u32> {
    /// Clocks that derive from each other, at most: a circle has no end.
    const MAX_CLOCKS: usize = 8;
    let (mut node, mut factor) = (node, (1, 1));
    for _ in 0..MAX_CLOCKS {
        if node.is_compatible("fixed-clock") {
            let own = u128::from(node.word("clock-frequency")?);
            return u32::try_from((own * factor.0).checked_div(factor.1)?).ok();
        }
        if !node.is_compatible("fixed-factor-clock") {
            return None;
        }
        factor.0 *= u128::from(node.word("clock-mult")?);
        factor.1 *= u128::from(node.word("clock-div")?);
        if factor.0 >> 64 != 0 || factor.1 >> 64 != 0 {
            return None;
        }
        let parent = tree.by_phandle(node.word("clocks")?)?.place();
        node = node.tree().at(parent)?;
    }
    None
}

/// Tests whether a node can be copied for a guest: a fixed clock, or a fixed regulator that nothing switches.
fn can_be_copied(tree: &Tree<'_>, node: Node<'_, '_>) -> bool {
    let switched = || {
        ["gpio", "gpios", "enable-gpios"]
            .iter()
            .any(|name| node.has(name))
    };
    fixed_rate(tree, node).is_some() || node.is_compatible("regulator-fixed") && !switched()
}

impl<'t> Chooser<'t, '_> {
    /// Finds the nodes that a part of a device of the VM depends on: each is the VM's too, or is copied.
    pub(super) fn depend(
        &self,
        part: Node<'t, 't>,
        vm: usize,
        copies: &mut Vec<usize>,
    ) -> Result<(), Fault<'t>> {
        let is_own = |node: Node<'_, '_>| {
            let mut named = self.named.iter().filter(|(_, owner)| *owner == vm);
            named.any(|(place, _)| self.tree.at(*place).is_some_and(|named| node.is_in(named)))
        };
        for (name, value) in part.properties() {
            let PropertyKind::References(cells) = kind(self.tree, name, value) else {
                continue;
            };
            let mut result = Ok(());
            references(self.tree, (value, cells), &mut |node, _| {
                let Some(node) = node.filter(|node| !is_own(*node)) else {
                    return;
                };
                if !can_be_copied(self.tree, node) {
                    result = Err(fault(name, Reason::Depends, &node.path()));
                } else if !copies.contains(&node.place()) {
                    copies.push(node.place());
                }
            });
            result?;
        }
        Ok(())
    }
}
