//! Disks that are simulated or shared: hostile drivers, operations that fail, and shares.

use super::common::root;
use super::{exercise, exercise_with};

/// A driver of a simulated device breaks every rule, on two harts at once. It gets nothing that is not its own, and can start its
/// device again each time; its neighbour, at the same addresses, notices nothing.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn hostile_mediated_drivers_reach_own_memory_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    for (on, placement, io, rounds) in [
        ("machine", "resident", "general", 1000),
        ("machine", "resident", "fast", 1000),
        // Its memory is in single pages, of which most come while the hypervisor reads the chains.
        ("machine", "paged", "fast", 500),
        ("qemu", "resident", "fast", 200),
    ] {
        let mut all = vec![
            format!("vm.one.disks=[{{ file = {file:?}, io = \"{io}\" }}]"),
            format!("vm.one.command-line=\"exercise=descriptors rounds={rounds}\""),
            String::from("vm.two.command-line=\"exercise=translations rounds=500\""),
        ];
        all.extend(["one", "two"].map(|vm| format!("vm.{vm}.placement={placement:?}")));
        exercise(on, "exercises.toml", 2, &all);
    }
}

/// The same by a hostile driver of a disk, whose rings and buffers go while the device has them.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn device_pages_stay_under_hostile_drivers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    for io in ["general", "fast"] {
        let mut all = vec![
            format!("vm.one.disks=[{{ file = {file:?}, io = \"{io}\" }}]"),
            String::from("vm.one.command-line=\"exercise=descriptors rounds=300 give-back=yes\""),
            String::from("vm.two.command-line=\"exercise=translations rounds=300\""),
        ];
        all.extend(["one", "two"].map(|vm| format!("vm.{vm}.placement=\"paged\"")));
        exercise("machine", "exercises.toml", 2, &all);
    }
}

/// A profile whose disks fail in one operation of ten, and interrupt late in one of twenty.
fn faulty_disk(folder: &std::path::Path) -> std::path::PathBuf {
    let profile = folder.join("profile.toml");
    let usual = std::fs::read_to_string(root().join("profiles/k3-class.toml")).unwrap();
    let faults = "\n[disk.faults]\nerrors = { per_million = 100_000 }\nlate_interrupts = { per_million = 50_000 }\nlate_nanoseconds = 200000\n";
    std::fs::write(&profile, format!("{usual}{faults}")).unwrap();
    profile
}

/// One operation in ten fails at the device, or is cut short, and interrupts come late. Each read is done in the end, none twice, and an
/// operation that fails takes the fast way as well as any other.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn failing_operations_stay_on_fast_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    let profile = faulty_disk(folder.path());
    let json = folder.path().join("report.json");
    let more = [
        "--profile",
        profile.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ];
    // With many readers the queue is looked at from time to time, and fewer operations than half are told of.
    for (readers, notify, told) in [(8, "always", 0.8..1.2), (32, "asked", 0.0..0.5)] {
        let changes = [
            "vm.one.placement=\"resident\"",
            &format!("vm.one.disks=[{{ file = {file:?}, io = \"fast\" }}]"),
            &format!("vm.one.command-line=\"exercise=work duration-ms=0 jobs=3000 reads=1 terminals={readers} trigger=edge read-error=retry notify={notify}\""),
            "vm.two.command-line=\"exercise=translations rounds=200\"",
        ]
        .map(String::from);
        let output = exercise_with("machine", "exercises.toml", 2, &changes, &more);
        assert!(output.contains("reads=30"), "{output}");
        let report = std::fs::read(&json).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let measure = |name: &str| report["measures"][name].as_f64().unwrap_or(0.0);
        // Of those that were started at least one in twenty was started again.
        let started = measure("events.request-fast");
        assert!(started >= 3150.0, "{started}");
        let hits = measure("fast-path-ratio");
        assert!(hits >= 99.0, "{hits}");
        // An exit to the device is a notification or an acknowledgement, of which there are as many as interrupts at most.
        let exits = measure("exits-per-second.mmio-virtio") * measure("uptime");
        let of_each = exits / started / 2.0;
        assert!(told.contains(&of_each), "{of_each} of {started}");
    }
}

