//! Memory that lies elsewhere, pages that are given back, and memory that a guest must not read.

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
