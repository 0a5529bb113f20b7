//! Slices in a description.

use super::field::Field;
use crate::system::error::{Parsed, refused};
use crate::system::slices::{BYTES, cells, read};
use crate::system::{
    MAX_SHARING, MAX_SLICES, Problem, SliceDescription, Slices, Subject, SystemDescription, VmId,
    names,
};
use arrayvec::ArrayVec;

impl<'a> Field<'a> {
    pub(super) fn slices(&self) -> Parsed<Slices<'a>> {
        let (slices, rest) = self.property.value.as_chunks::<BYTES>();
        if !rest.is_empty() {
            return Err(self.error(Problem::WrongType));
        }
        for slice in slices {
            if read(slice).is_none() {
                let [disk, ..] = cells(slice);
                return Err(self.refuse(disk, Problem::BadSlice));
            }
        }
        match slices.len() <= MAX_SLICES {
            true => Ok(Slices { slices }),
            false => Err(self.error(Problem::TooMany)),
        }
    }
}

/// Checks that the slices of a system lie on its disks, and that no VM writes to another VM's slice.
pub(super) fn check(system: &SystemDescription<'_>) -> Parsed<()> {
    let mut known: ArrayVec<SliceDescription, MAX_SHARING> = ArrayVec::new();
    for (index, vm) in system.vms.iter().enumerate() {
        let subject = Subject::Vm {
            index,
            name: Some(vm.name),
        };
        if let Some(slot) = vm.devices.iter().find(|slot| system.disks.contains(slot)) {
            return Err(refused(subject, names::DEVICES, slot, Problem::Taken));
        }
        for slice in vm.slices.iter() {
            let refuse = |problem| refused(subject, names::SLICES, slice.disk, problem);
            if slice.disk as usize >= system.disks.len() + system.served.len() {
                return Err(refuse(Problem::NoSuchDevice));
            }
            if system.server_of(slice.disk) == Some(VmId(index as u8)) {
                return Err(refuse(Problem::ServesItself));
            }
            if known.iter().any(|other| other.collides_with(&slice)) {
                return Err(refuse(Problem::Taken));
            }
            known
                .try_push(slice)
                .map_err(|_| refuse(Problem::TooMany))?;
        }
    }
    Ok(())
}
