//! The devices together, as a hart and a driver see them through physical addresses.

use super::virtio::{Entropy, Faults, Service, VirtioDevice};
use super::*;
use crate::board::map;

const NOW: Cycles = Cycles(1000);

fn config() -> DevicesConfig {
    DevicesConfig {
        harts: 3,
        guest_files: 7,
        interrupt_ids: 255,
        direct_delivery: false,
        virtio_slots: 8,
        pci: None,
        epoch: 0,
        clock: Clock::new(1_000_000_000, 10_000_000),
    }
}

struct Bench {
    devices: Devices,
    memory: FlatMemory,
}

impl Bench {
    fn new() -> Self {
        let memory = FlatMemory::new(0x4000_0000, 1 << 16);
        Self {
            devices: Devices::new(config()),
            memory,
        }
    }

    fn write(&mut self, address: u64, value: u64) {
        self.devices
            .write(address, 4, value, NOW, &mut self.memory)
            .expect("a register");
    }

    fn read(&mut self, address: u64, size: u8) -> Result<u64, AccessFault> {
        self.devices.read(address, size, NOW, &mut self.memory)
    }

    /// Sets the board up as firmware and a kernel do: the UART's interrupt goes to identity 33 of
    /// the supervisor-level file of hart 2.
    fn route_uart(&mut self) {
        let (root, child) = (map::APLIC_MACHINE.base, map::APLIC_SUPERVISOR.base);
        let source = u64::from(map::UART_SOURCE);
        self.write(root + 0x1bc0, map::IMSIC_MACHINE.base >> 12);
        self.write(root + 0x1bc8, map::IMSIC_SUPERVISOR.base >> 12);
        self.write(root + 0x1bcc, 3 << 20);
        self.write(root + 0x1bc4, 1 << 31 | 2 << 12);
        self.write(root + 4 * source, 1 << 10);
        self.write(child + 4 * source, 6);
        self.write(child + 0x3000 + 4 * source, 2 << 18 | 33);
        self.write(child + 0x1edc, source);
        self.write(child, 1 << 8);
        let file = InterruptFile::Supervisor;
        for (select, value) in [(0x70, 1), (0xc0, 1 << 33)] {
            self.devices
                .imsic_write(HartId(2), file, select, value)
                .expect("a register");
        }
    }
}

/// UART to APLIC to IMSIC to the hart's interrupt level, within the store that causes it.
#[test]
fn wired_interrupts_reach_harts_as_messages() {
    let mut bench = Bench::new();
    bench.route_uart();
    while bench.devices.take_changed().is_some() {}
    let (memory, uart) = (&mut bench.memory, map::UART.base);
    bench
        .devices
        .write(uart + 1, 1, 2, NOW, memory)
        .expect("a byte");
    assert_eq!(bench.devices.take_changed(), Some(HartId(2)));
    assert!(bench.devices.irq_levels(HartId(2)).supervisor_external);
    let file = InterruptFile::Supervisor;
    assert_eq!(bench.devices.imsic_top(HartId(2), file), Ok(33 << 16 | 33));
    bench.devices.imsic_claim(HartId(2), file).expect("a file");
    assert!(!bench.devices.irq_levels(HartId(2)).supervisor_external);
}

/// A hart's store to another hart's guest file.
#[test]
fn guest_file_stores_raise_hgeip_bits() {
    let mut bench = Bench::new();
    let file = InterruptFile::Guest(5);
    for (select, value) in [(0x70, 1), (0xc0, 1 << 2)] {
        bench
            .devices
            .imsic_write(HartId(1), file, select, value)
            .expect("a register");
    }
    bench.write(
        map::IMSIC_SUPERVISOR.base + (1 << 15) + 5 * map::IMSIC_PAGE,
        2,
    );
    assert_eq!(bench.devices.irq_levels(HartId(1)).guest_external, 1 << 5);
}

/// Every window answers where QEMU's board has one, and the holes between them fault.
#[test]
fn windows_answer_and_holes_fault() {
    let mut bench = Bench::new();
    for (address, size) in [
        (map::ROM.base, 4),
        (map::FINISHER.base, 4),
        (map::CLOCK.base, 4),
        (map::MSWI.base, 4),
        (map::MTIMER.base, 8),
        (map::MTIMER.base + map::MTIME_OFFSET, 8),
        (map::SSWI.base, 4),
        (map::APLIC_MACHINE.base, 4),
        (map::APLIC_SUPERVISOR.base, 4),
        (map::UART.base, 1),
        (map::VIRTIO.base, 4),
        (map::VIRTIO.base + 7 * map::VIRTIO_STRIDE, 4),
        (map::VIRTIO.base + 0x1fc, 4),
        (map::IMSIC_MACHINE.base, 4),
        (map::IMSIC_SUPERVISOR.base, 4),
    ] {
        assert!(
            bench.read(address, size).is_ok(),
            "{size} bytes at {address:#x}"
        );
    }
    for address in [
        0,
        0xffc,
        0x10_2000,
        map::APLIC_MACHINE.base + map::aplic_size(3),
        map::UART.base + 8,
        map::CLOCK.base + 0x24,
        map::VIRTIO.base + 0x200,
        map::VIRTIO.base + 0xffc,
        map::VIRTIO.base + 7 * map::VIRTIO_STRIDE + 0x200,
        map::VIRTIO.base + 8 * map::VIRTIO_STRIDE,
        map::IMSIC_MACHINE.base + 3 * map::IMSIC_PAGE,
        map::IMSIC_SUPERVISOR.base + (3 << 15),
        map::RAM,
        u64::MAX - 3,
    ] {
        assert_eq!(bench.read(address, 4), Err(AccessFault), "{address:#x}");
    }
    assert_eq!(
        bench
            .devices
            .write(map::ROM.base, 4, 0, NOW, &mut bench.memory),
        Err(AccessFault)
    );
}