/// System file of two exercisers with slices of one disk of 4 MiB, each 1 MiB of it.
fn with_slices(file: &std::path::Path) -> Vec<String> {
    std::fs::write(file, vec![0xa5; 4 << 20]).unwrap();
    let disk = format!("disk.disk0={{ file = {file:?}, persistent = true }}");
    let slices = [("one", 1), ("two", 2)].map(|(vm, first)| {
        let slice = format!("slice-of = \"disk0\", offset = \"{first} MiB\", size = \"1 MiB\"");
        format!("vm.{vm}.disks=[{{ {slice} }}]")
    });
    [&[disk][..], &slices].concat()
}

/// A driver of a slice breaks every rule, on two harts at once. It gets nothing that is not its own; the other slice's VM reads on, and
/// the disk outside of the slice has not changed.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn hostile_slice_drivers_reach_own_slice_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    for (on, placement, rounds) in [
        ("machine", "resident", 1000),
        ("machine", "paged", 500),
        ("qemu", "resident", 200),
    ] {
        let mut all = with_slices(&file);
        all.push(format!(
            "vm.one.command-line=\"exercise=descriptors rounds={rounds}\""
        ));
        all.push(String::from(
            "vm.two.command-line=\"exercise=work duration-ms=0 jobs=3000 reads=1 terminals=8 trigger=level\"",
        ));
        all.extend(["one", "two"].map(|vm| format!("vm.{vm}.placement={placement:?}")));
        let output = exercise(on, "exercises.toml", 2, &all);
        assert!(output.contains("reads=300"), "{output}");
        let disk = std::fs::read(&file).unwrap();
        let mut around = disk.iter().enumerate();
        let changed = around.find(|(at, byte)| at >> 20 != 1 && **byte != 0xa5);
        assert_eq!(changed, None, "{on}, {placement}");
    }
}

/// One operation in ten fails at the shared disk, and interrupts come late: each read of both VMs is done in the end.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn failing_slice_operations_complete() {
    let folder = tempfile::tempdir().unwrap();
    let profile = faulty_disk(folder.path());
    let json = folder.path().join("report.json");
    let mut all = with_slices(&folder.path().join("disk"));
    for vm in ["one", "two"] {
        all.push(format!("vm.{vm}.placement=\"resident\""));
        all.push(format!(
            "vm.{vm}.command-line=\"exercise=work duration-ms=0 jobs=3000 reads=1 terminals=8 trigger=edge read-error=retry\""
        ));
    }
    let more = [
        "--profile",
        profile.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ];
    let output = exercise_with("machine", "exercises.toml", 2, &all, &more);
    assert_eq!(output.matches(" reads=300").count(), 2, "{output}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let started = report["measures"]["events.request-general"]
        .as_f64()
        .unwrap();
    // Of those that were started at least one in twenty was started again.
    assert!(started >= 6300.0, "{started}");
}

/// A disk that takes a tenth of a millisecond for each operation is shared as the VMs' shares are.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn disk_time_follows_shares() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.toml");
    let ideal = std::fs::read_to_string(root().join("profiles/ideal.toml")).unwrap();
    let service = "[disk.service]\nfixed_nanoseconds = 100_000\n";
    std::fs::write(&profile, format!("{ideal}\n{service}")).unwrap();
    let mut all = with_slices(&folder.path().join("disk"));
    all.push(String::from("harts=4"));
    for (vm, share) in [("one", 75), ("two", 25)] {
        all.push(format!("vm.{vm}.share={share}"));
        all.push(format!("vm.{vm}.placement=\"resident\""));
        all.push(format!(
            "vm.{vm}.command-line=\"exercise=work duration-ms=400 reads=1 terminals=32 trigger=edge\""
        ));
    }
    let more = ["--profile", profile.to_str().unwrap()];
    let output = exercise_with("machine", "exercises.toml", 2, &all, &more);
    let ends = |vm: &str| -> f64 {
        let line = format!("[{vm}] exerciser: work completions=");
        let text = output.split(&line).nth(1).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let ratio = ends("one") / ends("two");
    assert!((2.85..=3.15).contains(&ratio), "{ratio}\n{output}");
}
