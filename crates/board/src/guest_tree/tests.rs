//! Tests that read the tree with another crate, and with `dtc` where that is installed.

use std::eprintln;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fdt::Fdt;
use fdt::node::FdtNode;

use super::*;
use crate::writer::WriterError;

const EXTENSIONS: &[&str] = &[
    "i", "m", "a", "f", "d", "c", "zicbom", "zicboz", "zicsr", "zawrs", "ssaia", "sstc",
];

const fn region(start: u64, size: u64) -> Range {
    Range { start, size }
}

fn slot(number: u32) -> VirtioDevice {
    VirtioDevice {
        registers: region(0x1000_1000 + 0x1000 * u64::from(number), 0x1000),
        source: number + 1,
    }
}

fn guest<'a>(virtio: &'a [VirtioDevice]) -> GuestDescription<'a> {
    GuestDescription {
        name: "north",
        memory: region(0x1_4000_0000, 1 << 30),
        vcpus: 4,
        timebase_frequency: 10_000_000,
        isa_base: "rv64i",
        isa_extensions: EXTENSIONS,
        cache_block_size: Some(64),
        zero_block_size: Some(64),
        mmu_type: "riscv,sv57",
        memory_for_devices: None,
        initrd: Some(region(0x1_7000_0000, 12_345)),
        bootargs: "console=ttyS0 quiet",
        virtio,
        bridge: None,
        given: None,
        has_files: true,
        sources: 96,
        clock: true,
        rng_seed: Some(&[7; 32]),
    }
}

fn bytes(guest: &GuestDescription<'_>) -> Result<Vec<u8>, GuestTreeError> {
    build(guest).map(|tree| tree.bytes)
}

fn cells(node: &FdtNode<'_, '_>, name: &str) -> Vec<u32> {
    let property = node
        .property(name)
        .unwrap_or_else(|| panic!("no property {name}"));
    property
        .value
        .chunks(4)
        .map(|cell| u32::from_be_bytes(cell.try_into().unwrap()))
        .collect()
}

#[test]
fn reader_finds_the_described_computer() {
    let devices = [slot(0), slot(7)];
    let blob = bytes(&guest(&devices)).expect("a sound description");
    let tree = Fdt::new(&blob).expect("a tree");
    let memory = tree.memory();
    let range = memory.regions().next().unwrap();
    assert_eq!(
        (range.starting_address as u64, range.size),
        (0x1_4000_0000, Some(1 << 30))
    );
    assert_eq!(tree.cpus().count(), 4);
    assert_eq!(tree.chosen().bootargs(), Some("console=ttyS0 quiet"));
    let stdout = tree.chosen().stdout().expect("a console");
    assert_eq!(stdout.compatible().unwrap().first(), "ns16550a");
    let chosen = tree.find_node("/chosen").unwrap();
    assert_eq!(cells(&chosen, "linux,initrd-start"), [1, 0x7000_0000]);
    assert_eq!(
        cells(&chosen, "linux,initrd-end"),
        [1, 0x7000_0000 + 12_345]
    );
}

#[test]
fn interrupts_lead_from_device_to_every_vcpu() {
    let devices = [slot(2)];
    let blob = bytes(&guest(&devices)).expect("a sound description");
    let tree = Fdt::new(&blob).expect("a tree");
    let device = tree
        .find_node("/soc/virtio_mmio@10003000")
        .expect("the device");
    assert_eq!(cells(&device, "interrupts"), [3, 1], "source, rising edge");
    let aplic = tree
        .find_phandle(cells(&device, "interrupt-parent")[0])
        .expect("its parent");
    assert_eq!(aplic.compatible().unwrap().first(), "riscv,aplic");
    assert_eq!(cells(&aplic, "riscv,num-sources"), [96]);
    let imsic = tree
        .find_phandle(cells(&aplic, "msi-parent")[0])
        .expect("its parent");
    assert_eq!(imsic.compatible().unwrap().first(), "riscv,imsics");
    assert_eq!(cells(&imsic, "reg"), [0, 0x2800_0000, 0, 4 * 4096]);
    assert_eq!(cells(&imsic, "riscv,num-ids"), [63]);
    let parents = cells(&imsic, "interrupts-extended");
    for (vcpu, pair) in parents.chunks(2).enumerate() {
        assert_eq!(pair[1], 9, "supervisor external interrupt");
        let path = format!("/cpus/cpu@{vcpu:x}/interrupt-controller");
        let controller = tree.find_node(&path).expect("a vCPU's controller");
        assert_eq!(cells(&controller, "phandle"), [pair[0]]);
    }
    assert_eq!(parents.len(), 8);
}

#[test]
fn plic_leads_from_device_to_every_vcpu() {
    let devices = [slot(2)];
    let mut description = guest(&devices);
    description.has_files = false;
    let blob = bytes(&description).expect("a sound description");
    let tree = Fdt::new(&blob).expect("a tree");
    let device = tree
        .find_node("/soc/virtio_mmio@10003000")
        .expect("the device");
    assert_eq!(cells(&device, "interrupts"), [3], "a source has no mode");
    let plic = tree
        .find_phandle(cells(&device, "interrupt-parent")[0])
        .expect("its parent");
    assert_eq!(plic.compatible().unwrap().first(), "sifive,plic-1.0.0");
    assert_eq!(cells(&plic, "riscv,ndev"), [96]);
    // Four contexts of 4 KiB behind the priorities, the pending bits and the enable bits.
    assert_eq!(cells(&plic, "reg"), [0, 0xc00_0000, 0, 0x20_4000]);
    let parents = cells(&plic, "interrupts-extended");
    for (vcpu, pair) in parents.chunks(2).enumerate() {
        assert_eq!(pair[1], 9, "supervisor external interrupt");
        let path = format!("/cpus/cpu@{vcpu:x}/interrupt-controller");
        let controller = tree.find_node(&path).expect("a vCPU's controller");
        assert_eq!(cells(&controller, "phandle"), [pair[0]]);
    }
    assert_eq!(parents.len(), 8);
    for absent in ["riscv,imsics", "riscv,aplic"] {
        assert!(tree.find_compatible(&[absent]).is_none());
    }
}

