//! Harts, as `/cpus` describes them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::isa;
use crate::tree::{Node, Tree};

/// One hart of the board.
#[derive(Clone, Debug)]
pub struct BoardHart {
    /// mhartid.
    pub id: u64,
    /// Phandle of the hart's local interrupt controller.
    pub controller: u32,
    /// Extensions of the ISA.
    pub extensions: Extensions,
    /// Bytes that a cache-block management instruction works on, where there are any.
    pub cache_block_size: Option<u32>,
    /// Bytes that cbo.zero clears, where cbo.zero is there.
    pub zero_block_size: Option<u32>,
    /// The widest virtual memory that the hart has, as the device tree names it.
    pub mmu_type: String,
    /// NUMA node, where the board has several.
    pub numa_node: Option<u32>,
}

/// Extensions of a hart.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// Names as `riscv,isa-extensions` has them, in lower case.
    names: Vec<String>,
}

impl Extensions {
    /// Reads `riscv,isa-extensions`, or the older `riscv,isa` where the list is absent.
    fn read(node: Node<'_, '_>) -> Self {
        let mut names: Vec<String> = node
            .texts("riscv,isa-extensions")
            .map(str::to_ascii_lowercase)
            .collect();
        if names.is_empty()
            && let Some(text) = node.text("riscv,isa")
        {
            let text = text.to_ascii_lowercase();
            names.extend(isa::from_string(&text).into_iter().map(String::from));
        }
        Self { names }
    }

    /// Tests for an extension by its name in lower case.
    #[must_use]
    #[inline(never)]
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|have| have == name)
    }

    /// All names, in the device tree's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// The usable harts of the tree, in its order.
pub(crate) fn harts(tree: &Tree<'_>) -> Vec<BoardHart> {
    let Some(cpus) = tree.find("/cpus") else {
        return Vec::new();
    };
    cpus.children()
        .filter(|node| node.text("device_type") == Some("cpu") && node.is_enabled())
        .filter_map(hart)
        .collect()
}

fn hart(cpu: Node<'_, '_>) -> Option<BoardHart> {
    let controller = cpu
        .children()
        .find(|node| node.has("interrupt-controller"))?;
    Some(BoardHart {
        id: cpu.number("reg")?,
        controller: controller.word("phandle")?,
        extensions: Extensions::read(cpu),
        cache_block_size: cpu.word("riscv,cbom-block-size"),
        zero_block_size: cpu.word("riscv,cboz-block-size"),
        mmu_type: cpu.text("mmu-type").unwrap_or("riscv,sv39").into(),
        numa_node: cpu.word("numa-node-id"),
    })
}
