//! Facts of boards on sale, in small trees: what is found, and what is said to be missing.

use board::{Board, Controller, HardwareKind, Lack, Range, Survey, Tree, UartKind, hardware};
use vm_fdt::FdtWriter;

/// Where the trees are said to lie.
const LOCATION: Range = Range {
    start: 0x8800_0000,
    size: 0x1000,
};

/// A hart of a tree.
struct Hart {
    id: u32,
    isa: &'static str,
    status: Option<&'static str>,
}

const fn hart(id: u32, isa: &'static str) -> Hart {
    Hart {
        id,
        isa,
        status: None,
    }
}

/// A tree with these harts, one bank of memory, and what `more` adds below `/soc`. The hart numbered `n` has the phandle `1 + n`.
fn tree(harts: &[Hart], more: impl FnOnce(&mut FdtWriter)) -> Vec<u8> {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    cells(&mut fdt, 2, 2);
    let cpus = fdt.begin_node("cpus").unwrap();
    cells(&mut fdt, 1, 0);
    fdt.property_u32("timebase-frequency", 24_000_000).unwrap();
    for hart in harts {
        let cpu = fdt.begin_node(&format!("cpu@{:x}", hart.id)).unwrap();
        fdt.property_string("device_type", "cpu").unwrap();
        fdt.property_u32("reg", hart.id).unwrap();
        fdt.property_string("riscv,isa", hart.isa).unwrap();
        if let Some(status) = hart.status {
            fdt.property_string("status", status).unwrap();
        }
        let controller = fdt.begin_node("interrupt-controller").unwrap();
        fdt.property_null("interrupt-controller").unwrap();
        fdt.property_u32("phandle", 1 + hart.id).unwrap();
        fdt.end_node(controller).unwrap();
        fdt.end_node(cpu).unwrap();
    }
    fdt.end_node(cpus).unwrap();
    let memory = fdt.begin_node("memory@80000000").unwrap();
    fdt.property_string("device_type", "memory").unwrap();
    fdt.property_array_u64("reg", &[0x8000_0000, 0x1_0000_0000])
        .unwrap();
    fdt.end_node(memory).unwrap();
    let soc = fdt.begin_node("soc").unwrap();
    cells(&mut fdt, 2, 2);
    fdt.property_null("ranges").unwrap();
    more(&mut fdt);
    fdt.end_node(soc).unwrap();
    fdt.end_node(root).unwrap();
    fdt.finish().unwrap()
}

fn cells(fdt: &mut FdtWriter, address: u32, size: u32) {
    fdt.property_u32("#address-cells", address).unwrap();
    fdt.property_u32("#size-cells", size).unwrap();
}

fn begin(fdt: &mut FdtWriter, name: &str, compatible: &str, reg: &[u64]) -> vm_fdt::FdtWriterNode {
    let node = fdt.begin_node(name).unwrap();
    fdt.property_string("compatible", compatible).unwrap();
    fdt.property_array_u64("reg", reg).unwrap();
    node
}

/// A PLIC whose contexts are the external interrupts of M (11) and S (9) of these harts.
fn plic(fdt: &mut FdtWriter, compatible: &str, sources: u32, harts: &[u32]) {
    let node = begin(
        fdt,
        "interrupt-controller@c000000",
        compatible,
        &[0xc00_0000, 0x400_0000],
    );
    let contexts: Vec<u32> = harts
        .iter()
        .flat_map(|id| [1 + id, 11, 1 + id, 9])
        .collect();
    fdt.property_array_u32("interrupts-extended", &contexts)
        .unwrap();
    fdt.property_u32("riscv,ndev", sources).unwrap();
    fdt.property_null("interrupt-controller").unwrap();
    fdt.property_u32("#interrupt-cells", 1).unwrap();
    fdt.property_u32("phandle", 0x50).unwrap();
    fdt.end_node(node).unwrap();
}

/// An IMSIC of the supervisor level for these harts, and its APLIC.
fn messages(fdt: &mut FdtWriter, ranges: &[u64], bits: u32, harts: &[u32], groups: &[(&str, u32)]) {
    let node = begin(fdt, "imsics@e0800000", "riscv,imsics", ranges);
    let parents: Vec<u32> = harts.iter().flat_map(|id| [1 + id, 9]).collect();
    fdt.property_array_u32("interrupts-extended", &parents)
        .unwrap();
    fdt.property_u32("riscv,guest-index-bits", bits).unwrap();
    fdt.property_u32("riscv,num-ids", 511).unwrap();
    for (name, value) in groups {
        fdt.property_u32(name, *value).unwrap();
    }
    fdt.property_u32("phandle", 0x60).unwrap();
    fdt.end_node(node).unwrap();
    let aplic = begin(
        fdt,
        "interrupt-controller@e0804000",
        "riscv,aplic",
        &[0xe080_4000, 0x8000],
    );
    fdt.property_u32("msi-parent", 0x60).unwrap();
    fdt.property_u32("riscv,num-sources", 512).unwrap();
    fdt.property_null("interrupt-controller").unwrap();
    fdt.end_node(aplic).unwrap();
}

