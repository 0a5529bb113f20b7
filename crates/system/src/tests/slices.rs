//! Slices of disks in system files good and bad.

use super::*;

/// A disk of 64 KiB.
fn disk() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(64 << 10).unwrap();
    file
}

fn shared(file: &tempfile::NamedTempFile) -> String {
    format!("disk.disk0={{ file = {:?} }}", file.path())
}

fn slice(vm: &str, rest: &str) -> String {
    format!("vm.{vm}.disks=[{{ slice-of = \"disk0\"{rest} }}]")
}

#[test]
fn slices_are_read_and_described() {
    let file = disk();
    let both = [
        shared(&file),
        slice("web", ", size = \"32 KiB\""),
        slice("control", ", offset = \"32 KiB\", read-only = true"),
    ];
    let system = read(GOOD, &both.each_ref().map(String::as_str)).unwrap();
    let described: Vec<_> = system
        .vms
        .iter()
        .flat_map(|vm| &vm.slices)
        .map(|slice| verify::slices::describe(&system, slice).unwrap())
        .map(|slice| (slice.disk, slice.first, slice.sectors, slice.read_only))
        .collect();
    assert_eq!(described, [(0, 0, 64, false), (0, 64, 0, true)]);
}

#[test]
fn slices_overlap_only_for_reading() {
    let file = disk();
    let disk = shared(&file);
    let reader = slice("control", ", read-only = true");
    read(GOOD, &[&disk, &slice("web", ", read-only = true"), &reader]).unwrap();
    mistake(
        GOOD,
        &[&disk, &slice("web", ", offset = \"32 KiB\""), &reader],
        &[
            "vm.control.disks[0].offset",
            "vm.web.disks[0]",
            "read-only = true",
        ],
    );
}

#[test]
fn slices_that_cannot_be_are_named() {
    let file = disk();
    let disk = shared(&file);
    let mistake = |rest: &str, words: &[&str]| {
        mistake(GOOD, &[&disk, &slice("web", rest)], words);
    };
    mistake(
        ", offset = \"64 KiB\"",
        &["vm.web.disks[0].size", "65536 bytes"],
    );
    mistake(
        ", offset = \"32 KiB\", size = \"33 KiB\"",
        &["vm.web.disks[0].size", "65536 bytes"],
    );
    // The disk has another slice, so that it does not count as unused.
    let other = slice("control", ", read-only = true");
    for (rest, key) in [
        (", offset = \"5 B\"", "vm.web.disks[0].offset"),
        (", size = \"0 B\"", "vm.web.disks[0].size"),
    ] {
        let changes = [disk.as_str(), &slice("web", rest), &other];
        super::mistake(GOOD, &changes, &[key, "512 B"]);
    }
    super::mistake(
        GOOD,
        &[&slice("web", "")],
        &["vm.web.disks[0].slice-of", "[disk.disk0]"],
    );
    super::mistake(GOOD, &[&disk], &["disk.disk0", "no VM has a slice"]);
}
