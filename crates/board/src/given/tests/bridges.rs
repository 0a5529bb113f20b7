//! Host bridges of PCI, given and refused.

use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

pub(super) const BRIDGE: &str = "/soc/pci@70000000";
/// Windows as `ranges` has them: ports, 32 bits, and 16 GiB with 64-bit addresses.
pub(super) const WINDOWS: [u32; 21] = [
    0x100_0000,
    0,
    0,
    0,
    0x300_0000,
    0,
    0x1_0000, //
    0x200_0000,
    0,
    0x4000_0000,
    0,
    0x4000_0000,
    0,
    0x2000_0000, //
    0x300_0000,
    4,
    0,
    4,
    0,
    4,
    0,
];
/// Two devices' first interrupts, one at the board's PLIC and one at the bridge's own controller.
pub(super) const MAP: [u32; 13] = [0, 0, 0, 1, PLIC, 32, 0x800, 0, 0, 1, 0x70, 9, 9];

pub(super) fn bridge(
    fdt: &mut FdtWriter,
    (windows, map): (&[u32], &[u32]),
    more: impl FnOnce(&mut FdtWriter),
) {
    let reg = [0x7000_0000, 0x1000_0000];
    node(fdt, "pci@70000000", "pci-host-ecam-generic", &reg, |fdt| {
        cells(fdt, 3, 2);
        fdt.property_string("device_type", "pci").unwrap();
        fdt.property_null("dma-coherent").unwrap();
        words(fdt, "#interrupt-cells", &[1]);
        words(fdt, "ranges", windows);
        words(fdt, "interrupt-map", map);
        words(fdt, "interrupt-map-mask", &[0x1800, 0, 0, 7]);
        words(fdt, "bus-range", &[0, 0xff]);
        words(fdt, "msi-parent", &[0x52]);
        words(fdt, "iommu-map", &IOMMU_MAP);
        more(fdt);
        let own = fdt.begin_node("legacy").unwrap();
        fdt.property_null("interrupt-controller").unwrap();
        words(fdt, "#interrupt-cells", &[2]);
        words(fdt, "#address-cells", &[0]);
        words(fdt, "interrupts-extended", &[PLIC, 36]);
        words(fdt, "phandle", &[0x70]);
        fdt.end_node(own).unwrap();
        let port = fdt.begin_node("pci@1,0").unwrap();
        cells(fdt, 3, 2);
        fdt.property_string("device_type", "pci").unwrap();
        fdt.property_null("ranges").unwrap();
        words(fdt, "reg", &[0x800, 0, 0, 0, 0]);
        fdt.end_node(port).unwrap();
    });
}

#[test]
fn bridge_is_given_with_windows_and_interrupts() {
    let bytes = board(|fdt| bridge(fdt, (&WINDOWS, &MAP), |_| {}));
    let tree = Tree::new(&bytes).unwrap();
    let given = give(&tree, &[wish("one", BRIDGE)], 0).unwrap();
    let range = |start, size| Range { start, size };
    let expected = [
        range(0x300_0000, 0x1_0000),
        range(0x4000_0000, 0x2000_0000),
        range(0x7000_0000, 0x1000_0000),
        range(0x4_0000_0000, 0x4_0000_0000),
    ];
    assert_eq!(given[0].pages, expected);
    assert_eq!(given[0].sources, [32, 36]);
    assert_eq!(given[0].trusted, [BRIDGE; 0]);
    assert_eq!(given[0].behind, [behind(0..=0xfffe)]);
    for (has_files, length) in [(true, 14), (false, 13)] {
        let guest = guest(&bytes, BRIDGE, has_files);
        let guest = Fdt::new(&guest).unwrap();
        let node = guest.find_node("/pci@70000000").expect("the bridge");
        assert_eq!(values(&node, "reg"), [0, 0x7000_0000, 0, 0x1000_0000]);
        assert_eq!(values(&node, "ranges"), WINDOWS);
        assert_eq!(values(&node, "#address-cells"), [3]);
        assert_eq!(values(&node, "interrupt-map-mask"), [0x1800, 0, 0, 7]);
        assert!(node.property("dma-coherent").is_some());
        for gone in ["msi-parent", "iommu-map"] {
            assert!(node.property(gone).is_none(), "{gone}");
        }
        let map = values(&node, "interrupt-map");
        assert_eq!(map.len(), length);
        assert_eq!((map[3], map[5]), (1, 32));
        let parent = guest.find_phandle(map[4]).expect("a controller");
        assert!(parent.name.starts_with(if has_files {
            "interrupt-controller@d"
        } else {
            "interrupt-controller@c"
        }));
        let own = guest.find_phandle(map[length - 3]).expect("a controller");
        assert_eq!((own.name, &map[length - 2..]), ("legacy", &[9, 9][..]));
        let port = node.children().find(|child| child.name == "pci@1,0");
        let port = port.expect("the port");
        assert_eq!(values(&port, "reg"), [0x800, 0, 0, 0, 0]);
        assert_eq!(values(&port, "#address-cells"), [3]);
    }
}