fn survey(tree: &[u8]) -> Survey {
    Survey::read(&Tree::new(tree).unwrap())
}

/// As SpacemiT's K3: harts 8 to 15 without H, 63 guest files, a UART of the PXA kind.
#[test]
fn k3_has_all_but_virtio() {
    const WITH: &str = "rv64imafdcvh_zicbom_zicboz_zawrs_ssaia_sstc";
    const WITHOUT: &str = "rv64imafdcv_zicbom_zicboz_ssaia_sstc";
    let harts: Vec<Hart> = (0..16)
        .map(|id| hart(id, if id < 8 { WITH } else { WITHOUT }))
        .collect();
    let ids: Vec<u32> = (0..16).collect();
    let tree = tree(&harts, |fdt| {
        messages(fdt, &[0xe080_0000, 0x40_0000], 6, &ids, &[]);
        let uart = begin(
            fdt,
            "serial@d4017000",
            "spacemit,k1-uart",
            &[0xd401_7000, 0x100],
        );
        fdt.property_u32("reg-shift", 2).unwrap();
        fdt.property_u32("reg-io-width", 4).unwrap();
        fdt.property_array_u32("interrupts", &[42, 4]).unwrap();
        fdt.end_node(uart).unwrap();
        let pcie = begin(
            fdt,
            "pcie@ca000000",
            "spacemit,k3-pcie",
            &[0xca00_0000, 0x1000],
        );
        fdt.property_string("device_type", "pci").unwrap();
        fdt.property_null("dma-noncoherent").unwrap();
        fdt.end_node(pcie).unwrap();
    });
    let found = survey(&tree);
    assert_eq!(found.lacks(), []);
    assert_eq!(found.harts_with_h().count(), 8);
    let uart = found.uart.clone().unwrap();
    assert_eq!(
        (uart.kind, uart.register_shift, uart.access_bytes),
        (UartKind::XScale, 2, 4)
    );
    assert_eq!((uart.base, uart.source), (0xd401_7000, Some(42)));
    let devices = hardware(&Tree::new(&tree).unwrap());
    let pcie = devices
        .iter()
        .find(|device| device.path == "/soc/pcie@ca000000")
        .unwrap();
    assert_eq!(
        (pcie.kind, pcie.dma_coherent),
        (HardwareKind::PcieVendor, false)
    );
    let mut board = Board::new(found, LOCATION).unwrap();
    assert_eq!(
        board.take_out_harts_without_h(0),
        (8..16).collect::<Vec<u64>>()
    );
    assert_eq!(board.controller.imsic().unwrap().guest_files(), 63);
    assert!(board.virtio.is_empty());
    // Each hart has 64 pages: hart 3's own file is at 3 × 256 KiB.
    let place = board.controller.delivery(&board.harts[3]).unwrap();
    assert_eq!((place.address, place.index), (0xe08c_0000, 3));
}

/// As EIC7700X (P550) and UltraRISC's DP1000, whose harts are 0 to 3 and 0x10 to 0x13.
#[test]
fn plic_leads_to_contexts_of_harts() {
    const ISA: &str = "rv64imafdch_zicsr_zba_zbb";
    let harts: Vec<Hart> = [0, 1, 2, 3, 0x10, 0x11, 0x12, 0x13]
        .map(|id| hart(id, ISA))
        .into();
    let ids = [0, 1, 2, 3, 0x10, 0x11, 0x12, 0x13];
    let tree = tree(&harts, |fdt| {
        plic(fdt, "sifive,plic-1.0.0", 160, &ids);
        let uart = begin(
            fdt,
            "serial@20300000",
            "snps,dw-apb-uart",
            &[0x2030_0000, 0x1_0000],
        );
        fdt.property_u32("reg-shift", 2).unwrap();
        fdt.property_u32("reg-io-width", 4).unwrap();
        fdt.end_node(uart).unwrap();
    });
    let found = survey(&tree);
    assert_eq!(
        found.uart.as_ref().map(|uart| uart.kind),
        Some(UartKind::DesignWare)
    );
    assert_eq!(
        found.harts.iter().map(|hart| hart.id).collect::<Vec<_>>(),
        [0, 1, 2, 3, 16, 17, 18, 19]
    );
    assert_eq!(found.lacks(), []);
    let board = Board::new(found, LOCATION).unwrap();
    assert_eq!(board.controller.sources(), 160);
    // Contexts are M and S of each hart by turns (PLIC specification, "Memory Map": the thresholds of contexts are 4 KiB apart).
    let last = board.controller.delivery(&board.harts[7]).unwrap();
    assert_eq!((last.index, last.address), (15, 0xc20_f000));
}

