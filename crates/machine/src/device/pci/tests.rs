//! The bridge, and a disk behind it, as a driver sees them.

use riscv::pci::{command, header};
use riscv::virtio::pci::{common, structure};
use riscv::virtio::queue::{NEXT, WRITE};

use super::*;
use crate::board::{BoardConfig, IommuConfig, PciConfig};
use crate::device::virtio::{Block, Faults, MemoryDisk, Service, VirtioDevice};
use crate::device::{Devices, FlatMemory};

const RAM: u64 = map::RAM;
/// First page of a hart's supervisor-level interrupt file.
const FILE: u64 = map::IMSIC_SUPERVISOR.base;
const TABLE: u64 = map::PCI_NARROW.base;

struct Driver {
    devices: Devices,
    memory: FlatMemory,
    structures: u64,
}

impl Driver {
    fn new(iommu: Option<IommuConfig>) -> Self {
        let board = BoardConfig {
            pci: Some(PciConfig { iommu }),
            ..crate::machine::Config::default().board
        };
        let mut devices = Devices::new(DevicesConfig::of(&board));
        let disk = MemoryDisk::new((0..4096_u32).map(|byte| byte as u8).collect());
        let (service, faults) = (Service::default(), Faults::default());
        let block = Block::new(Box::new(disk), false, "disk", service, faults, 1);
        let device = VirtioDevice::Block(Box::new(block));
        devices.insert_function(device).expect("room");
        let structures = map::pci_wide(board.memory).base;
        Self {
            devices,
            memory: FlatMemory::new(RAM, 1 << 20),
            structures,
        }
    }

    fn read(&mut self, address: u64, size: u8) -> Result<u64, AccessFault> {
        self.devices
            .read(address, size, Cycles(0), &mut self.memory)
    }

    fn write(&mut self, address: u64, size: u8, value: u64) {
        let written = self
            .devices
            .write(address, size, value, Cycles(0), &mut self.memory);
        written.expect("something answers");
    }

    /// Offset in configuration space of the disk, which is device 1.
    fn configuration(at: usize) -> u64 {
        map::PCI_CONFIGURATION.base + (1 << 15) + at as u64
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        self.memory.store(at, bytes).expect("RAM");
    }

    /// Gives the function its addresses, and sets its only queue up.
    fn start(&mut self, messages: bool) {
        self.write(Self::configuration(header::BASE_ADDRESS + 4), 4, TABLE);
        let structures = self.structures;
        self.write(
            Self::configuration(header::BASE_ADDRESS + 16),
            8,
            structures,
        );
        let commands = command::MEMORY | command::MASTER;
        self.write(Self::configuration(header::COMMAND), 2, commands.into());
        if messages {
            let at = self.capability(riscv::pci::capability::MSIX, 0);
            self.write(at + 2, 2, riscv::pci::msix::ENABLE.into());
            self.write(TABLE + 16, 4, FILE);
            self.write(TABLE + 24, 4, 5);
            self.write(TABLE + 28, 4, 0);
        }
        let put = |driver: &mut Self, offset: u64, size: u8, value: u64| {
            driver.write(driver.structures + offset, size, value);
        };
        put(self, common::STATUS, 1, 3);
        for half in 0..2 {
            put(self, common::DEVICE_FEATURE_SELECT, 4, half);
            put(self, common::DRIVER_FEATURE_SELECT, 4, half);
            // Version 1, and addresses of the platform.
            put(self, common::DRIVER_FEATURE, 4, half * 3);
        }
        put(self, common::STATUS, 1, 11);
        put(self, common::QUEUE_VECTOR, 2, 1);
        put(self, common::QUEUE_SIZE, 2, 8);
        for (offset, area) in [
            (common::QUEUE_DESCRIPTORS, 0),
            (common::QUEUE_DRIVER, 0x1000),
            (common::QUEUE_DEVICE, 0x2000),
        ] {
            put(self, offset, 8, RAM + area);
        }
        put(self, common::QUEUE_ENABLE, 2, 1);
        put(self, common::STATUS, 1, 15);
    }

    /// Address of the capability with this id whose third byte on is `kind`, if that is not 0.
    fn capability(&mut self, id: u8, kind: u8) -> u64 {
        let mut at = self.read(Self::configuration(header::CAPABILITIES), 1);
        loop {
            let place = Self::configuration(at.expect("a capability") as usize);
            let word = self.read(place, 4).expect("configuration space");
            if word as u8 == id && (kind == 0 || (word >> 24) as u8 == kind) {
                return place;
            }
            assert_ne!(word >> 8 & 0xff, 0, "no capability {id} {kind}");
            at = Ok(word >> 8 & 0xff);
        }
    }

    /// Asks for the first sector at [`RAM`] + 0x4000.
    fn ask(&mut self) {
        let buffers = [
            (0x3000, 16, NEXT, 1),
            (0x4000, 512, NEXT | WRITE, 2),
            (0x5000, 1, WRITE, 0),
        ];
        for (number, (offset, length, flags, next)) in (0..).zip(buffers) {
            let at = RAM + 16 * number;
            self.store(at, &(RAM + offset).to_le_bytes());
            let rest = u64::from(length as u32) | u64::from(flags) << 32 | next << 48;
            self.store(at + 8, &rest.to_le_bytes());
        }
        self.store(RAM + 0x1000, &(1_u64 << 16).to_le_bytes());
        let notify = self.structures + 3 * 4096;
        self.write(notify, 2, 0);
    }

