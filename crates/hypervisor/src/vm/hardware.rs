//! Devices of every VM, with their guest-physical addresses.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::devices::aplic::Aplic;
use crate::devices::bus::{Bus, NoRoom, Owner};
use crate::devices::clock::Clock;
use crate::devices::controller::Controller;
use crate::devices::irq::SourceNumber;
use crate::devices::plic::Plic;
use crate::devices::serve::place::Places;
use crate::devices::trapped::TrappedDevice;
use crate::devices::trapped_devices::{DeviceNumber, TrappedDevices};
use crate::devices::uart::line::SerialPort;
use crate::devices::virtio::backend::mediated::{BackendConfig, Mediated};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::transport::{self, MmioTransport};
use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use crate::memory::owned::OwnedRegion;
use board::guest_tree::{
    APLIC_BASE, APLIC_SIZE, CLOCK_BASE, CLOCK_SIZE, CLOCK_SOURCE, PLIC_BASE, UART_BASE, UART_SIZE,
    UART_SOURCE, interrupt_files, plic_size,
};
use board::{BoardDevice, GivenDevices, guest_tree};

/// Device of the board that is assigned to a VM.
#[derive(Clone, Copy, Debug)]
pub struct AssignedDevice {
    pub device: BoardDevice,
    /// Configuration of the mediation; none if the guest drives the device itself.
    pub mediation: Option<BackendConfig>,
}

impl AssignedDevice {
    /// Returns true if the guest's accesses to it trap.
    #[must_use]
    pub const fn is_mediated(&self) -> bool {
        self.mediation.is_some()
    }
}

/// Virtio device that the hypervisor emulates for a VM, with which the VM uses a shared disk or switch.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedDevice {
    /// Number among all clients of the system.
    pub client: Client,
    /// Its registers, as the guest sees them.
    pub registers: GuestRegion,
    /// Its source at the guest's interrupt controller.
    pub source: u32,
    /// Number among the VM's trapped devices.
    pub device: DeviceNumber,
}

/// Emulated device that has no address yet.
#[derive(Debug)]
pub struct UnplacedDevice {
    pub client: Client,
    pub device: Box<dyn TrappedDevice>,
    /// The page that the guest reads in place of its registers.
    pub page: OwnedRegion,
}

/// Device of PCI by which a VM's guest serves disks to others.
#[derive(Clone, Copy, Debug)]
pub struct ServingFunction {
    /// Number among all clients of the system.
    pub client: Client,
    pub places: Places,
    /// Its source at the guest's interrupt controller.
    pub source: u32,
    /// Number among the VM's trapped devices.
    pub device: DeviceNumber,
}

/// Such a device that has no interrupt yet.
#[derive(Debug)]
pub struct UnplacedServing {
    pub client: Client,
    pub device: Box<dyn TrappedDevice>,
    /// Memory of each disk that is mapped.
    pub disks: Vec<ServedMemory>,
}

/// Memory of a disk that a VM serves.
#[derive(Clone, Copy, Debug)]
pub struct ServedMemory {
    /// Requests and answers.
    pub ring: OwnedRegion,
    /// The tables of the window.
    pub tables: OwnedRegion,
}

/// Address of the first emulated device for a guest, a page each.
const EMULATED_BASE: GuestPhysical = GuestPhysical::new(guest_tree::EMULATED_BASE);

/// Address of the registers of the guest's emulated device with this number.
#[must_use]
pub fn emulated_device_base(number: u64) -> Option<GuestPhysical> {
    EMULATED_BASE.checked_add(number.checked_mul(PAGE_SIZE)?)
}

/// The page of interrupt file that belongs to a vCPU, as the guest sees it.
#[must_use]
pub fn imsic_file(vcpu: u32) -> GuestPhysical {
    GuestPhysical::new(interrupt_files(vcpu).end())
}

/// Devices that a VM is built with.
#[derive(Debug)]
pub struct Hardware {
    pub bus: Bus,
    pub trapped: TrappedDevices,
    pub emulated: Vec<EmulatedDevice>,
    pub serving: Option<ServingFunction>,
}

/// Interrupt controller of a VM with so many vCPUs on such a board.
#[must_use]
pub fn controller(of_board: &board::Controller, vcpus: u32) -> Controller {
    let sources = of_board.sources();
    match of_board {
        board::Controller::Messages { .. } => Controller::Aplic(Aplic::new(sources, vcpus)),
        board::Controller::Direct(_) | board::Controller::Plic(_) => {
            Controller::Plic(Plic::new(sources, vcpus))
        }
    }
}

