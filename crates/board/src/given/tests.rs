//! Devices of small boards, given and refused.

use std::string::{String, ToString};
use std::vec::Vec;

use fdt::Fdt;
use fdt::node::FdtNode;
use vm_fdt::FdtWriter;

use super::*;
use crate::Range;
use crate::guest_tree::{GuestDescription, build};

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

/// The refusals in words, for these wishes.
fn refusals(tree: &[u8], wishes: &[Wish<'_>], shared: u32) -> Vec<String> {
    let tree = Tree::new(tree).unwrap();
    match give(&tree, wishes, shared) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    }
}

/// The guest's tree with what one VM is given by these paths.
fn guest(tree: &[u8], paths: &str, has_files: bool) -> Vec<u8> {
    let tree = Tree::new(tree).unwrap();
    let given = give(&tree, &[wish("one", paths)], 0).unwrap();
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
        given: given.first(),
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
    assert_eq!(given[1].trusted, [CLOCKS, CARD]);
}

#[test]
fn copied_nodes_lead_to_their_supplies() {
    let tree = board(with_card);
    let paths = [CARD, " ", CLOCKS].concat();
    for (has_files, interrupts) in [(true, 6), (false, 4)] {
        let tree = guest(&tree, &paths, has_files);
        let tree = Fdt::new(&tree).unwrap();
        let card = tree.find_node(CARD).expect("the card");
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
        let phy = tree.find_node("/soc/ethernet@41000000/mdio/ethernet-phy@3");
        assert_eq!(values(&phy.expect("the PHY"), "reg"), [3]);
    }
}

#[test]
fn unmet_dependencies_are_named() {
    let tree = board(with_card);
    let refusal = refusals(&tree, &[wish("one", CARD)], 0);
    assert_eq!(
        refusal,
        [
            "one cannot have /soc/ethernet@41000000: clocks: it depends on a node that is neither the VM's nor a fixed clock or \
          regulator: /soc/clocks@40000000; give that node to the VM too, if nothing else needs it"
        ]
    );
}

/// Refuses one path with a line that has this part.
fn refuses(tree: &[u8], wish: &Wish<'_>, part: &str) {
    let refusals = refusals(tree, core::slice::from_ref(wish), 0);
    let [refusal] = &refusals[..] else {
        panic!("{}: {refusals:?}", wish.paths);
    };
    let whole = std::format!("one cannot have {}: {part}", wish.paths);
    assert!(refusal.starts_with(&whole), "{refusal}");
    assert!(refusal.contains("; "), "no remedy: {refusal}");
}

#[test]
fn used_and_strange_nodes_are_refused() {
    let tree = board(|fdt| {
        node(fdt, "off@50000000", "a", &[0x5000_0000, 0x1000], |fdt| {
            fdt.property_string("status", "disabled").unwrap();
        });
        node(fdt, "pcie@51000000", "a", &[0x5100_0000, 0x1000], |fdt| {
            fdt.property_string("device_type", "pci").unwrap();
        });
        node(fdt, "far@52000000", "a", &[0x5200_0000, 0x1000], |fdt| {
            words(fdt, "interrupts", &[65]);
        });
        node(fdt, "cpu@53000000", "a", &[0x5300_0000, 0x1000], |fdt| {
            words(fdt, "interrupts-extended", &[1, 16]);
        });
        node(fdt, "like@54000000", "a", &[0x5400_0000, 0x1000], |fdt| {
            words(fdt, "interrupts", &[20]);
        });
        node(fdt, "ten@55000000", "a", &[0x5500_0000, 0x1000], |fdt| {
            words(fdt, "interrupts", &[10]);
        });
        node(fdt, "beside@31000000", "a", &[0x3100_0000, 0x800], |_| {});
        node(fdt, "ram@80000000", "a", &[0x8000_0000, 0x1000], |_| {});
        node(fdt, "empty@56000000", "a", &[0x5600_0000, 0], |_| {});
        node(fdt, "as-uart@10000000", "a", &[0x1000_0000, 0x10], |_| {});
        node(fdt, "end", "a", &[u64::MAX - 0xfff, 0x1000], |_| {});
    });
    for (path, part) in [
        (
            "/soc/nothing@1",
            "devices: the board's device tree has no such node",
        ),
        (
            "/soc/serial@20000000",
            "compatible: it is in use: the console",
        ),
        (
            "/soc/plic@30000000",
            "compatible: it is in use: an interrupt controller",
        ),
        (
            "/soc/aplic@31000800",
            "compatible: it is in use: an interrupt controller",
        ),
        ("/soc/iommu@32000000", "compatible: it is in use: an IOMMU"),
        (
            "/memory@80000000",
            "compatible: it is in use: a part of the harts or their memory",
        ),
        (
            "/soc",
            "devices: a node below it is in use: /soc/plic@30000000",
        ),
        ("/oscillator", "reg: it has none"),
        (
            "/soc/off@50000000",
            "status: the device, or a bus above it, is disabled",
        ),
        ("/soc/pcie@51000000", "device_type: a host bridge of PCI"),
        (
            "/soc/far@52000000",
            "interrupts: no such source, as the controller's are 1 to 64: 65",
        ),
        (
            "/soc/cpu@53000000",
            "compatible: it is in use: an interrupt controller or timer",
        ),
        (
            "/soc/like@54000000",
            "interrupts: its source is also that of the console",
        ),
        (
            "/soc/ten@55000000",
            "interrupts: its source is that of each guest's console",
        ),
        (
            "/soc/beside@31000000",
            "reg: a page of its registers has those of /soc/aplic@31000800",
        ),
        (
            "/soc/ram@80000000",
            "reg: a page of its registers has those of /memory@80000000",
        ),
        ("/soc/empty@56000000", "reg: a range is empty"),
        (
            "/soc/as-uart@10000000",
            "reg: the registers lie where the guest has its console",
        ),
        ("/soc/end", "reg: a range is empty or too large"),
    ] {
        refuses(&tree, &wish("one", path), part);
    }
}

