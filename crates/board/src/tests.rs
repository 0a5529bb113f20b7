//! Small device trees.

use std::vec::Vec;

use vm_fdt::FdtWriter;

use super::*;

/// Address of the tree itself.
const LOCATION: Range = Range {
    start: 0x8800_0000,
    size: 0x1000,
};

const fn range_of(start: u64, size: u64) -> Range {
    Range { start, size }
}

/// Adds a node with `reg` and `compatible`.
fn begin(fdt: &mut FdtWriter, name: &str, reg: &[u64]) -> vm_fdt::FdtWriterNode {
    let node = fdt.begin_node(name).unwrap();
    fdt.property_array_u64("reg", reg).unwrap();
    node
}

/// A board with a hart for each of `isas`, and what `more` adds to the root.
fn tree(isas: &[&str], more: impl FnOnce(&mut FdtWriter)) -> Vec<u8> {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    fdt.property_u32("#address-cells", 2).unwrap();
    fdt.property_u32("#size-cells", 2).unwrap();
    let cpus = fdt.begin_node("cpus").unwrap();
    fdt.property_u32("#address-cells", 1).unwrap();
    fdt.property_u32("#size-cells", 0).unwrap();
    fdt.property_u32("timebase-frequency", 10_000_000).unwrap();
    for (id, isa) in (0u32..).zip(isas) {
        let cpu = fdt.begin_node(&std::format!("cpu@{id}")).unwrap();
        fdt.property_string("device_type", "cpu").unwrap();
        fdt.property_u32("reg", id).unwrap();
        fdt.property_string("riscv,isa", isa).unwrap();
        let controller = fdt.begin_node("interrupt-controller").unwrap();
        fdt.property_null("interrupt-controller").unwrap();
        fdt.property_u32("phandle", 1 + id).unwrap();
        fdt.end_node(controller).unwrap();
        fdt.end_node(cpu).unwrap();
    }
    fdt.end_node(cpus).unwrap();
    let imsics = begin(&mut fdt, "imsics@28000000", &[0x2800_0000, 0x10_0000]);
    fdt.property_string("compatible", "riscv,imsics").unwrap();
    fdt.property_u32("phandle", 100).unwrap();
    let parents = (1..=isas.len() as u32).flat_map(|handle| [handle, 9]);
    let parents: Vec<u32> = parents.collect();
    fdt.property_array_u32("interrupts-extended", &parents)
        .unwrap();
    fdt.end_node(imsics).unwrap();
    let aplic = begin(&mut fdt, "aplic@d000000", &[0xd00_0000, 0x8000]);
    fdt.property_string("compatible", "riscv,aplic").unwrap();
    fdt.property_u32("msi-parent", 100).unwrap();
    fdt.end_node(aplic).unwrap();
    let uart = begin(&mut fdt, "serial@10000000", &[0x1000_0000, 0x100]);
    fdt.property_string("compatible", "ns16550a").unwrap();
    fdt.property_array_u32("interrupts", &[10, 4]).unwrap();
    fdt.end_node(uart).unwrap();
    more(&mut fdt);
    fdt.end_node(root).unwrap();
    fdt.finish().unwrap()
}

fn memory(fdt: &mut FdtWriter, name: &str, reg: &[u64]) {
    let node = begin(fdt, name, reg);
    fdt.property_string("device_type", "memory").unwrap();
    fdt.end_node(node).unwrap();
}

fn survey(tree: &[u8]) -> Survey {
    Survey::read(&Tree::new(tree).unwrap())
}

fn read(tree: &[u8]) -> Board {
    Board::new(survey(tree), LOCATION).unwrap()
}

/// Memory as on two NUMA nodes, the first with a hole.
#[test]
fn memory_has_every_bank_of_a_node() {
    let banks = [0x8000_0000, 0x4000_0000, 0x1_0000_0000, 0x8000_0000];
    let tree = tree(&["rv64imafdch"], |fdt| {
        memory(fdt, "memory@80000000", &banks);
        memory(fdt, "memory@400000000", &[0x4_0000_0000, 0x1000_0000]);
    });
    let expected = [
        range_of(0x8000_0000, 0x4000_0000),
        range_of(0x1_0000_0000, 0x8000_0000),
        range_of(0x4_0000_0000, 0x1000_0000),
    ];
    assert_eq!(read(&tree).memory, expected);
}

#[test]
fn reservation_has_every_range_of_a_child() {
    let tree = tree(&["rv64imafdch"], |fdt| {
        memory(fdt, "memory@80000000", &[0x8000_0000, 0x4000_0000]);
        let reserved = fdt.begin_node("reserved-memory").unwrap();
        fdt.property_u32("#address-cells", 2).unwrap();
        fdt.property_u32("#size-cells", 2).unwrap();
        fdt.property_null("ranges").unwrap();
        let both = [0x8000_0000, 0x4_0000, 0x9000_0000, 0x10_0000];
        let firmware = begin(fdt, "firmware@80000000", &both);
        fdt.property_null("no-map").unwrap();
        fdt.end_node(firmware).unwrap();
        fdt.end_node(reserved).unwrap();
    });
    let expected = [
        range_of(0x8000_0000, 0x4_0000),
        range_of(0x9000_0000, 0x10_0000),
        LOCATION,
    ];
    assert_eq!(read(&tree).reserved, expected);
}

#[test]
fn harts_without_h_are_taken_out() {
    let isas = [
        "rv64imafdc",
        "rv64imafdch_sstc",
        "rv64imafdcv",
        "rv64imafdch",
    ];
    let tree = tree(&isas, |fdt| {
        memory(fdt, "memory@80000000", &[0x8000_0000, 0x4000_0000]);
    });
    let mut board = read(&tree);
    assert_eq!(board.harts.len(), 4);
    // The first runs this, so it has what its string leaves out.
    assert_eq!(board.take_out_harts_without_h(0), [2]);
    let ids: Vec<u64> = board.harts.iter().map(|hart| hart.id).collect();
    assert_eq!(ids, [0, 1, 3]);
    assert_eq!(board.controller.delivery(&board.harts[2]).unwrap().index, 3);
}
