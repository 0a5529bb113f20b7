//! Devices of small boards, given and refused.

use std::vec::Vec;

use fdt::Fdt;
use fdt::node::FdtNode;
use vm_fdt::FdtWriter;

use super::*;
use crate::Range;
use crate::guest_tree::{GuestDescription, build};

mod bridges;
mod confined;
mod refused;

/// Handle of the board's PLIC.
const PLIC: u32 = 0x50;

fn cells(fdt: &mut FdtWriter, address: u32, size: u32) {
    fdt.property_u32("#address-cells", address).unwrap();
    fdt.property_u32("#size-cells", size).unwrap();
}

/// Writes a node with `compatible`, `reg` and what `more` adds.
fn node(
    fdt: &mut FdtWriter,
    name: &str,
    compatible: &str,
    reg: &[u64],
    more: impl FnOnce(&mut FdtWriter),
) {
    let node = fdt.begin_node(name).unwrap();
    fdt.property_string("compatible", compatible).unwrap();
    if !reg.is_empty() {
        fdt.property_array_u64("reg", reg).unwrap();
    }
    more(fdt);
    fdt.end_node(node).unwrap();
}

fn words(fdt: &mut FdtWriter, name: &str, words: &[u32]) {
    fdt.property_array_u32(name, words).unwrap();
}

/// A board with one hart, a PLIC of 64 sources, a console, a disabled APLIC and what `more` adds below `/soc`.
fn board(more: impl FnOnce(&mut FdtWriter)) -> Vec<u8> {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    cells(&mut fdt, 2, 2);
    let chosen = fdt.begin_node("chosen").unwrap();
    fdt.property_string("stdout-path", "/soc/serial@20000000")
        .unwrap();
    fdt.end_node(chosen).unwrap();
    let cpus = fdt.begin_node("cpus").unwrap();
    cells(&mut fdt, 1, 0);
    fdt.property_u32("timebase-frequency", 10_000_000).unwrap();
    let cpu = fdt.begin_node("cpu@0").unwrap();
    fdt.property_string("device_type", "cpu").unwrap();
    fdt.property_u32("reg", 0).unwrap();
    fdt.property_string("riscv,isa", "rv64imafdch").unwrap();
    let controller = fdt.begin_node("interrupt-controller").unwrap();
    fdt.property_null("interrupt-controller").unwrap();
    fdt.property_u32("#interrupt-cells", 1).unwrap();
    fdt.property_u32("phandle", 1).unwrap();
    fdt.end_node(controller).unwrap();
    fdt.end_node(cpu).unwrap();
    fdt.end_node(cpus).unwrap();
    let memory = fdt.begin_node("memory@80000000").unwrap();
    fdt.property_string("device_type", "memory").unwrap();
    fdt.property_array_u64("reg", &[0x8000_0000, 0x1000_0000])
        .unwrap();
    fdt.end_node(memory).unwrap();
    for (name, hertz, handle) in [("oscillator", 24_000_000, 0x60), ("other", 1_000, 0x61)] {
        node(&mut fdt, name, "fixed-clock", &[], |fdt| {
            fdt.property_u32("#clock-cells", 0).unwrap();
            fdt.property_u32("clock-frequency", hertz).unwrap();
            fdt.property_u32("phandle", handle).unwrap();
        });
    }
    let soc = fdt.begin_node("soc").unwrap();
    cells(&mut fdt, 2, 2);
    fdt.property_string("compatible", "simple-bus").unwrap();
    fdt.property_null("ranges").unwrap();
    fdt.property_u32("interrupt-parent", PLIC).unwrap();
    controllers(&mut fdt);
    more(&mut fdt);
    fdt.end_node(soc).unwrap();
    fdt.end_node(root).unwrap();
    fdt.finish().unwrap()
}

