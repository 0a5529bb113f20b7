//! Switches and ports in a description.

use super::field::Field;
use crate::keys;
use crate::system::error::{Parsed, refused};
use crate::system::{
    MAX_SHARING, MAX_SLOTS, MAX_SWITCHES, Problem, Subject, SwitchDescription, SystemDescription,
    VmId, names,
};
use arrayvec::ArrayVec;

impl Field<'_> {
    pub(super) fn switches(&self) -> Parsed<ArrayVec<SwitchDescription, MAX_SWITCHES>> {
        let cells = self.property.numbers();
        let mut switches = ArrayVec::new();
        for cell in cells.ok_or_else(|| self.error(Problem::WrongType))? {
            let switch = SwitchDescription::from_cell(cell);
            let (min, max) = (0, MAX_SLOTS as u32 - 1);
            let out = || self.refuse(cell, Problem::OutOfRange { min, max });
            let switch = switch.ok_or_else(out)?;
            switches
                .try_push(switch)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        Ok(switches)
    }

    pub(super) fn ports(&self) -> Parsed<ArrayVec<u8, MAX_SWITCHES>> {
        let numbers = self.property.numbers();
        let mut ports = ArrayVec::new();
        for number in numbers.ok_or_else(|| self.error(Problem::WrongType))? {
            let port = u8::try_from(number).ok();
            let port = port.filter(|port| usize::from(*port) < MAX_SWITCHES);
            let (min, max) = (0, MAX_SWITCHES as u32 - 1);
            let out = || self.refuse(number, Problem::OutOfRange { min, max });
            let port = port.ok_or_else(out)?;
            if ports.contains(&port) {
                return Err(self.refuse(number, Problem::Taken));
            }
            ports
                .try_push(port)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        Ok(ports)
    }
}

/// Checks that the VMs' ports are of the system's switches, and that each uplink has a slot of its own.
pub(super) fn check(system: &SystemDescription<'_>) -> Parsed<()> {
    for (number, switch) in system.switches.iter().enumerate() {
        let Some(slot) = switch.uplink else { continue };
        let others = system.switches.iter().take(number);
        let mut vms = system.vms.iter();
        let taken = others.clone().any(|other| other.uplink == Some(slot))
            || system.disks.contains(&slot)
            || vms.any(|vm| vm.devices.contains(&slot));
        if taken {
            let subject = Subject::System;
            return Err(refused(subject, names::SWITCHES, slot, Problem::Taken));
        }
    }
    let mut sharing = 0;
    for (index, vm) in system.vms.iter().enumerate() {
        let subject = Subject::Vm {
            index,
            name: Some(vm.name),
        };
        for port in &vm.ports {
            if usize::from(*port) >= system.switches.len() {
                let problem = Problem::NoSuchDevice;
                return Err(refused(subject, names::PORTS, port, problem));
            }
        }
        sharing += vm.ports.len() + vm.slices.len() + usize::from(vm.get(keys::BALLOON));
        sharing += usize::from(system.serves(VmId(index as u8)));
        if sharing > MAX_SHARING {
            let count = vm.ports.len();
            return Err(refused(subject, names::PORTS, count, Problem::TooMany));
        }
    }
    Ok(())
}
