//! Neighbours: a guest that computes gets what its share promises, whatever a guest beside it asks of its devices.

mod common;

use common::{hypervisor, room, root};
use std::path::Path;
use std::process::Command;

/// Part of one hart that the victim's share promises, and the part of that which it gets at least.
const PROMISED: f64 = 0.5;
const BOUND: f64 = 0.97;

/// The disk of the storm, as lines of a system.
#[derive(Clone, Copy)]
struct StormDisk {
    system: &'static str,
    vm: &'static str,
}

const SLICE: StormDisk = StormDisk {
    system: "[disk.shared]\nfile = \"FILE\"\n",
    vm: "disks = [{ slice-of = \"shared\" }]\n",
};
const GENERAL: StormDisk = StormDisk {
    system: "",
    vm: "disks = [{ file = \"FILE\", io = \"general\" }]\n",
};
const FAST: StormDisk = StormDisk {
    system: "",
    vm: "disks = [{ file = \"FILE\", io = \"fast\" }]\n",
};
const NO_DISK: StormDisk = StormDisk { system: "", vm: "" };

/// Runs a victim that computes beside a storm on one hart; without a storm that VM is not started. Returns the time of the victim's work,
/// and the longest stretch of the hart in the hypervisor, both in microseconds.
fn victims_time(folder: &Path, disk: StormDisk, storm: Option<&str>) -> (f64, f64) {
    let file = folder.join("disk");
    std::fs::write(&file, vec![0; 4 << 20]).unwrap();
    let exerciser = hypervisor().with_file_name("exerciser");
    let kernel = exerciser.display();
    let system = format!(
        "harts = 1\nmemory = \"512 MiB\"\ntime-limit = \"15 min\"\nwhen-idle = \"power-off\"\n{}\
         [vm.storm]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 50\nkernel = \"{kernel}\"\nautostart = {}\n\
         command-line = \"exercise=storm duration-ms=200 {}\"\n{}\
         [vm.victim]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 50\nkernel = \"{kernel}\"\n\
         command-line = \"exercise=work terminals=1 jobs=500 compute=100000 duration-ms=0\"\n",
        disk.system,
        storm.is_some(),
        storm.unwrap_or_default(),
        disk.vm,
    );
    let system = system.replace("FILE", &file.display().to_string());
    let path = folder.join("system.toml");
    let figures = folder.join("figures.json");
    std::fs::write(&path, system).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .arg("run")
        .arg(&path)
        .args(["--profile", "k3-class", "--without-native", "--json"])
        .arg(&figures)
        .arg("--hypervisor")
        .arg(hypervisor())
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let vms = 1 + usize::from(storm.is_some());
    assert_eq!(text.matches("exerciser: PASS").count(), vms, "{text}");
    let (_, rest) = text.split_once("elapsed-us=").expect("the victim reports");
    let time = rest.split_whitespace().next().unwrap().parse().unwrap();
    let figures: serde_json::Value =
        serde_json::from_slice(&std::fs::read(figures).unwrap()).unwrap();
    let stretch = figures["measures"]["longest-hypervisor-stretch"].as_f64();
    (time, stretch.expect("the machine watches for stretches"))
}

/// Storms of requests to a disk.
const OF_DISKS: [&str; 5] = [
    "of=reads",
    "of=reads interrupts=no sleep-us=0",
    "of=refused interrupts=no sleep-us=0",
    "of=refused sleep-us=100",
    "of=notifications",
];

/// Runs the victim alone and then beside each storm of these devices.
fn share_is_kept_beside(devices: &[(&str, StormDisk, &[&str])]) {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let (alone, _) = victims_time(folder.path(), NO_DISK, None);
    for &(name, disk, storms) in devices {
        for storm in storms {
            let (time, stretch) = victims_time(folder.path(), disk, Some(storm));
            let part = alone / time;
            println!(
                "{name}, {storm}: {:.1} % of the share, {stretch:.1} us in the hypervisor at most",
                100.0 * part / PROMISED
            );
            assert!(
                part >= BOUND * PROMISED,
                "the victim got {part:.3} of the hart beside {storm}, {name}"
            );
        }
    }
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn share_is_kept_beside_mediated_disks() {
    share_is_kept_beside(&[("general", GENERAL, &OF_DISKS), ("fast", FAST, &OF_DISKS)]);
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn share_is_kept_beside_slices_and_calls() {
    share_is_kept_beside(&[
        ("slice", SLICE, &OF_DISKS),
        ("no disk", NO_DISK, &["of=kicks", "of=calls"]),
    ]);
}
