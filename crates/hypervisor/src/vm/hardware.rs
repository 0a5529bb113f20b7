//! What every VM has besides memory and vCPUs, and where.

use alloc::boxed::Box;

use crate::board::BoardDevice;
use crate::devices::aplic::Aplic;
use crate::devices::bus::{Bus, NoRoom, Owner};
use crate::devices::chips::{Chips, DeviceNumber};
use crate::devices::serial::SerialLine;
use crate::devices::wires::SourceNumber;
use crate::memory::address::{GuestPhysical, PAGE_SIZE};
use crate::vm::guest_tree::{
    APLIC_BASE, APLIC_SIZE, IMSIC_BASE, UART_BASE, UART_SIZE, UART_SOURCE,
};

/// The bus and the trapped devices of a VM with so many vCPUs and these devices of the board, of an APLIC with so many sources.
///
/// # Errors
/// [`NoRoom`], where a device of the board lies where every VM has something.
pub fn build(sources: u32, vcpus: u32, devices: &[BoardDevice]) -> Result<(Bus, Chips), NoRoom> {
    let mut aplic = Aplic::new(sources, vcpus);
    let mut bus = Bus::default();
    for device in devices {
        aplic.add_physical(SourceNumber(device.source));
        let owner = Owner::Direct {
            source: device.source,
        };
        bus.add(GuestPhysical::new(device.base), device.size, owner)?;
    }
    let mut chips = Chips::new(aplic);
    let files = u64::from(vcpus) * PAGE_SIZE;
    bus.add(IMSIC_BASE, files, Owner::InterruptFiles)?;
    let aplic = Owner::Trapped(DeviceNumber::APLIC);
    bus.add(APLIC_BASE, APLIC_SIZE, aplic)?;
    let line = Box::new(SerialLine::default());
    let uart = chips.add(SourceNumber(UART_SOURCE), line);
    bus.add(UART_BASE, UART_SIZE, Owner::Trapped(uart))?;
    Ok((bus, chips))
}
