//! Memory that lies elsewhere, pages that are given back, and memory that a guest must not read.

use std::process::Command;

use super::common::{hypervisor, room, root};
use super::{COMPUTERS, exercise, exercise_with, together};

/// Guests whose RAM begins at the same address for each of them, and lies elsewhere for all but one: they must not see
/// each other's, and what the hypervisor reads and writes for them must be theirs.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn guests_whose_memory_lies_elsewhere_notice_nothing() {
    let resident = ["one", "two"].map(|vm| format!("vm.{vm}.placement=\"resident\""));
    for on in COMPUTERS {
        for exercise in [
            "translations rounds=500",
            "heartbeat duration-ms=500",
            "state rounds=20",
        ] {
            together(on, exercise, &resident.each_ref().map(String::as_str));
        }
    }
    // Their disks reach it as well, since the guests tell them the host's addresses.
    let folder = tempfile::tempdir().unwrap();
    let mut with_disks = resident.to_vec();
    for vm in ["one", "two"] {
        let file = folder.path().join(vm);
        std::fs::write(&file, vec![0; 1 << 20]).unwrap();
        with_disks.push(format!("vm.{vm}.disks=[{{ file = {file:?} }}]"));
    }
    let with_disks: Vec<&str> = with_disks.iter().map(String::as_str).collect();
    for on in COMPUTERS {
        for (io, trigger) in [("direct", "level"), ("general", "level"), ("fast", "edge")] {
            let io = format!("vm.one.io=\"{io}\"");
            let changes = [&with_disks[..], &[&io]].concat();
            let work = format!("work duration-ms=0 jobs=300 reads=1 terminals=8 trigger={trigger}");
            let output = together(on, &work, &changes);
            assert_eq!(output.matches("reads=3").count(), 2, "{output}");
        }
    }
}

/// A guest gives pages back on two harts at once, those that the other one uses among them. Its own pages are what it wrote or zeros, and its
/// neighbour, which gets the frames, notices nothing. The machine holds each use of a translation against the tables.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn returned_pages_are_free_after_all_release() {
    for (on, translation, rounds) in [
        ("machine", "two-stage", 1000),
        ("machine", "shadow", 1000),
        ("qemu", "two-stage", 300),
    ] {
        let mut all = vec![
            format!("vm.one.translation={translation:?}"),
            format!("vm.one.command-line=\"exercise=free-pages rounds={rounds}\""),
            String::from("vm.two.command-line=\"exercise=translations rounds=300\""),
            String::from("experiment.migration=\"always\""),
        ];
        all.extend(["one", "two"].map(|vm| format!("vm.{vm}.placement=\"paged\"")));
        let more = match on {
            "machine" => &["--check-translations"][..],
            _ => &[],
        };
        let output = exercise_with(on, "exercises.toml", 2, &all, more);
        assert!(!output.contains("may be stale"), "{output}");
    }
}

/// A program of a guest waits for words of its kernel's, on a hart that another guest wants too. It learns nothing: waits with the
/// right guess last no more often than those with a wrong one. Where the word was read for it, all of them did.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn programs_read_no_kernel_memory_by_waiting() {
    let changes = [
        "harts=1",
        "spin=\"reservation\"",
        "vm.one.command-line=\"exercise=hostile test=waits rounds=10\"",
        "vm.two.command-line=\"exercise=translations harts=1 sleep-one-in=0 rounds=500000\"",
    ];
    exercise("machine", "exercises.toml", 2, &changes.map(String::from));
}

/// Lines of `remains` of the VMs of a system with these changes, which is ended after a second of the machine's time: words looked at, those with the
/// pattern of an earlier start, and others that are not zero.
fn remains(changes: &[&str]) -> Vec<[u64; 3]> {
    let _room = room("machine");
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command
        .arg("run")
        .arg(root().join("systems/exercises.toml"))
        .arg("--hypervisor")
        .arg(hypervisor());
    for change in ["time-limit=1 s"].iter().chain(changes) {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("exerciser: FAIL"), "{changes:?}\n{text}");
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("remains words="));
    let numbers = lines.map(|(_, rest)| {
        let values = rest.split([' ', '=']).filter_map(|word| word.parse().ok());
        let values: Vec<u64> = values.collect();
        values.try_into().unwrap()
    });
    numbers.collect()
}

/// A guest that starts again finds zeros where its former run has left a pattern, by its harts and by a disk that reaches its memory: the disk reads
/// memory that nobody has touched in this run. After a warm reboot it finds all of the pattern.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn each_start_finds_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    let disk = format!("vm.one.disks=[{{ file = {file:?} }}]");
    let without = |key: &'static str| vec![key];
    let with = |key: &'static str| vec![key, disk.as_str()];
    let systems = [
        ("no", without("vm.one.placement=real")),
        ("no", without("vm.one.placement=resident")),
        ("no", without("vm.one.placement=paged")),
        ("no", without("vm.one.translation=shadow")),
        ("no", with("vm.one.io=direct")),
        ("yes", with("vm.one.io=direct")),
        ("yes", with("vm.one.io=general")),
        ("yes", with("vm.one.io=fast")),
    ];
    for (by_disk, system) in systems {
        for then in ["cold-reboot", "warm-reboot"] {
            let command_line =
                format!("vm.one.command-line=exercise=remains disk={by_disk} then={then}");
            let changes = [&system[..], &[&command_line]].concat();
            let found = remains(&changes);
            assert!(found.len() > 5, "{changes:?}: {found:?}");
            let keeps = then == "warm-reboot" && system != ["vm.one.placement=paged"];
            for (start, [words, left, others]) in found.into_iter().enumerate() {
                let expected = if keeps && start > 0 { words } else { 0 };
                assert_eq!((left, others), (expected, 0), "{changes:?}, start {start}");
            }
        }
    }
}

/// A VM gets frames of another one that has ended, and finds zeros in them.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn frames_of_ended_vms_are_zero() {
    let found = remains(&[
        "vm.one.placement=paged",
        "vm.two.placement=paged",
        "vm.one.command-line=exercise=remains then=power-off",
        "vm.two.command-line=exercise=remains then=cold-reboot",
    ]);
    assert!(found.len() > 5, "{found:?}");
    for [_, left, others] in found {
        assert_eq!((left, others), (0, 0));
    }
}