#[test]
fn dma_needs_confinement_or_trust() {
    let device = "/soc/bus@60000000";
    let tree = board(|fdt| {
        node(fdt, "bus@60000000", "a", &[0x6000_0000, 0x1000], |_| {});
        node(
            fdt,
            "rtc@61000000",
            "google,goldfish-rtc",
            &[0x6100_0000, 0x1000],
            |_| {},
        );
        node(fdt, "narrow", "simple-bus", &[], |fdt| {
            cells(fdt, 2, 2);
            fdt.property_null("ranges").unwrap();
            fdt.property_array_u64("dma-ranges", &[0, 0x8000_0000, 0x4000_0000])
                .unwrap();
            node(fdt, "dma@62000000", "a", &[0x6200_0000, 0x1000], |_| {});
        });
    });
    let required = |paths| Wish {
        confined: true,
        ..wish("one", paths)
    };
    let pages = |paths| Wish {
        memory: MemoryOf::Pages,
        ..wish("one", paths)
    };
    refuses(&tree, &required(device), "confined: no IOMMU");
    refuses(&tree, &pages(device), "placement: the device does not find");
    let narrow = wish("one", "/soc/narrow/dma@62000000");
    refuses(&tree, &narrow, "dma-ranges: devices see other addresses");
    let clock = "/soc/rtc@61000000";
    let free = [required(clock), pages(clock), wish("one", device)];
    for wish in free {
        assert_eq!(refusals(&tree, &[wish], 0), [""; 0]);
    }
    let here = Range {
        start: 0x6000_0000,
        size: 0x1000_0000,
    };
    let resident = Wish {
        memory: MemoryOf::At(here),
        ..wish("one", device)
    };
    refuses(
        &tree,
        &resident,
        "reg: the registers lie where the guest has its memory",
    );
}

#[test]
fn two_vms_share_no_page() {
    let tree = board(|fdt| {
        node(fdt, "a@60000000", "a", &[0x6000_0000, 0x800], |fdt| {
            words(fdt, "interrupts", &[40]);
        });
        node(fdt, "b@60000800", "b", &[0x6000_0800, 0x800], |_| {});
        node(fdt, "c@61000000", "c", &[0x6100_0000, 0x1000], |fdt| {
            words(fdt, "interrupts", &[40]);
        });
        node(
            fdt,
            "v@62000000",
            "virtio,mmio",
            &[0x6200_0000, 0x200],
            |fdt| {
                words(fdt, "interrupts", &[41]);
            },
        );
        node(fdt, "w@62000200", "w", &[0x6200_0200, 0x200], |_| {});
    });
    let (a, b, c) = ("/soc/a@60000000", "/soc/b@60000800", "/soc/c@61000000");
    let both = [a, " ", b].concat();
    assert_eq!(refusals(&tree, &[wish("one", &both)], 0), [""; 0]);
    let count = |wishes: &[Wish<'_>], part: &str, shared| {
        let refusals = refusals(&tree, wishes, shared);
        assert!(
            refusals.iter().all(|refusal| refusal.contains(part)),
            "{refusals:?}"
        );
        refusals.len()
    };
    let page = "a page of its registers has those of";
    assert_eq!(count(&[wish("one", a), wish("two", b)], page, 0), 2);
    let source = "its source is also that of";
    assert_eq!(count(&[wish("one", a), wish("two", c)], source, 0), 2);
    let same = [wish("one", a), wish("two", a)];
    assert_eq!(count(&same, "another VM has it: one", 0), 1);
    let twice = [a, " ", a].concat();
    assert_eq!(count(&[wish("one", &twice)], "the VM has it already", 0), 1);
    // The slot is a VM's, or the hypervisor's.
    let w = "/soc/w@62000200";
    let slot = Wish {
        slots: 1,
        ..wish("two", "")
    };
    assert_eq!(count(&[wish("one", w), slot], page, 0), 1);
    assert_eq!(count(&[wish("one", w)], page, 1), 1);
    assert_eq!(count(&[wish("one", w)], page, 0), 0);
    let v = "/soc/v@62000000";
    assert_eq!(count(&[wish("one", v)], page, 1), 1);
    let tree = Tree::new(&tree).unwrap();
    let given = give(&tree, &[wish("one", v)], 0).unwrap();
    assert_eq!((&given[0].slots[..], given[0].pages.len()), (&[0][..], 0));
}
