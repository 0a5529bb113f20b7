//! Memory, and what of it is taken.

use alloc::vec::Vec;

use crate::Range;
use crate::tree::Tree;

/// A bank of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Addresses.
    pub range: Range,
    /// NUMA node, where the board has several.
    pub numa_node: Option<u32>,
}

/// All banks, in the tree's order.
pub(crate) fn banks(tree: &Tree<'_>) -> Vec<Bank> {
    let nodes = tree
        .nodes()
        .filter(|node| node.text("device_type") == Some("memory") && node.is_enabled());
    nodes
        .flat_map(|node| {
            let numa_node = node.word("numa-node-id");
            let ranges = node.registers().into_iter();
            ranges.map(move |range| Bank { range, numa_node })
        })
        .collect()
}

/// Memory that is not free: children of `/reserved-memory`, and the tree's own block of reservations.
pub(crate) fn reserved(tree: &Tree<'_>) -> Vec<Range> {
    let mut found = Vec::new();
    if let Some(node) = tree.find("/reserved-memory") {
        let children = node.children().filter(|child| child.is_enabled());
        found.extend(children.flat_map(|child| child.registers()));
    }
    found.extend(tree.reservations());
    found
}

/// The initial RAM disk that the firmware has loaded.
pub(crate) fn initrd(tree: &Tree<'_>) -> Option<Range> {
    let chosen = tree.find("/chosen")?;
    let (start, end) = (
        chosen.number("linux,initrd-start")?,
        chosen.number("linux,initrd-end")?,
    );
    (end > start).then(|| Range {
        start,
        size: end - start,
    })
}
