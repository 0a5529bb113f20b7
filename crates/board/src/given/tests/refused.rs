//! Devices that cannot be given.

use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

/// The refusals in words, for these wishes.
fn refusals(tree: &[u8], wishes: &[Wish<'_>], shared: u32) -> Vec<String> {
    let tree = Tree::new(tree).unwrap();
    match give(&tree, wishes, shared) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    }
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
        (
            "/soc/pcie@51000000",
            "compatible: a host bridge of PCI of another kind",
        ),
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

/// A page that a device shares with one that nobody has: the VM reaches both.
#[test]
fn page_neighbours_need_confinement_too() {
    let clock = "/soc/rtc@61000000";
    let kind = "google,goldfish-rtc";
    let tree = board(|fdt| {
        node(fdt, "rtc@61000000", kind, &[0x6100_0000, 0x100], |_| {});
        node(fdt, "dma@61000800", "a", &[0x6100_0800, 0x100], |_| {});
    });
    let required = Wish {
        confined: true,
        ..wish("one", clock)
    };
    refuses(&tree, &required, "reg: no IOMMU");
    let tree = Tree::new(&tree).unwrap();
    let given = give(&tree, &[wish("one", clock)], 0).unwrap();
    assert_eq!(given[0].trusted, ["/soc/dma@61000800"]);
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

/// Clocks that derive from each other in a circle have no rate.
#[test]
fn circular_clocks_are_refused() {
    let tree = board(|fdt| {
        for (name, own, other) in [("a", 0x70, 0x71), ("b", 0x71, 0x70)] {
            node(fdt, name, "fixed-factor-clock", &[], |fdt| {
                words(fdt, "clocks", &[other]);
                words(fdt, "clock-mult", &[u32::MAX]);
                words(fdt, "clock-div", &[1]);
                words(fdt, "phandle", &[own]);
            });
        }
        node(fdt, "c@60000000", "c", &[0x6000_0000, 0x1000], |fdt| {
            words(fdt, "clocks", &[0x70]);
        });
    });
    let wish = wish("one", "/soc/c@60000000");
    refuses(&tree, &wish, "clocks: it depends on a node");
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