#[test]
fn the_boot_rom_holds_its_bytes() {
    let mut bench = Bench::new();
    bench.devices.set_rom(vec![1, 2, 3, 4, 5]);
    assert_eq!(bench.read(map::ROM.base, 4), Ok(0x0403_0201));
    assert_eq!(bench.read(map::ROM.base + 4, 8), Ok(5));
    assert_eq!(bench.read(map::ROM.base + map::ROM.size - 8, 8), Ok(0));
    assert_eq!(
        bench.read(map::ROM.base + map::ROM.size - 4, 8),
        Err(AccessFault)
    );
}

#[test]
fn the_next_event_is_the_earliest() {
    let mut bench = Bench::new();
    bench.devices.tick(NOW, &mut bench.memory);
    assert_eq!(bench.devices.next_event(), Cycles::NEVER);
    bench
        .devices
        .write(map::MTIMER.base, 8, 50, NOW, &mut bench.memory)
        .expect("mtimecmp");
    // A tick is a hundred cycles.
    assert_eq!(bench.devices.next_event(), Cycles(5000));
    bench.devices.tick(Cycles(5000), &mut bench.memory);
    assert!(bench.devices.irq_levels(HartId(0)).machine_timer);
    assert_eq!(bench.devices.next_event(), Cycles::NEVER);
}

/// All device state goes through a checkpoint, and the copy goes on as the original does.
#[test]
fn devices_go_through_a_checkpoint() {
    let mut bench = Bench::new();
    bench.route_uart();
    let service = Service {
        fixed_nanoseconds: 100,
        ..Service::default()
    };
    let entropy = Entropy::new(service, Faults::default(), 1);
    let device = VirtioDevice::Entropy(Box::new(entropy));
    assert!(bench.devices.insert(3, device, true).is_ok());
    bench
        .devices
        .write(map::MTIMER.base + 8, 8, 77, NOW, &mut bench.memory)
        .expect("mtimecmp");

    let saved = serde_json::to_string(&bench.devices).expect("serialisable");
    let mut restored: Devices = serde_json::from_str(&saved).expect("deserialisable");
    assert_eq!(
        serde_json::to_string(&restored).expect("serialisable"),
        saved
    );
    let mut memory = bench.memory.clone();
    for devices in [&mut bench.devices, &mut restored] {
        devices.tick(Cycles(7700), &mut memory);
        assert!(devices.irq_levels(HartId(1)).machine_timer);
        devices
            .write(map::UART.base + 1, 1, 2, NOW, &mut memory)
            .expect("a byte");
        assert!(devices.irq_levels(HartId(2)).supervisor_external);
    }
}

/// Accesses anywhere with any value: an answer or a fault.
#[test]
fn noise_on_the_bus_is_survived() {
    let mut random = Random::new(3);
    for direct_delivery in [false, true] {
        let config = DevicesConfig {
            direct_delivery,
            ..config()
        };
        let (mut devices, mut memory) = (Devices::new(config), FlatMemory::new(0x4000_0000, 4096));
        let windows = [
            map::FINISHER,
            map::CLOCK,
            map::ACLINT,
            map::SSWI,
            map::APLIC_MACHINE,
            map::APLIC_SUPERVISOR,
            map::UART,
            map::VIRTIO,
            map::IMSIC_MACHINE,
            map::IMSIC_SUPERVISOR,
        ];
        for step in 0..100_000 {
            let window = windows[random.below(windows.len() as u64) as usize];
            let address = (window.base + random.below(window.size.min(0x8000))) & !3;
            let size = [4, 4, 4, 1, 2, 8][random.below(6) as usize];
            let value = random.next() >> random.below(64);
            let now = Cycles(step * 10);
            let _ = devices.write(address, size, value, now, &mut memory);
            let _ = devices.read(address, size, now, &mut memory);
            devices.tick(now, &mut memory);
        }
    }
}