fn controllers(fdt: &mut FdtWriter) {
    let plic = [0x3000_0000, 0x40_0000];
    node(fdt, "plic@30000000", "sifive,plic-1.0.0", &plic, |fdt| {
        words(fdt, "interrupts-extended", &[1, 11, 1, 9]);
        words(fdt, "riscv,ndev", &[64]);
        fdt.property_null("interrupt-controller").unwrap();
        fdt.property_u32("#interrupt-cells", 1).unwrap();
        fdt.property_u32("phandle", PLIC).unwrap();
    });
    let aplic = [0x3100_0800, 0x100];
    node(fdt, "aplic@31000800", "riscv,aplic", &aplic, |fdt| {
        fdt.property_null("interrupt-controller").unwrap();
        fdt.property_string("status", "disabled").unwrap();
    });
    let uart = [0x2000_0000, 0x100];
    node(fdt, "serial@20000000", "ns16550a", &uart, |fdt| {
        words(fdt, "interrupts", &[20]);
    });
    node(
        fdt,
        "iommu@32000000",
        "riscv,iommu",
        &[0x3200_0000, 0x1000],
        |fdt| {
            fdt.property_u32("#iommu-cells", 1).unwrap();
            fdt.property_u32("phandle", 0x51).unwrap();
        },
    );
}

fn wish<'w>(vm: &'w str, paths: &'w str) -> Wish<'w> {
    Wish {
        vm,
        paths,
        slots: 0,
        vcpus: 1,
        memory: MemoryOf::TheBoard,
        confined: false,
        emulated: 0,
    }
}

/// Ids at the board's IOMMU.
fn behind(ids: core::ops::RangeInclusive<u32>) -> Behind {
    let iommu = Range {
        start: 0x3200_0000,
        size: 0x1000,
    };
    Behind { iommu, ids }
}

/// The guest's tree with what one VM is given by these paths.
fn guest(tree: &[u8], paths: &str, has_files: bool) -> Vec<u8> {
    let tree = Tree::new(tree).unwrap();
    let given = give(&tree, &[wish("one", paths)], 0).unwrap();
    guest_with(&given[0], has_files)
}

/// The guest's tree with these devices.
fn guest_with(given: &GivenDevices<'_>, has_files: bool) -> Vec<u8> {
    let description = GuestDescription {
        name: "one",
        memory: Range {
            start: 0x8000_0000,
            size: 1 << 30,
        },
        vcpus: 2,
        timebase_frequency: 10_000_000,
        isa_base: "rv64i",
        isa_extensions: &["i"],
        cache_block_size: None,
        zero_block_size: None,
        mmu_type: "riscv,sv48",
        memory_for_devices: None,
        initrd: None,
        bootargs: "",
        virtio: &[],
        bridge: None,
        given: Some(given),
        has_files,
        sources: 64,
        clock: true,
        rng_seed: None,
    };
    let tree = build(&description).unwrap().bytes;
    crate::guest_tree::tests::compile(&tree);
    tree
}

fn values(node: &FdtNode<'_, '_>, name: &str) -> Vec<u32> {
    let property = node.property(name);
    let value = property.map_or(&[][..], |property| property.value);
    let words = value.as_chunks().0.iter();
    words.map(|cell| u32::from_be_bytes(*cell)).collect()
}

/// A card whose clock is the oscillator's by a factor, with a PHY below it and two interrupts; a clock controller beside it.
fn with_card(fdt: &mut FdtWriter) {
    node(fdt, "half", "fixed-factor-clock", &[], |fdt| {
        words(fdt, "clocks", &[0x60]);
        fdt.property_u32("#clock-cells", 0).unwrap();
        fdt.property_u32("clock-mult", 1).unwrap();
        fdt.property_u32("clock-div", 2).unwrap();
        fdt.property_u32("phandle", 0x62).unwrap();
    });
    let clocks = [0x4000_0000, 0x1000];
    node(fdt, "clocks@40000000", "a,clocks", &clocks, |fdt| {
        fdt.property_u32("#clock-cells", 1).unwrap();
        fdt.property_u32("#reset-cells", 1).unwrap();
        fdt.property_u32("phandle", 0x63).unwrap();
    });
    let card = [0x4100_0000, 0x1_0000, 0x4101_0000, 0x200];
    node(fdt, "ethernet@41000000", "a,card", &card, |fdt| {
        words(fdt, "clocks", &[0x62, 0x63, 7, 0x60]);
        words(fdt, "resets", &[0x63, 5]);
        words(fdt, "interrupts", &[33, 34]);
        words(fdt, "iommus", &[0x51, 3]);
        words(fdt, "pinctrl-0", &[0x99]);
        words(fdt, "phy-handle", &[0x70]);
        fdt.property_null("dma-noncoherent").unwrap();
        fdt.property_string("phy-mode", "rgmii-id").unwrap();
        fdt.property_u32("phandle", 0x64).unwrap();
        let bus = fdt.begin_node("mdio").unwrap();
        cells(fdt, 1, 0);
        let phy = fdt.begin_node("ethernet-phy@3").unwrap();
        fdt.property_u32("reg", 3).unwrap();
        fdt.property_u32("phandle", 0x70).unwrap();
        fdt.end_node(phy).unwrap();
        fdt.end_node(bus).unwrap();
    });
}

