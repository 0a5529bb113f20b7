//! The disks of a system file: a VM's own, those that VMs share, and slices of these.

use crate::document::{Node, Origin, Value};
use crate::section::Section;
use crate::{BOARD_SLOTS, Bytes, Disk, Located, Problem, SharedDisk, Slice};
use abi::system::{Io, VmName};

/// Bytes of a sector, in which slices are measured.
const SECTOR: u64 = 512;

/// A VM's list of disks: those of its own, and slices.
pub(super) fn read_disks(section: &mut Section<'_>) -> (Vec<Disk>, Vec<Slice>) {
    const EXAMPLE: &str = "[{ file = \"image:debian/disk\" }]";
    let (mut disks, mut slices) = (Vec::new(), Vec::new());
    for (index, node) in section.list("disks", EXAMPLE).iter().enumerate() {
        let Value::Table(table) = &node.value else {
            section.wrong_kind(node, "disks", "a table", EXAMPLE);
            continue;
        };
        let path = format!("{}disks[{index}].", section.path);
        let mut disk = Section::new(section.document, table, path, node.origin.clone());
        match disk.table.get("slice-of") {
            Some(_) => slices.extend(read_slice(&mut disk)),
            None => disks.extend(read_disk(&mut disk)),
        }
        section.problems.extend(disk.finish());
    }
    (disks, slices)
}

/// The tables `[disk.NAME]`.
pub(super) fn read_shared(root: &mut Section<'_>) -> Vec<SharedDisk> {
    const EXAMPLE: &str = "{ NAME = { file = \"image:debian/disk\" } }";
    let Some(node) = root.optional("disk") else {
        return Vec::new();
    };
    let Value::Table(table) = &node.value else {
        root.wrong_kind(node, "disk", "a table", EXAMPLE);
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, origin, node) in table.iter() {
        let path = format!("disk.{name}.");
        let Value::Table(table) = &node.value else {
            root.wrong_kind(node, &format!("disk.{name}"), "a table", EXAMPLE);
            continue;
        };
        let origin = match &node.origin {
            Origin::File(range) if range.start < origin.position() => origin.clone(),
            _ => node.origin.clone(),
        };
        let mut section = Section::new(root.document, table, path, origin.clone());
        if VmName::new(name).is_none() {
            section.problems.push(Problem::new(
                section.document,
                &origin,
                format!("disk.{name}"),
                "this is no name for a disk",
                "use a letter, then letters, digits, - and _, at most 31 in all",
            ));
        }
        let disk = read_disk(&mut section);
        root.problems.extend(section.finish());
        all.extend(disk.map(|disk| SharedDisk {
            name: String::from(name),
            origin,
            disk,
        }));
    }
    all
}

fn read_disk(disk: &mut Section<'_>) -> Option<Disk> {
    let file = disk.required("file", "\"image:debian/disk\"");
    let file = file.and_then(|node| disk.file(node, "file"));
    let keep = disk.boolean("keep", false);
    let slot = disk.optional("slot").and_then(|node| {
        let value = disk.integer(node, "slot", 0..=BOARD_SLOTS as u32 - 1)?;
        Some(Located {
            value: u8::try_from(value).ok()?,
            origin: node.origin.clone(),
        })
    });
    // That a shared disk is the hypervisor's is no choice.
    let is_shared = disk.path.starts_with("disk.");
    let is_written = !is_shared && disk.table.get("io").is_some();
    let io = match is_shared {
        true => Io::General,
        false => disk.word("io", Io::ALL, Io::name, Io::Direct),
    };
    Some(Disk {
        file: file?,
        keep,
        slot,
        io: is_written.then_some(io),
    })
}

fn read_slice(slice: &mut Section<'_>) -> Option<Slice> {
    let of = slice.required("slice-of", "\"disk0\"").and_then(|node| {
        let value = String::from(slice.text(node, "slice-of", "disk0")?);
        let origin = node.origin.clone();
        Some(Located { value, origin })
    });
    let first = match slice.optional("first") {
        Some(node) => sectors(slice, node, "first", "1 GiB", 0),
        None => Some(Located {
            value: Bytes(0),
            origin: slice.origin.clone(),
        }),
    };
    let written = slice.optional("size");
    let size = written.map(|node| sectors(slice, node, "size", "4 GiB", SECTOR));
    let read_only = slice.boolean("read-only", false);
    Some(Slice {
        of: of?,
        first: first?,
        size: match size {
            Some(size) => Some(size?),
            None => None,
        },
        read_only,
    })
}

/// A place or a length on a disk, in whole sectors, of so many bytes at least.
fn sectors<'a>(
    section: &mut Section<'a>,
    node: &'a Node,
    key: &str,
    example: &str,
    least: u64,
) -> Option<Located<Bytes>> {
    let text = section.text(node, key, example)?;
    let bytes = Bytes::parse(text);
    let good = bytes.filter(|bytes| bytes.0 >= least && bytes.0.is_multiple_of(SECTOR));
    if good.is_none() {
        let remedy = format!(
            "write a whole number and a unit ({}), {SECTOR} bytes or a multiple, such as {example:?}",
            Bytes::units()
        );
        let message = format!("{text:?} is no place or length on a disk");
        section.report(node, key, message, remedy);
    }
    Some(Located {
        value: good?,
        origin: node.origin.clone(),
    })
}
