//! The disks of a system file: a VM's own, those that VMs share, and slices of these.

use crate::document::{Table, Value};
use crate::section::Section;
use crate::{Bytes, Disk, Located, Problem, ServedDisk, SharedDisk, Slice};
use abi::keys::{self, Scope};
use abi::system::VmName;

/// A VM's list of disks: those of its own, and slices.
pub(super) fn read_disks(section: &mut Section<'_>) -> (Vec<Disk>, Vec<Slice>) {
    let (mut disks, mut slices) = (Vec::new(), Vec::new());
    for (index, node) in section.list(keys::DISKS).iter().enumerate() {
        let Value::Table(table) = &node.value else {
            section.wrong_kind(node, "disks", "a table", keys::DISKS.note().example);
            continue;
        };
        let path = format!("{}disks[{index}].", section.path);
        let origin = node.origin.clone();
        let is_slice = table.get(keys::SLICE_OF.name()).is_some();
        let scope = if is_slice { Scope::Slice } else { Scope::Disk };
        let mut disk = Section::new(section.document, table, path, origin, scope);
        match is_slice {
            true => slices.extend(read_slice(&mut disk)),
            false => disks.extend(read_disk(&mut disk)),
        }
        section.problems.extend(disk.finish());
    }
    (disks, slices)
}

/// The tables `[disk.NAME]`: disks of the board, and those that VMs serve.
pub(super) fn read_shared(root: &mut Section<'_>) -> (Vec<SharedDisk>, Vec<ServedDisk>) {
    let (mut all, mut served) = (Vec::new(), Vec::new());
    let is_served = |table: &Table| table.get(keys::SERVED_BY.name()).is_some();
    let scope = |table: &Table| match is_served(table) {
        true => Scope::ServedDisk,
        false => Scope::SharedDisk,
    };
    for (name, mut section) in root.named_tables(keys::SHARED_DISKS, scope) {
        let origin = section.origin.clone();
        if VmName::new(name).is_none() {
            section.problems.push(Problem::new(
                section.document,
                &origin,
                format!("disk.{name}"),
                "this is no name for a disk",
                "use a letter, then letters, digits, - and _, at most 31 in all",
            ));
        }
        if is_served(section.table) {
            let by = section.text_of(keys::SERVED_BY).map(|(node, by)| Located {
                value: String::from(by),
                origin: node.origin.clone(),
            });
            let size = section.size(keys::SERVED_SIZE);
            root.problems.extend(section.finish());
            served.extend(by.zip(size).map(|(by, size)| ServedDisk {
                name: String::from(name),
                origin,
                by,
                size,
            }));
            continue;
        }
        let disk = read_disk(&mut section);
        root.problems.extend(section.finish());
        all.extend(disk.map(|disk| SharedDisk {
            name: String::from(name),
            origin,
            disk,
        }));
    }
    (all, served)
}

fn read_disk(disk: &mut Section<'_>) -> Option<Disk> {
    let file = disk.node(keys::DISK_FILE);
    let file = file.and_then(|node| disk.file(node, "file"));
    let snapshot = disk.text_of(keys::SNAPSHOT).map(|(node, name)| Located {
        value: String::from(name),
        origin: node.origin.clone(),
    });
    let settings = disk.settings();
    let slot = settings.get(keys::SLOT).zip(settings.origin(keys::SLOT));
    let slot = slot.and_then(|(slot, origin)| {
        let (value, origin) = (u8::try_from(slot).ok()?, origin.clone());
        Some(Located { value, origin })
    });
    Some(Disk {
        file: file?,
        snapshot,
        slot,
        io: settings.get(keys::DEVICE_IO),
        settings,
    })
}

fn read_slice(slice: &mut Section<'_>) -> Option<Slice> {
    let of = slice.text_of(keys::SLICE_OF).map(|(node, name)| Located {
        value: String::from(name),
        origin: node.origin.clone(),
    });
    let offset = match slice.table.get(keys::OFFSET.name()) {
        Some(_) => slice.size(keys::OFFSET),
        None => Some(Located {
            value: Bytes(0),
            origin: slice.origin.clone(),
        }),
    };
    let is_sized = slice.table.get(keys::SIZE.name()).is_some();
    let size = slice.size(keys::SIZE);
    let read_only = slice.settings().get(keys::READ_ONLY);
    Some(Slice {
        of: of?,
        offset: offset?,
        size: if is_sized { Some(size?) } else { None },
        read_only,
    })
}