const CARD: &str = "/soc/ethernet@41000000";
const CLOCKS: &str = "/soc/clocks@40000000";

#[test]
fn given_devices_have_pages_and_sources() {
    let tree = board(with_card);
    let tree = Tree::new(&tree).unwrap();
    let paths = [CLOCKS, " ", CARD].concat();
    let given = give(&tree, &[wish("none", ""), wish("one", &paths)], 0).unwrap();
    assert!(given[0].pages.is_empty() && given[0].leaves_room_for_clock());
    let range = |start, size| Range { start, size };
    let expected = [range(0x4000_0000, 0x1000), range(0x4100_0000, 0x1_1000)];
    assert_eq!(given[1].pages, expected);
    assert_eq!(given[1].sources, [33, 34]);
    // The card is behind an IOMMU, and the clocks are not.
    assert_eq!(given[1].trusted, [CLOCKS]);
    assert_eq!(given[1].behind, [behind(3..=3)]);
}

#[test]
fn copied_nodes_lead_to_their_supplies() {
    let tree = board(with_card);
    let paths = [CARD, " ", CLOCKS].concat();
    for (has_files, interrupts) in [(true, 6), (false, 4)] {
        let tree = guest(&tree, &paths, has_files);
        let tree = Fdt::new(&tree).unwrap();
        // Outside of the bus, which tells devices where memory lies for those that no IOMMU translates.
        let card = tree.find_node(&CARD["/soc".len()..]).expect("the card");
        assert_eq!(
            values(&card, "reg"),
            [0, 0x4100_0000, 0, 0x1_0000, 0, 0x4101_0000, 0, 0x200]
        );
        let clocks = values(&card, "clocks");
        let [half, controller, 7, whole] = clocks[..] else {
            panic!("{clocks:?}");
        };
        for (handle, hertz) in [(half, 12_000_000), (whole, 24_000_000)] {
            let clock = tree.find_phandle(handle).expect("a clock");
            assert_eq!(clock.compatible().unwrap().first(), "fixed-clock");
            assert_eq!(values(&clock, "clock-frequency"), [hertz]);
        }
        let named = |handle| tree.find_phandle(handle).expect("a node").name;
        assert_eq!(named(controller), "clocks@40000000");
        assert_eq!(values(&card, "resets"), [controller, 5]);
        assert_eq!(named(values(&card, "phy-handle")[0]), "ethernet-phy@3");
        let specifiers = values(&card, "interrupts-extended");
        assert_eq!(specifiers.len(), interrupts);
        let parent = tree.find_phandle(specifiers[0]).expect("a controller");
        let name = if has_files {
            "riscv,aplic"
        } else {
            "sifive,plic-1.0.0"
        };
        assert_eq!(parent.compatible().unwrap().first(), name);
        assert_eq!(specifiers[1], 33);
        for gone in ["iommus", "pinctrl-0", "interrupts"] {
            assert!(card.property(gone).is_none(), "{gone}");
        }
        assert!(card.property("dma-noncoherent").is_some());
        let phy = tree.find_node("/ethernet@41000000/mdio/ethernet-phy@3");
        assert_eq!(values(&phy.expect("the PHY"), "reg"), [3]);
    }
}

proptest::proptest! {
    /// Any bytes of a tree may have changed.
    #[test]
    fn changed_trees_give_without_a_panic(
        changes in proptest::collection::vec((0usize..4096, proptest::prelude::any::<u8>()), 1..8),
    ) {
        let mut bytes = board(with_card);
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        let paths = [CARD, " ", CLOCKS].concat();
        if let Ok(tree) = Tree::new(&bytes)
            && let Ok(given) = give(&tree, &[wish("one", &paths)], 0)
        {
            let mut fdt = crate::writer::TreeWriter::default();
            fdt.begin_node("");
            given[0].write(&mut fdt, crate::interrupt_parent::InterruptParent::new(1, true), 2, None);
            given[0].write_supplies(&mut fdt, 2);
            fdt.end_node();
            let _ = fdt.finish();
        }
    }
}