    fn used(&mut self) -> u16 {
        let mut bytes = [0; 2];
        self.memory.load(RAM + 0x2002, &mut bytes).expect("RAM");
        u16::from_le_bytes(bytes)
    }

    /// Pending interrupts 0 to 63 of the hart's file.
    fn pending(&mut self) -> u64 {
        let file = crate::device::InterruptFile::Supervisor;
        let found = self
            .devices
            .imsic_read(crate::device::HartId(0), file, 0x80);
        found.expect("the file")
    }
}

#[test]
fn absent_functions_are_all_ones() {
    let mut driver = Driver::new(None);
    let ecam = map::PCI_CONFIGURATION.base;
    assert_eq!(driver.read(ecam, 4), Ok(0x0008_1b36));
    assert_eq!(driver.read(Driver::configuration(0), 4), Ok(0x1042_1af4));
    for absent in [1 << 12, 2 << 15, 1 << 20] {
        assert_eq!(driver.read(ecam + absent, 4), Ok(0xffff_ffff));
        assert_eq!(driver.read(ecam + absent, 2), Ok(0xffff));
        driver.write(ecam + absent, 4, 0);
    }
    assert_eq!(driver.read(ecam + 2, 4), Err(AccessFault), "misaligned");
    assert_eq!(
        driver.read(TABLE, 4),
        Ok(0xffff_ffff),
        "nobody has the address"
    );
    assert_eq!(
        driver.read(map::IOMMU.base, 4),
        Err(AccessFault),
        "no IOMMU"
    );
}

#[test]
fn base_addresses_tell_their_size() {
    let mut driver = Driver::new(None);
    let at = |bar: usize| Driver::configuration(header::BASE_ADDRESS + 4 * bar);
    for bar in 0..6 {
        driver.write(at(bar), 4, 0xffff_ffff);
    }
    let mut bar = |bar| driver.read(at(bar), 4).expect("configuration space");
    assert_eq!((bar(0), bar(1), bar(2)), (0, 0xffff_f000, 0));
    assert_eq!((bar(4), bar(5)), (0xffff_c00c, 0xffff_ffff));
}

#[test]
fn capabilities_lead_to_every_structure() {
    let mut driver = Driver::new(None);
    let vendor = riscv::pci::capability::VENDOR;
    for (kind, page) in [
        (structure::COMMON, 0),
        (structure::ISR, 1),
        (structure::DEVICE, 2),
        (structure::NOTIFY, 3),
    ] {
        let at = driver.capability(vendor, kind);
        assert_eq!(driver.read(at + 4, 1), Ok(4), "the register");
        assert_eq!(driver.read(at + 8, 4), Ok(page * 4096));
    }
    driver.start(false);
    // The capacity, through configuration space.
    let access = driver.capability(vendor, structure::ACCESS);
    for (offset, value) in [(4, 4), (8, 2 * 4096), (12, 4)] {
        driver.write(access + offset, if offset == 4 { 1 } else { 4 }, value);
    }
    assert_eq!(driver.read(access + 16, 4), Ok(8), "sectors");
}

#[test]
fn disks_serve_by_messages_and_lines() {
    for messages in [true, false] {
        let mut driver = Driver::new(None);
        driver.start(messages);
        driver.ask();
        assert_eq!(driver.used(), 1);
        let mut data = [0; 4];
        driver.memory.load(RAM + 0x4001, &mut data).expect("RAM");
        assert_eq!(data, [1, 2, 3, 4]);
        let isr = driver.structures + 4096;
        match messages {
            true => assert_eq!((driver.pending(), driver.read(isr, 1)), (1 << 5, Ok(0))),
            false => assert_eq!((driver.pending(), driver.read(isr, 1)), (0, Ok(1))),
        }
    }
}

#[test]
fn masked_vectors_wait() {
    let mut driver = Driver::new(None);
    driver.start(true);
    driver.write(TABLE + 28, 4, 1);
    driver.ask();
    assert_eq!(
        (driver.pending(), driver.read(TABLE + 0x800, 4)),
        (0, Ok(2))
    );
    driver.write(TABLE + 28, 4, 0);
    assert_eq!(
        (driver.pending(), driver.read(TABLE + 0x800, 4)),
        (1 << 5, Ok(0))
    );
}

#[test]
fn functions_need_leave_to_access_memory() {
    let mut driver = Driver::new(None);
    driver.start(true);
    driver.write(
        Driver::configuration(header::COMMAND),
        2,
        command::MEMORY.into(),
    );
    driver.ask();
    assert_eq!((driver.used(), driver.pending()), (0, 0));
    let status = driver.structures + common::STATUS;
    assert_eq!(driver.read(status, 1), Ok(15 | 64), "it needs a reset");
}

#[test]
fn an_iommu_refuses_and_lets_through() {
    let mut driver = Driver::new(Some(IommuConfig::default()));
    // Addresses are physical ones at first, and then everything is refused.
    driver.start(true);
    driver.ask();
    assert_eq!((driver.used(), driver.pending()), (1, 1 << 5));
    let mut driver = Driver::new(Some(IommuConfig::default()));
    driver.write(map::IOMMU.base + riscv::iommu::DDTP, 8, 0);
    driver.start(true);
    driver.ask();
    assert_eq!((driver.used(), driver.pending()), (0, 0));
    let faults = driver.devices.iommu_statistics().map(|own| own.faults);
    assert_eq!(faults, Some(1), "the ring");
}
