//! Vector registers of the board's harts: guests have them where all harts have them, in one length.

use abi::keys;
use abi::system::VmDescription;
use board::{Board, isa};

use super::error::AssembleError;
use crate::hart::world;
use crate::system::Hypervisor;
use crate::system::harts::Hart;

/// Bytes of a vector register of this hart, if the device tree names vectors for every hart.
#[must_use]
pub fn length(board: &Board) -> Option<usize> {
    let every = |hart: &board::BoardHart| hart.extensions.has(isa::VECTORS);
    let every = board.harts.iter().all(every);
    every.then(world::vector_length).flatten()
}

/// Bytes of a vector register of a VM's vCPUs, if it has any, on harts with registers of `vlenb` bytes.
///
/// # Errors
/// The VM needs another length.
pub fn of_vm(vm: &VmDescription<'_>, vlenb: Option<usize>) -> Result<Option<usize>, AssembleError> {
    let given = vlenb.filter(|_| !vm.hidden.contains(isa::VECTORS));
    match unmet(vm.get(keys::VECTOR_LENGTH), given) {
        Some((wanted, own)) => Err(AssembleError::VectorLength {
            vm: vm.name,
            wanted,
            own,
        }),
        None => Ok(given),
    }
}

/// Length that a VM needs and the one that it would get, in bits, if they differ.
fn unmet(wanted: Option<u32>, given: Option<usize>) -> Option<(u32, usize)> {
    let own = given.unwrap_or(0) * 8;
    wanted
        .filter(|wanted| *wanted as usize != own)
        .map(|wanted| (wanted, own))
}

/// Length of this hart's vector registers, if it is another than a VM was promised: that length, and the promised one, in bits.
#[must_use]
pub fn differing(system: &Hypervisor, hart: &Hart) -> Option<(usize, usize)> {
    let own = match hart.board.extensions.has(isa::VECTORS) {
        true => world::vector_length(),
        false => None,
    };
    other_than_promised(system.vms.iter().map(|vm| vm.settings.vectors), own)
}

/// Length of a hart's registers and the one that VMs were `promised`, in bits, if they differ. All VMs with vectors were promised the same, and
/// each may come to each hart.
fn other_than_promised(
    mut promised: impl Iterator<Item = Option<usize>>,
    own: Option<usize>,
) -> Option<(usize, usize)> {
    let promised = promised.find_map(|promised| promised)?;
    let own = own.unwrap_or(0);
    (own != promised).then_some((own * 8, promised * 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::system::VmName;
    use std::string::ToString;

    #[test]
    fn demands_are_met_or_refused() {
        assert_eq!(unmet(None, Some(32)), None);
        assert_eq!(unmet(None, None), None);
        assert_eq!(unmet(Some(256), Some(32)), None);
        assert_eq!(unmet(Some(512), Some(32)), Some((512, 256)));
        assert_eq!(
            unmet(Some(128), Some(32)),
            Some((128, 256)),
            "none is shortened"
        );
        assert_eq!(unmet(Some(256), None), Some((256, 0)));
        let error = AssembleError::VectorLength {
            vm: VmName::new("web").unwrap(),
            wanted: 512,
            own: 256,
        };
        assert_eq!(
            error.to_string(),
            "web: vector-length = 512, but it would get vector registers of 256 bits (0: none): change vector-length, or leave it away"
        );
    }

    #[test]
    fn harts_of_other_lengths_are_told() {
        let vms = [None, Some(32)];
        let other = |own| other_than_promised(vms.into_iter(), own);
        assert_eq!(other(Some(32)), None);
        assert_eq!(
            other(Some(128)),
            Some((1024, 256)),
            "as harts 8 to 15 of a K3"
        );
        assert_eq!(other(None), Some((0, 256)));
        let hidden = other_than_promised([None, None].into_iter(), Some(128));
        assert_eq!(hidden, None, "no VM was promised any");
    }
}
