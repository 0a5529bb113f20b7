//! Served disks in a description.

use super::field::Field;
use crate::keys;
use crate::system::error::{Parsed, about, refused};
use crate::system::served::CELLS;
use crate::system::{
    MAX_SERVED, MAX_SLOTS, Problem, ServedDisk, Subject, SystemDescription, VmName, VmTranslation,
    names,
};
use arrayvec::ArrayVec;

/// Name of a disk whose own name has not been read yet.
const UNNAMED: &str = "disk";

impl Field<'_> {
    pub(super) fn served(&self) -> Parsed<ArrayVec<ServedDisk, MAX_SLOTS>> {
        let wrong = || self.error(Problem::WrongType);
        let name = VmName::new(UNNAMED).ok_or_else(wrong)?;
        let mut numbers = self.property.numbers().ok_or_else(wrong)?;
        let mut served = ArrayVec::new();
        while let Some(first) = numbers.next() {
            let mut next = || numbers.next().ok_or_else(wrong);
            let cells: [u32; CELLS] = [first, next()?, next()?];
            let disk = ServedDisk::from_cells(cells, name);
            let disk = disk.ok_or_else(|| self.refuse(first, Problem::BadSlice))?;
            served
                .try_push(disk)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        Ok(served)
    }
}

/// Names the served disks, and checks that VMs of the system serve them.
pub(super) fn check(system: &mut SystemDescription<'_>, texts: &str) -> Parsed<()> {
    let subject = Subject::System;
    let refuse = |text: &str, problem| refused(subject, names::SERVED_NAMES, text, problem);
    let mut texts = texts.split_whitespace();
    for disk in &mut system.served {
        let text = texts.next();
        let text = text.ok_or_else(|| about(subject, names::SERVED_NAMES, Problem::Missing))?;
        disk.name = VmName::new(text).ok_or_else(|| refuse(text, Problem::BadName))?;
    }
    if let Some(text) = texts.next() {
        return Err(refuse(text, Problem::NoSuchDevice));
    }
    for (number, disk) in system.served.iter().enumerate() {
        let before = system.served.iter().take(number);
        if before.clone().any(|other| other.name == disk.name) {
            return Err(refuse(disk.name.as_str(), Problem::NameTaken));
        }
        let refuse = |problem| refused(subject, names::SERVED_DISKS, disk.server, problem);
        let server = system.vms.get(disk.server.index());
        let server = server.ok_or_else(|| refuse(Problem::NoSuchVm))?;
        if server.get(keys::TRANSLATION) == VmTranslation::Shadow {
            return Err(refuse(Problem::ServesBehindShadow));
        }
        if before.filter(|other| other.server == disk.server).count() == MAX_SERVED {
            return Err(refuse(Problem::TooMany));
        }
    }
    Ok(())
}
