//! The exerciser under the hypervisor: what guests must be able to rely on, and what hostile ones must not achieve.

mod boards;
#[path = "../common/mod.rs"]
mod common;
mod disks;
mod groups;
mod interrupts;
mod memory;
mod sbi;
mod told;
mod translations;
mod vectors;

use common::{hypervisor, room, root};
use std::process::Command;
use told::{migrations, migrations_of_vms};

/// The computers that a system runs on.
const COMPUTERS: [&str; 2] = ["machine", "qemu"];

/// Runs an example with changes on a computer. Every VM must end by itself and say that it passed; returns what was printed.
fn exercise(on: &str, system: &str, vms: usize, changes: &[String]) -> String {
    exercise_with(on, system, vms, changes, &[])
}

/// The same, with these further options.
fn exercise_with(on: &str, system: &str, vms: usize, changes: &[String], more: &[&str]) -> String {
    let _room = room(on);
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.arg("run").arg(root().join("systems").join(system));
    command
        .args(more)
        .args(["--on", on])
        .arg("--hypervisor")
        .arg(hypervisor());
    for change in changes {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    // A hostile guest prints what is no text.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let whole = format!("{on}, {changes:?}: {}\n{text}\n{errors}", output.status);
    assert!(output.status.success(), "{whole}");
    assert_eq!(text.matches("exerciser: PASS").count(), vms, "{whole}");
    assert!(!text.contains("exerciser: FAIL"), "{whole}");
    assert!(!text.contains("defect:"), "{whole}");
    text
}

/// Two VMs of two vCPUs do the same exercise on two harts, with these further changes.
fn together(on: &str, exercise_and_parameters: &str, changes: &[&str]) -> String {
    let changes = both(exercise_and_parameters, changes);
    exercise(on, "exercises.toml", 2, &changes)
}

fn both(exercise_and_parameters: &str, changes: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = ["one", "two"]
        .iter()
        .map(|vm| format!("vm.{vm}.command-line=\"exercise={exercise_and_parameters}\""))
        .collect();
    all.extend(changes.iter().map(|change| String::from(*change)));
    all
}

const SPINS: [&str; 7] = [
    "none",
    "wopd",
    "wapd",
    "rslp",
    "not-same",
    "directed",
    "reservation",
];
const GUEST_FILES: [u32; 3] = [7, 3, 0];
/// QEMU has no more than seven.
const MAX_GUEST_FILES: u32 = 63;

/// As many vCPUs as a VM can have work, wake each other and take locks, with fewer interrupt files than there are vCPUs and with enough.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn one_vm_runs_32_vcpus() {
    let work =
        "work duration-ms=0 jobs=2000 terminals=32 compute=1000 locks=2 hold=50 think-us=100";
    for files in GUEST_FILES.into_iter().chain([MAX_GUEST_FILES]) {
        let files = format!("guest-interrupt-files={files}");
        let told = together("machine", work, &["vm.one.vcpus=32", &files]);
        assert!(told.contains("work harts=32 off-line=0"), "{told}");
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn vcpus_keep_their_state_across_harts() {
    state_is_kept(3);
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_vcpus_keep_state_at_any_files() {
    for files in GUEST_FILES {
        state_is_kept(files);
    }
}

fn state_is_kept(files: u32) {
    let files = format!("guest-interrupt-files={files}");
    together("qemu", "state rounds=100 strict=1", &[&files]);
}

/// Seven vCPUs, each of which has its own values in all vector registers, on two harts, with each dispatch on another hart than the one before.
/// Registers begin as zeros; a VM from which vectors are hidden runs beside.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn vcpus_keep_their_vectors() {
    let vectors = "state rounds=15 vectors-one-in=1";
    let profile = ["--profile", "k3-class"];
    let moved = [
        "vm.one.vcpus=3",
        "vm.two.vcpus=4",
        "experiment.migration=\"always\"",
    ];
    let told = exercise_with(
        "machine",
        "exercises.toml",
        2,
        &both(vectors, &moved),
        &profile,
    );
    let all = checks(&told);
    let hidden = both(vectors, &["vm.one.hide=[\"v\"]"]);
    let told = exercise_with("machine", "exercises.toml", 2, &hidden, &profile);
    let [without, with] = checks(&told)[..] else {
        panic!("{told}");
    };
    assert!(
        without < with && all.len() == 2,
        "{all:?}, {without}, {with}"
    );
}

/// Numbers of checks of the VMs, the least first.
fn checks(told: &str) -> Vec<u64> {
    let counts = told
        .lines()
        .filter_map(|line| line.split_once("state checks="));
    let mut counts: Vec<u64> = counts
        .map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    counts.sort_unstable();
    counts
}

/// Two VMs count the same at once on two harts, then one does beside a guest that takes all counters and keeps them. On the
/// machine only: QEMU counts instructions by its clock. 21 is the machine's event for fences (docs/reference/machine.md).
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn vms_count_their_own_events() {
    let told = together("machine", "pmu fences=21", &[]);
    assert!(migrations(&told) > 0, "nobody moved\n{told}");
    let changes = [
        "harts=1",
        "time-slice=\"1 ms\"",
        "vm.hostile.command-line=\"exercise=hostile test=counters storm-ms=50\"",
        "vm.victim.command-line=\"exercise=pmu fences=21\"",
    ];
    exercise("machine", "hostile.toml", 2, &changes.map(String::from));
}

/// One VM is fixed and the other floats, in a system that says nothing of it, and the other way round.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn pinned_vms_stay_while_others_move() {
    let names = ["one", "two"];
    for (fixed, system) in [(0, "floating"), (1, "pinned")] {
        let floats = 1 - fixed;
        let told = together(
            "machine",
            // Long enough for several moves: fewer rounds have one, or none. VMs that sleep in step leave each other no hart.
            "translations rounds=1000 remap=private sleep-one-in=20 seed=1",
            &[
                "vm.two.command-line=\"exercise=translations rounds=1000 remap=private sleep-one-in=20 seed=2\"",
                &format!("scheduling=\"{system}\""),
                &format!("vm.{}.scheduling=\"pinned\"", names[fixed]),
                &format!("vm.{}.scheduling=\"floating\"", names[floats]),
            ],
        );
        let moved = migrations_of_vms(&told);
        assert_eq!(moved[fixed], 0, "{told}");
        assert!(moved[floats] > 0, "{told}");
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn every_spin_policy_lets_everybody_go_on() {
    for spin in SPINS {
        together(
            "qemu",
            "translations rounds=500",
            &[&format!("spin=\"{spin}\"")],
        );
    }
}

/// The seed is printed, so that a failure can be repeated: `--set vm.one.command-line="exercise=fuzz seed=N ..."`.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn random_instructions_end_in_defined_ways() {
    let seed = std::env::var("PARTITA_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}; PARTITA_SEED={seed} repeats it");
    for files in [7, 0] {
        let fuzz = format!("fuzz seed={seed} count=10000");
        together("qemu", &fuzz, &[&format!("guest-interrupt-files={files}")]);
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn a_hostile_guest_harms_nobody() {
    hostile_guest_harms_nobody("machine", 3);
    hostile_guest_harms_nobody("qemu", 0);
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_hostile_guests_with_any_files() {
    for on in COMPUTERS {
        for files in [3, 0] {
            hostile_guest_harms_nobody(on, files);
        }
    }
}

fn hostile_guest_harms_nobody(on: &str, files: u32) {
    let files = format!("guest-interrupt-files={files}");
    exercise(on, "hostile.toml", 2, &[files]);
}
