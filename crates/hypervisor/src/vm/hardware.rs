//! What every VM has besides memory and vCPUs, and where.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::board::BoardDevice;
use crate::devices::aplic::Aplic;
use crate::devices::bus::{Bus, NoRoom, Owner};
use crate::devices::clock::Clock;
use crate::devices::irq::SourceNumber;
use crate::devices::trapped::TrappedDevice;
use crate::devices::trapped_devices::{DeviceNumber, TrappedDevices};
use crate::devices::uart::line::SerialPort;
use crate::devices::virtio::backend::mediated::{BackendConfig, Mediated};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::transport::{self, MmioTransport};
use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use crate::memory::owned::OwnedRegion;
use crate::vm::guest_tree::{
    APLIC_BASE, APLIC_SIZE, CLOCK_BASE, CLOCK_SIZE, CLOCK_SOURCE, IMSIC_BASE, UART_BASE, UART_SIZE,
    UART_SOURCE,
};

/// A device of the board that a VM has for itself.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub device: BoardDevice,
    /// How it is simulated ([`simulated`](crate::devices::virtio::backend::mediated)); where it is not, the guest drives it itself.
    pub simulation: Option<BackendConfig>,
}

impl Given {
    /// True if the guest's accesses to it trap.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }
}

/// A virtio device that the hypervisor makes for a VM, by which the VM shares something with others.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Which of the whole system's.
    pub client: Client,
    /// Its registers, as the guest sees them.
    pub registers: GuestRegion,
    /// Its source at the guest's APLIC.
    pub source: u32,
    /// Which of the VM's trapped devices.
    pub device: DeviceNumber,
}

/// The same while it is made.
#[derive(Debug)]
pub struct SharingDevice {
    pub client: Client,
    pub device: Box<dyn TrappedDevice>,
    /// The page that the guest reads in place of its registers.
    pub page: OwnedRegion,
}

/// Where such devices lie for a guest, a page each: above all that a VM has of the board's on most boards.
const MADE_BASE: GuestPhysical = GuestPhysical::new(0x1020_0000);

/// Where the guest finds the registers of the device with this number among those that the hypervisor makes for it.
#[must_use]
pub fn made_at(number: u64) -> Option<GuestPhysical> {
    MADE_BASE.checked_add(number.checked_mul(PAGE_SIZE)?)
}

/// What a VM is built with.
#[derive(Debug)]
pub struct Hardware {
    pub bus: Bus,
    pub chips: TrappedDevices,
    pub made: Vec<Made>,
}

/// The bus and the trapped devices of a VM with so many vCPUs and these devices of the board, of an APLIC with so many sources.
///
/// `clock` is the guest's real-time clock, which is left out where a device of the board has its interrupt. `shared` are the devices that the
/// hypervisor makes: they get the highest sources that are free.
///
/// # Errors
/// [`NoRoom`], where a device of the board lies where every VM has something.
pub fn build(
    sources: u32,
    vcpus: u32,
    devices: &[Given],
    clock: Option<Clock>,
    shared: Vec<SharingDevice>,
) -> Result<Hardware, NoRoom> {
    let mut aplic = Aplic::new(sources, vcpus);
    for given in devices.iter().filter(|given| !given.is_simulated()) {
        aplic.add_physical(SourceNumber(given.device.source));
    }
    let mut chips = TrappedDevices::new(aplic);
    // What traps often comes first: the ranges are looked through in this order.
    let mut bus = Bus::default();
    let add = |bus: &mut Bus, chips: &mut TrappedDevices, simulated: bool| {
        let mut of_kind = devices
            .iter()
            .filter(|given| given.is_simulated() == simulated);
        of_kind.try_for_each(|Given { device, simulation }| {
            let source = device.source;
            let owner = match simulation {
                None => Owner::Direct { source },
                Some(config) => {
                    let backend = Mediated::new(*config);
                    let device = Box::new(MmioTransport::new(backend, config.page));
                    Owner::Trapped(chips.add(SourceNumber(source), device))
                }
            };
            bus.add(GuestPhysical::new(device.base), device.size, owner)
        })
    };
    add(&mut bus, &mut chips, true)?;
    let mut made = Vec::new();
    let mut free = (1..=sources).rev().filter(|source| {
        let of_board = devices.iter().any(|given| given.device.source == *source);
        !of_board && ![UART_SOURCE, CLOCK_SOURCE].contains(source)
    });
    for (number, SharingDevice { client, device, .. }) in (0..).zip(shared) {
        let base = made_at(number).ok_or(NoRoom(MADE_BASE))?;
        let registers = GuestRegion::new(base, transport::SIZE).ok_or(NoRoom(base))?;
        let source = free.next().ok_or(NoRoom(base))?;
        let device = chips.add(SourceNumber(source), device);
        bus.add(base, registers.size(), Owner::Trapped(device))?;
        made.push(Made {
            client,
            registers,
            source,
            device,
        });
    }
    let line = Box::new(SerialPort::default());
    let uart = chips.add(SourceNumber(UART_SOURCE), line);
    let aplic = Owner::Trapped(DeviceNumber::APLIC);
    bus.add(APLIC_BASE, APLIC_SIZE, aplic)?;
    bus.add(UART_BASE, UART_SIZE, Owner::Trapped(uart))?;
    let files = u64::from(vcpus) * PAGE_SIZE;
    bus.add(IMSIC_BASE, files, Owner::InterruptFiles)?;
    let taken = (devices.iter()).any(|given| given.device.source == CLOCK_SOURCE);
    if let Some(clock) = clock
        && !taken
        && sources >= CLOCK_SOURCE
    {
        let clock = chips.add(SourceNumber(CLOCK_SOURCE), Box::new(clock));
        bus.add(CLOCK_BASE, CLOCK_SIZE, Owner::Trapped(clock))?;
    }
    add(&mut bus, &mut chips, false)?;
    Ok(Hardware { bus, chips, made })
}

/// True if a VM with this bus has a real-time clock.
#[must_use]
pub fn has_clock(bus: &Bus) -> bool {
    matches!(bus.at(CLOCK_BASE), Some((Owner::Trapped(_), 0)))
}
