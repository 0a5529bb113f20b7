//! Which device answers at a physical address.

use super::DevicesConfig;
use super::aplic::DomainLevel;
use super::imsic::Level;
use crate::board::map;

/// Device at an address, with the offset in its window.
pub(super) enum Target {
    Rom(u64),
    Finisher(u64),
    Rtc(u64),
    MachineSoftware(u64),
    Timer(u64),
    SupervisorSoftware(u64),
    Aplic(DomainLevel, u64),
    Uart(u64),
    Imsic(Level, u64),
    Virtio(usize, u64),
    Iommu(u64),
    PciConfiguration(u64),
    Pci(u64),
}

impl Target {
    pub fn of(address: u64, size: u8, config: &DevicesConfig) -> Option<Self> {
        let at = |window: map::Window| window.offset(address, u64::from(size));
        let within = |window: map::Window, registers: u64| {
            at(window).filter(|&offset| offset + u64::from(size) <= registers)
        };
        let aplic = map::aplic_size(config.harts);
        let imsic = |window: map::Window, pages: u64| {
            at(window).filter(|&offset| offset < pages * map::IMSIC_PAGE)
        };
        let harts = u64::from(config.harts).next_power_of_two();
        let bits = map::guest_index_bits(config.guest_files);
        // In the order of how often software comes by.
        imsic(map::IMSIC_SUPERVISOR, harts << bits)
            .map(|offset| Self::Imsic(Level::Supervisor, offset))
            .or_else(|| {
                imsic(map::IMSIC_MACHINE, harts).map(|offset| Self::Imsic(Level::Machine, offset))
            })
            .or_else(|| virtio(address, size))
            .or_else(|| within(map::UART, map::UART_REGISTERS).map(Self::Uart))
            .or_else(|| at(map::MTIMER).map(Self::Timer))
            .or_else(|| at(map::MSWI).map(Self::MachineSoftware))
            .or_else(|| at(map::SSWI).map(Self::SupervisorSoftware))
            .or_else(|| {
                at(map::APLIC_SUPERVISOR)
                    .filter(|&offset| offset < aplic)
                    .map(|offset| Self::Aplic(DomainLevel::Supervisor, offset))
            })
            .or_else(|| {
                at(map::APLIC_MACHINE)
                    .filter(|&offset| offset < aplic)
                    .map(|offset| Self::Aplic(DomainLevel::Machine, offset))
            })
            .or_else(|| at(map::ROM).map(Self::Rom))
            .or_else(|| at(map::FINISHER).map(Self::Finisher))
            .or_else(|| within(map::CLOCK, map::CLOCK_REGISTERS).map(Self::Rtc))
            .or_else(|| pci(address, size, config))
    }
}

/// The virtio slot at an address.
fn virtio(address: u64, size: u8) -> Option<Target> {
    let offset = address.checked_sub(map::VIRTIO.base)?;
    let slot = usize::try_from(offset / map::VIRTIO_STRIDE).ok()?;
    let offset = offset % map::VIRTIO_STRIDE;
    (slot < map::VIRTIO_SLOTS && offset + u64::from(size) <= map::VIRTIO_REGISTERS)
        .then_some(Target::Virtio(slot, offset))
}

/// Target of an address that belongs to the host bridge of PCI.
fn pci(address: u64, size: u8, config: &DevicesConfig) -> Option<Target> {
    let bridge = config.pci?;
    let at = |window: map::Window| window.offset(address, u64::from(size));
    let wide = map::Window {
        base: bridge.wide,
        size: map::PCI_WIDE_BYTES,
    };
    let iommu = at(map::IOMMU).filter(|_| bridge.iommu.is_some());
    let of_bus = || at(map::PCI_NARROW).or_else(|| at(wide));
    iommu
        .map(Target::Iommu)
        .or_else(|| at(map::PCI_CONFIGURATION).map(Target::PciConfiguration))
        .or_else(|| of_bus().map(|_| Target::Pci(address)))
}
