//! Devices behind IOMMUs.

use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

/// An IOMMU with this handle, and cells of an id.
fn iommu(fdt: &mut FdtWriter, start: u64, kind: &str, (handle, id_cells): (u32, u32)) {
    let name = std::format!("iommu@{start:x}");
    node(fdt, &name, kind, &[start, 0x1000], |fdt| {
        words(fdt, "#iommu-cells", &[id_cells]);
        words(fdt, "phandle", &[handle]);
    });
}

/// A bridge with this `iommu-map`, and a mask for it.
fn bridge(fdt: &mut FdtWriter, start: u64, map: &[u32], mask: Option<u32>) {
    let name = std::format!("pci@{start:x}");
    node(
        fdt,
        &name,
        "pci-host-ecam-generic",
        &[start, 0x10_0000],
        |fdt| {
            cells(fdt, 3, 2);
            fdt.property_string("device_type", "pci").unwrap();
            words(fdt, "bus-range", &[0, 1]);
            words(fdt, "iommu-map", map);
            if let Some(mask) = mask {
                words(fdt, "iommu-map-mask", &[mask]);
            }
        },
    );
}

fn lines(tree: &[u8], wishes: &[Wish<'_>]) -> Vec<String> {
    let tree = Tree::new(tree).unwrap();
    let refusals = give(&tree, wishes, 0).err().unwrap_or_default();
    refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn whole_map_confines_a_bridge() {
    let cases: [(&[u32], Option<u32>, bool); 8] = [
        (&[0, 0x51, 0x100, 0x200], None, true),
        (&[0, 0x51, 0x100, 0x1ff], None, true),
        (
            &[0, 0x51, 0x1000, 0x100, 0x100, 0x51, 0x1100, 0x100],
            None,
            true,
        ),
        // A bus is left out, or a part of one.
        (&[0, 0x51, 0, 0x100], None, false),
        (&[1, 0x51, 1, 0x1ff], None, false),
        (&[0, 0x51, 0, 0x80, 0x81, 0x51, 0x81, 0x17f], None, false),
        // Another kind of IOMMU has a part.
        (&[0, 0x51, 0, 0x100, 0x100, 0x53, 0x100, 0x100], None, false),
        (&[0, 0x51, 0, 0x200], Some(0xf8), false),
    ];
    for (map, mask, confines) in cases {
        let tree = board(|fdt| {
            iommu(fdt, 0x3300_0000, "arm,smmu-v3", (0x53, 1));
            bridge(fdt, 0x7000_0000, map, mask);
        });
        let required = Wish {
            confined: true,
            ..wish("one", "/soc/pci@70000000")
        };
        assert_eq!(lines(&tree, &[required]).is_empty(), confines, "{map:x?}");
    }
}

/// An IOMMU that virtio devices use, that is disabled, that is a function on PCI, or that takes other ids is not driven.
#[test]
fn strange_iommus_confine_nothing() {
    let device = |fdt: &mut FdtWriter, handle| {
        node(fdt, "d@60000000", "d", &[0x6000_0000, 0x1000], |fdt| {
            words(fdt, "iommus", &[handle, 7]);
        });
    };
    let required = Wish {
        confined: true,
        ..wish("one", "/soc/d@60000000")
    };
    let check = |tree: &[u8], confines: bool| {
        let refusals = lines(tree, core::slice::from_ref(&required));
        assert_eq!(refusals.is_empty(), confines, "{refusals:?}");
    };
    check(&board(|fdt| device(fdt, 0x51)), true);
    check(
        &board(|fdt| {
            device(fdt, 0x51);
            node(
                fdt,
                "v@62000000",
                "virtio,mmio",
                &[0x6200_0000, 0x200],
                |fdt| {
                    words(fdt, "interrupts", &[41]);
                    words(fdt, "iommus", &[0x51, 8]);
                },
            );
        }),
        false,
    );
    for (kind, id_cells) in [("riscv,iommu", 2), ("a", 1)] {
        let tree = board(|fdt| {
            iommu(fdt, 0x3300_0000, kind, (0x53, id_cells));
            device(fdt, 0x53);
        });
        check(&tree, false);
    }
    check(&board(|fdt| device(fdt, 0x99)), false);
}

/// Two devices that the IOMMU takes for one go to one VM.
#[test]
fn shared_ids_go_to_one_vm() {
    let tree = board(|fdt| {
        bridge(fdt, 0x7000_0000, &[0, 0x51, 0x100, 0x200], None);
        bridge(fdt, 0x7100_0000, &[0, 0x51, 0x2ff, 0x200], None);
        bridge(fdt, 0x7200_0000, &[0, 0x51, 0x300, 0x200], None);
    });
    let (a, b, c) = (
        "/soc/pci@70000000",
        "/soc/pci@71000000",
        "/soc/pci@72000000",
    );
    let refusals = lines(&tree, &[wish("one", a), wish("two", b)]);
    let reason =
        ": iommus: the IOMMU cannot tell it from a device of another VM; give both to one VM";
    assert_eq!(refusals, [["two cannot have ", b, reason].concat()]);
    assert_eq!(lines(&tree, &[wish("one", a), wish("two", c)]), [""; 0]);
    let both = [a, " ", b].concat();
    assert_eq!(lines(&tree, &[wish("one", &both)]), [""; 0]);
}
