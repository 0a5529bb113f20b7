//! Devices of the board that VMs are given by their paths.

use alloc::vec::Vec;

use abi::keys;
use abi::system::{Confined, Placement, Slot, SystemDescription, VmDescription};
use board::{GivenDevices, MemoryOf, Range, Tree, Wish};

use super::memory::RESIDENT_RAM;
use crate::boot::error::AssembleError;
use crate::console::say;

/// Chooses the devices of each VM, and says which of them reach all memory.
///
/// # Errors
/// [`AssembleError::Devices`]; each device that cannot be given has been printed.
pub(super) fn devices(
    tree: &'static Tree<'static>,
    description: &SystemDescription<'static>,
) -> Result<Vec<GivenDevices<'static>>, AssembleError> {
    let mut wishes = Vec::with_capacity(description.vms.len());
    for vm in &description.vms {
        wishes.push(wish(vm));
    }
    let mut shared = slots(&description.disks);
    for switch in &description.switches {
        shared |= slots(switch.uplink.as_slice());
    }
    let given = board::give(tree, &wishes, shared).map_err(|refusals| {
        for refusal in refusals {
            say!("{refusal}");
        }
        AssembleError::Devices
    })?;
    for (wish, given) in wishes.iter().zip(&given) {
        for path in &given.trusted {
            say!(
                "{}: {path} reaches all memory: its guest is trusted",
                wish.vm
            );
        }
    }
    Ok(given)
}

/// Slots, a bit each.
fn slots(slots: &[Slot]) -> u32 {
    slots.iter().fold(0, |bits, slot| bits | 1 << slot.0)
}

fn wish<'a>(vm: &'a VmDescription<'static>) -> Wish<'a> {
    let balloon = u64::from(vm.get(keys::BALLOON));
    Wish {
        vm: vm.name.as_str(),
        paths: vm.given,
        slots: slots(&vm.devices),
        vcpus: vm.vcpus,
        memory: match vm.get(keys::PLACEMENT) {
            Placement::Real => MemoryOf::TheBoard,
            Placement::Resident => MemoryOf::At(Range {
                start: RESIDENT_RAM.raw(),
                size: vm.memory,
            }),
            Placement::Paged => MemoryOf::Pages,
        },
        confined: vm.get(keys::CONFINED) == Confined::Required,
        emulated: (vm.slices.len() + vm.ports.len()) as u64 + balloon,
    }
}