/// Builds the bus and the trapped devices of a VM with so many vCPUs and these devices of the board, for a controller with so many sources.
///
/// `clock` is the guest's real-time clock, which is left out if a device of the board has its interrupt or its place. `shared` are the emulated
/// devices, and `serving` the one of PCI: they get the highest sources that are free.
///
/// # Errors
/// [`NoRoom`], if a device of the board overlaps a device that every VM has.
pub fn build(
    mut controller: Controller,
    sources: u32,
    vcpus: u32,
    (devices, given): (&[AssignedDevice], &GivenDevices<'_>),
    clock: Option<Clock>,
    (shared, serving): (Vec<UnplacedDevice>, Option<UnplacedServing>),
) -> Result<Hardware, NoRoom> {
    let direct = devices.iter().filter(|assigned| !assigned.is_mediated());
    let direct = direct.map(|assigned| assigned.device.source);
    for source in direct.chain(given.sources.iter().copied()) {
        controller.add_physical(SourceNumber(source));
    }
    let has_files = matches!(controller, Controller::Aplic(_));
    let mut trapped = TrappedDevices::new(controller);
    // Devices that trap often come first: the ranges are searched in this order.
    let mut bus = Bus::default();
    let add = |bus: &mut Bus, trapped: &mut TrappedDevices, mediated: bool| {
        let mut of_kind = devices
            .iter()
            .filter(|assigned| assigned.is_mediated() == mediated);
        of_kind.try_for_each(|AssignedDevice { device, mediation }| {
            let source = device.source;
            let owner = match mediation {
                None => Owner::Direct,
                Some(config) => {
                    let backend = Mediated::new(*config);
                    let device = Box::new(MmioTransport::new(backend, config.page));
                    Owner::Trapped(trapped.add(SourceNumber(source), device))
                }
            };
            bus.add(GuestPhysical::new(device.base), device.size, owner)
        })
    };
    add(&mut bus, &mut trapped, true)?;
    let mut emulated = Vec::new();
    let mut free = (1..=sources).rev().filter(|source| {
        let of_board = devices
            .iter()
            .any(|assigned| assigned.device.source == *source);
        !of_board
            && !given.sources.contains(source)
            && ![UART_SOURCE, CLOCK_SOURCE].contains(source)
    });
    for (number, UnplacedDevice { client, device, .. }) in (0..).zip(shared) {
        let base = emulated_device_base(number).ok_or(NoRoom(EMULATED_BASE))?;
        let registers = GuestRegion::new(base, transport::SIZE).ok_or(NoRoom(base))?;
        let source = free.next().ok_or(NoRoom(base))?;
        let device = trapped.add(SourceNumber(source), device);
        bus.add(base, registers.size(), Owner::Trapped(device))?;
        emulated.push(EmulatedDevice {
            client,
            registers,
            source,
            device,
        });
    }
    let serving =
        serving.map(|serving| place_serving(serving, free.next(), &mut trapped, &mut bus));
    let serving = serving.transpose()?;
    let line = Box::new(SerialPort::default());
    let uart = trapped.add(SourceNumber(UART_SOURCE), line);
    let controller = Owner::Trapped(DeviceNumber::CONTROLLER);
    if has_files {
        bus.add(GuestPhysical::new(APLIC_BASE), APLIC_SIZE, controller)?;
        let files = interrupt_files(vcpus);
        let base = GuestPhysical::new(files.start);
        bus.add(base, files.size, Owner::InterruptFiles)?;
    } else {
        bus.add(GuestPhysical::new(PLIC_BASE), plic_size(vcpus), controller)?;
    }
    bus.add(
        GuestPhysical::new(UART_BASE),
        UART_SIZE,
        Owner::Trapped(uart),
    )?;
    let taken = (devices.iter()).any(|assigned| assigned.device.source == CLOCK_SOURCE)
        || !given.leaves_room_for_clock();
    if let Some(clock) = clock
        && !taken
        && sources >= CLOCK_SOURCE
    {
        let clock = trapped.add(SourceNumber(CLOCK_SOURCE), Box::new(clock));
        bus.add(
            GuestPhysical::new(CLOCK_BASE),
            CLOCK_SIZE,
            Owner::Trapped(clock),
        )?;
    }
    add(&mut bus, &mut trapped, false)?;
    for pages in &given.pages {
        bus.add(GuestPhysical::new(pages.start), pages.size, Owner::Direct)?;
    }
    Ok(Hardware {
        bus,
        trapped,
        emulated,
        serving,
    })
}

/// Puts the device by which a guest serves disks on the VM's bus.
fn place_serving(
    serving: UnplacedServing,
    source: Option<u32>,
    trapped: &mut TrappedDevices,
    bus: &mut Bus,
) -> Result<ServingFunction, NoRoom> {
    let source = source.ok_or(NoRoom(EMULATED_BASE))?;
    let places = Places::of(serving.disks.len());
    let (mapped, traps) = (places.mapped(), places.trapped());
    let device = trapped.add(SourceNumber(source), serving.device);
    bus.add(traps.base(), traps.size(), Owner::Trapped(device))?;
    bus.add(mapped.base(), mapped.size(), Owner::Window)?;
    Ok(ServingFunction {
        client: serving.client,
        places,
        source,
        device,
    })
}

/// Returns true if a VM with this bus has a real-time clock.
#[must_use]
pub fn has_clock(bus: &Bus) -> bool {
    matches!(
        bus.at(GuestPhysical::new(CLOCK_BASE)),
        Some((Owner::Trapped(_), 0))
    )
}