/// All functions at the IOMMU, as QEMU's board has it.
const IOMMU_MAP: [u32; 8] = [0, 0x51, 0, 0, 0, 0x51, 0, 0xffff];

/// A bridge that may send messages names the guest's interrupt files.
#[test]
fn messages_go_to_the_guests_files() {
    let bytes = board(|fdt| bridge(fdt, (&WINDOWS, &MAP), |_| {}));
    let tree = Tree::new(&bytes).unwrap();
    let mut given = give(&tree, &[wish("one", BRIDGE)], 0).unwrap();
    for sends in [false, true] {
        given[0].sends_messages = sends;
        let guest = guest_with(&given[0], true);
        let guest = Fdt::new(&guest).unwrap();
        let node = guest.find_node("/pci@70000000").expect("the bridge");
        let parent = values(&node, "msi-parent").first().copied();
        let parent = parent.and_then(|handle| guest.find_phandle(handle));
        let kind = parent.map(|parent| parent.compatible().unwrap().first());
        assert_eq!(kind, sends.then_some("riscv,imsics"));
    }
}

/// Refusals of the bridge for one VM, in words.
fn refusals(tree: &[u8], wishes: &[Wish<'_>]) -> Vec<String> {
    let tree = Tree::new(tree).unwrap();
    let refusals = give(&tree, wishes, 0).err().unwrap_or_default();
    refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn windows_onto_something_else_are_refused() {
    let over = |start: u32, size: u32| [0x200_0000, 0, start, 0, start, 0, size];
    let cases: [(&[u32], &[u32], &str); 8] = [
        (
            &over(0x8000_0000, 0x1000),
            &[],
            "reg: a page of its registers has those of /memory@80000000",
        ),
        (
            &over(0x2000_0000, 0x1000),
            &[],
            "reg: a page of its registers has those of /soc/serial@20000000",
        ),
        (
            &over(0x1000_0000, 0x1000),
            &[],
            "reg: the registers lie where the guest has its console",
        ),
        (&over(0x4000_0000, 0), &[], "ranges: a range is empty"),
        (&WINDOWS[..20], &[], "ranges: harts do not reach a window"),
        (
            &[0x300_0000, 0, 0, u32::MAX, u32::MAX, 1, 0],
            &[],
            "ranges: a range is empty or too large",
        ),
        (
            &[],
            &[0, 0, 0, 1, PLIC, 65],
            "interrupt-map: no such source",
        ),
        (
            &[],
            &[0, 0, 0, 1, 0x99, 32],
            "interrupt-map: it does not lead to the interrupt controller",
        ),
    ];
    for (windows, map, part) in cases {
        let tree = board(|fdt| bridge(fdt, (windows, map), |_| {}));
        let refusals = refusals(&tree, &[wish("one", BRIDGE)]);
        let [refusal] = &refusals[..] else {
            panic!("{part}: {refusals:?}");
        };
        assert!(
            refusal.starts_with(&["one cannot have ", BRIDGE, ": ", part].concat()),
            "{refusal}"
        );
    }
    let tree = board(|fdt| {
        bridge(fdt, (&WINDOWS, &MAP), |fdt| {
            fdt.property_array_u64("dma-ranges", &[0, 0, 0]).unwrap();
        });
    });
    let refusal = refusals(&tree, &[wish("one", BRIDGE)]);
    assert!(
        refusal[0].contains("dma-ranges: devices see other addresses"),
        "{refusal:?}"
    );
}

#[test]
fn window_and_device_go_to_one_vm() {
    let tree = board(|fdt| {
        bridge(fdt, (&WINDOWS, &MAP), |_| {});
        node(fdt, "card@41000000", "a", &[0x4100_0000, 0x1000], |_| {});
    });
    let card = "/soc/card@41000000";
    let apart = [wish("one", BRIDGE), wish("two", card)];
    let refusals_of = |wishes| refusals(&tree, wishes);
    let refused = refusals_of(&apart);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused
            .iter()
            .all(|line| line.contains("a page of its registers has those of"))
    );
    let both = [BRIDGE, " ", card].concat();
    assert_eq!(refusals_of(&[wish("one", &both)]), [""; 0]);
}

proptest::proptest! {
    /// Any bytes of a tree may have changed.
    #[test]
    fn changed_bridges_give_without_a_panic(
        changes in proptest::collection::vec((0usize..4096, proptest::prelude::any::<u8>()), 1..8),
    ) {
        let mut bytes = board(|fdt| bridge(fdt, (&WINDOWS, &MAP), |_| {}));
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        if let Ok(tree) = Tree::new(&bytes)
            && let Ok(given) = give(&tree, &[wish("one", BRIDGE)], 0)
        {
            let mut fdt = crate::writer::TreeWriter::default();
            fdt.begin_node("");
            given[0].write(&mut fdt, crate::interrupt_parent::InterruptParent::new(1, true), 2, None);
            fdt.end_node();
            let _ = fdt.finish();
        }
    }
}