#[test]
fn contradictions_are_named() {
    let sound = guest(&[]);
    let mut bad = sound;
    bad.vcpus = 0;
    assert_eq!(bytes(&bad), Err(GuestTreeError::NoVcpus));
    bad.vcpus = u32::MAX;
    assert_eq!(bytes(&bad), Err(GuestTreeError::TooManyVcpus(u32::MAX)));
    bad = sound;
    bad.memory = region(0x8000_0000, 0);
    assert_eq!(bytes(&bad), Err(GuestTreeError::NoMemory));
    bad = sound;
    bad.initrd = Some(region(0x1_7fff_ffff, 2));
    assert!(matches!(
        bytes(&bad),
        Err(GuestTreeError::InitrdOutsideMemory { .. })
    ));
    bad = sound;
    bad.bootargs = "quiet\0loud";
    assert_eq!(bytes(&bad), Err(GuestTreeError::Writer(WriterError::Nul)));
    bad = sound;
    bad.memory = region(0x1000_0000, 1 << 30);
    bad.initrd = None;
    assert!(matches!(bytes(&bad), Err(GuestTreeError::Overlap(..))));
    bad = sound;
    bad.sources = 9;
    assert_eq!(
        bytes(&bad),
        Err(GuestTreeError::BadSource {
            source_number: 10,
            limit: 9
        })
    );
    let on_the_uart = [VirtioDevice {
        source: UART_SOURCE,
        ..slot(1)
    }];
    assert_eq!(
        bytes(&guest(&on_the_uart)),
        Err(GuestTreeError::SharedSource(UART_SOURCE))
    );
    let twice = [slot(1), slot(1)];
    assert!(matches!(
        bytes(&guest(&twice)),
        Err(GuestTreeError::Overlap(..))
    ));
}

/// `dtc` checks references, cell counts, unit addresses and interrupt maps.
#[test]
fn dtc_accepts_the_tree() {
    let devices = [slot(0), slot(1), slot(7)];
    for has_files in [true, false] {
        let description = GuestDescription {
            has_files,
            ..guest(&devices)
        };
        compile(&bytes(&description).expect("a sound description"));
    }
}

pub(crate) fn compile(blob: &[u8]) {
    let compiler = Command::new("dtc")
        .args(["-I", "dtb", "-O", "dts", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut compiler) = compiler else {
        eprintln!("skipped: dtc is not installed");
        return;
    };
    compiler.stdin.take().unwrap().write_all(blob).unwrap();
    let output = compiler.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn clock_is_described_if_present() {
    let devices = [slot(0)];
    let mut description = guest(&devices);
    let blob = bytes(&description).expect("a sound description");
    let tree = Fdt::new(&blob).expect("a tree");
    let node = tree.find_compatible(&["google,goldfish-rtc"]);
    let node = node.expect("a clock");
    assert_eq!(cells(&node, "reg"), [0, 0x10_1000, 0, 0x1000]);
    assert_eq!(cells(&node, "interrupts"), [CLOCK_SOURCE, 4]);
    description.clock = false;
    let blob = bytes(&description).expect("a sound description");
    let tree = Fdt::new(&blob).expect("a tree");
    assert!(tree.find_compatible(&["google,goldfish-rtc"]).is_none());
    // A device with the clock's interrupt cannot be beside it.
    let devices = [VirtioDevice {
        source: CLOCK_SOURCE,
        ..slot(0)
    }];
    let mut description = guest(&devices);
    assert_eq!(
        bytes(&description),
        Err(GuestTreeError::SharedSource(CLOCK_SOURCE))
    );
    description.clock = false;
    assert!(build(&description).is_ok());
}

/// Devicetree Specification 0.4, §2.3.9: the bus's address, the parent's address, the size, two cells each.
#[test]
fn tree_names_memory_as_devices_see_it() {
    let mut description = guest(&[]);
    let tree = bytes(&description).unwrap();
    let read = Fdt::new(&tree).unwrap();
    let bus = read.find_node("/soc").unwrap();
    assert!(bus.property("dma-ranges").is_none());
    description.memory_for_devices = Some(0x2_8000_0000);
    let tree = bytes(&description).unwrap();
    let read = Fdt::new(&tree).unwrap();
    let bus = read.find_node("/soc").unwrap();
    assert_eq!(
        cells(&bus, "dma-ranges"),
        [2, 0x8000_0000, 1, 0x4000_0000, 0, 1 << 30]
    );
}

#[test]
fn replaced_seed_makes_the_same_tree() {
    let mut description = guest(&[]);
    let expected = build(&description).expect("a sound description");
    description.rng_seed = Some(&[0; 32]);
    let mut tree = build(&description).expect("a sound description");
    let at = tree.seed_at.expect("a seed");
    let read = Fdt::new(&tree.bytes).expect("a readable tree");
    let chosen = read.find_node("/chosen").expect("a node for the kernel");
    let seed = chosen.property("rng-seed").expect("a seed").value;
    assert_eq!(seed.as_ptr(), tree.bytes[at..].as_ptr());
    tree.bytes[at..][..32].copy_from_slice(&[7; 32]);
    assert_eq!(tree.bytes, expected.bytes);
    description.rng_seed = None;
    let without = build(&description).expect("a sound description");
    assert_eq!(without.seed_at, None);
}