/// As UltraRISC's DP1000: contexts for M, S and VS of each hart, and a tree that names no other kind of PLIC.
#[test]
fn dp1000_has_the_claim_erratum() {
    const ISA: &str = "rv64imafdch_zicsr_zba_zbb";
    let tree = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).into()).collect();
        tree(&[hart(0, ISA), hart(0x10, ISA)], |fdt| {
            let node = fdt.begin_node("plic@9000000").unwrap();
            fdt.property_string_list("compatible", names).unwrap();
            fdt.property_array_u64("reg", &[0x900_0000, 0x400_0000])
                .unwrap();
            let contexts = [1, 11, 1, 9, 1, 10, 0x11, 11, 0x11, 9, 0x11, 10];
            fdt.property_array_u32("interrupts-extended", &contexts)
                .unwrap();
            fdt.property_u32("riscv,ndev", 160).unwrap();
            fdt.end_node(node).unwrap();
        })
    };
    for (names, has_claim_erratum) in [
        (&["ultrarisc,dp1000-plic", "ultrarisc,cp100-plic"][..], true),
        (
            &["ultrarisc,dp1000-plic", "sifive,plic-1.0.0", "riscv,plic0"],
            true,
        ),
        (&["sifive,plic-1.0.0", "riscv,plic0"], false),
    ] {
        let found = survey(&tree(names));
        assert_eq!(found.lacks(), []);
        let board = Board::new(found, LOCATION).unwrap();
        let Controller::Plic(plic) = &board.controller else {
            panic!("{:?}", board.controller);
        };
        assert_eq!(plic.has_claim_erratum, has_claim_erratum, "{names:?}");
        let second = board.controller.delivery(&board.harts[1]).unwrap();
        assert_eq!((second.index, second.address), (4, 0x920_4000));
    }
}

/// As QEMU's board with an APLIC alone: a domain for M, and one for S below it.
#[test]
fn aplic_without_imsic_has_wires() {
    const ISA: &str = "rv64imafdch_sstc";
    let tree = tree(&[hart(0, ISA), hart(1, ISA)], |fdt| {
        for (base, number) in [(0xc00_0000, 11), (0xd00_0000, 9)] {
            let name = format!("interrupt-controller@{base:x}");
            let node = begin(fdt, &name, "riscv,aplic", &[base, 0x8000]);
            let wires = [1, number, 2, number];
            fdt.property_array_u32("interrupts-extended", &wires)
                .unwrap();
            fdt.property_u32("riscv,num-sources", 96).unwrap();
            fdt.end_node(node).unwrap();
        }
    });
    let found = survey(&tree);
    assert_eq!(found.lacks(), []);
    let board = Board::new(found, LOCATION).unwrap();
    assert!(matches!(&board.controller, Controller::Direct(wired) if wired.base == 0xd00_0000));
    let second = board.controller.delivery(&board.harts[1]).unwrap();
    assert_eq!((second.index, second.address), (1, 0xd00_4020));
}

/// As Tenstorrent's Atlantis: RVA23, six index bits, a UART behind a bus with its own addresses.
#[test]
fn addresses_are_translated_by_buses() {
    let harts = [
        hart(0, "rv64imafdcvh_ssaia_sstc"),
        hart(1, "rv64imafdcvh_ssaia_sstc"),
    ];
    let tree = tree(&harts, |fdt| {
        messages(fdt, &[0xe080_0000, 0x8_0000], 6, &[0, 1], &[]);
        let bus = fdt.begin_node("peripherals").unwrap();
        fdt.property_string("compatible", "simple-bus").unwrap();
        cells(fdt, 1, 1);
        // 0x0 on this bus is 0xd400_0000 above.
        fdt.property_array_u32("ranges", &[0, 0, 0xd400_0000, 0x100_0000])
            .unwrap();
        let uart = fdt.begin_node("serial@110000").unwrap();
        fdt.property_string("compatible", "ns16550a").unwrap();
        fdt.property_array_u32("reg", &[0x11_0000, 0x1000]).unwrap();
        fdt.end_node(uart).unwrap();
        let far = fdt.begin_node("serial@2000000").unwrap();
        fdt.property_string("compatible", "ns16550a").unwrap();
        fdt.property_array_u32("reg", &[0x200_0000, 0x1000])
            .unwrap();
        fdt.end_node(far).unwrap();
        fdt.end_node(bus).unwrap();
    });
    let found = survey(&tree);
    assert_eq!(found.lacks(), []);
    assert_eq!(found.uart.unwrap().base, 0xd411_0000);
    let whole = Tree::new(&tree).unwrap();
    let far = whole.find("/soc/peripherals/serial@2000000").unwrap();
    assert_eq!(far.registers(), [], "the bus does not reach it");
}

/// As SG2044, X280, QiLai and K1, whose harts have no H, and JH7110 with a monitor hart that is disabled.
#[test]
fn boards_without_h_are_told_plainly() {
    let mut monitor = hart(0, "rv64imac");
    monitor.status = Some("disabled");
    let harts = [
        monitor,
        hart(1, "rv64imafdc_zba_zbb"),
        hart(2, "rv64imafdc_zba_zbb"),
    ];
    let found = survey(&tree(&harts, |fdt| {
        plic(fdt, "riscv,plic0", 136, &[1, 2]);
    }));
    assert_eq!(found.harts.len(), 2);
    let lacks = found.lacks();
    assert_eq!(lacks, [Lack::HypervisorExtension]);
    let text = lacks[0].to_string();
    assert_eq!(
        text,
        "no hart's ISA string names the hypervisor extension (H): VMs cannot run on this board"
    );
    assert_eq!(found.uart, None);
}

/// As QEMU's board with two sockets: a range for each, group numbers in bit 24.
#[test]
fn sockets_are_groups_of_an_imsic() {
    const ISA: &str = "rv64imafdch_ssaia_sstc";
    let harts: Vec<Hart> = (0..4).map(|id| hart(id, ISA)).collect();
    let ranges = [0x2800_0000, 0x1_0000, 0x2900_0000, 0x1_0000];
    let groups = [
        ("riscv,hart-index-bits", 1),
        ("riscv,group-index-bits", 1),
        ("riscv,group-index-shift", 24),
    ];
    let found = survey(&tree(&harts, |fdt| {
        messages(fdt, &ranges, 3, &[0, 1, 2, 3], &groups);
    }));
    assert_eq!(found.lacks(), []);
    let board = Board::new(found, LOCATION).unwrap();
    let places: Vec<(u64, u64)> = board
        .harts
        .iter()
        .filter_map(|hart| board.controller.delivery(hart))
        .map(|place| (place.address, place.index))
        .collect();
    assert_eq!(
        places,
        [
            (0x2800_0000, 0),
            (0x2800_8000, 1),
            (0x2900_0000, 2),
            (0x2900_8000, 3)
        ]
    );
}

/// An SDK's tree names the console by an alias with the line's speed, and disables the first UART.
#[test]
fn console_is_the_one_that_stdout_names() {
    let tree = tree(&[hart(0, "rv64imafdch_ssaia_sstc")], |fdt| {
        messages(fdt, &[0xe080_0000, 0x8000], 3, &[0], &[]);
        for (name, base) in [
            ("serial@10000000", 0x1000_0000),
            ("serial@10010000", 0x1001_0000),
        ] {
            let uart = begin(fdt, name, "ns16550a", &[base, 0x100]);
            fdt.end_node(uart).unwrap();
        }
        let chosen = fdt.begin_node("chosen").unwrap();
        fdt.end_node(chosen).unwrap();
    });
    assert_eq!(survey(&tree).uart.unwrap().base, 0x1000_0000);
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    cells(&mut fdt, 1, 1);
    let aliases = fdt.begin_node("aliases").unwrap();
    fdt.property_string("serial3", "/serial@2000").unwrap();
    fdt.end_node(aliases).unwrap();
    let chosen = fdt.begin_node("chosen").unwrap();
    fdt.property_string("stdout-path", "serial3:115200n8")
        .unwrap();
    fdt.end_node(chosen).unwrap();
    for (name, base) in [("serial@1000", 0x1000), ("serial@2000", 0x2000)] {
        let uart = fdt.begin_node(name).unwrap();
        fdt.property_string("compatible", "sifive,uart0").unwrap();
        fdt.property_array_u32("reg", &[base, 0x100]).unwrap();
        fdt.end_node(uart).unwrap();
    }
    fdt.end_node(root).unwrap();
    let uart = survey(&fdt.finish().unwrap()).uart.unwrap();
    assert_eq!(
        (uart.base, uart.kind, uart.access_bytes),
        (0x2000, UartKind::SiFive, 4)
    );
}
