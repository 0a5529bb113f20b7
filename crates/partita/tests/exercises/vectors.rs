//! Vector registers of hostile neighbours, and lengths that harts do not have.

use super::{exercise_with, hypervisor, room, root};
use std::process::Command;

/// Two VMs with secrets of their own in all vector registers and CSRs, more vCPUs than harts, each dispatch on another hart than the one before. One VM
/// is started again and again: it must find what a reset leaves, and nothing of its own or of its neighbour's.
fn secrets_are_kept(on: &str, options: &[&str]) {
    let changes = [
        "harts=2",
        "vm.one.vcpus=2",
        "vm.two.vcpus=3",
        "experiment.migration=\"always\"",
        "vm.one.command-line=\"exercise=state rounds=4 vectors-one-in=1 away-us=500 seed=11 starts=5\"",
        "vm.two.command-line=\"exercise=state rounds=40 vectors-one-in=1 away-us=500 seed=22\"",
    ];
    let told = exercise_with(on, "exercises.toml", 2, &changes.map(String::from), options);
    let starts = told.matches("[one] exerciser: state checks=").count();
    assert_eq!(starts, 5, "{told}");
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn neighbours_see_no_foreign_vectors() {
    secrets_are_kept("machine", &["--profile", "k3-class"]);
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn neighbours_see_no_foreign_vectors_on_qemu() {
    for length in ["vlen=128", "vlen=256"] {
        secrets_are_kept("qemu", &["--qemu-cpu", length]);
    }
}

/// Output of a run that must fail, with these further options.
fn refusal(options: &[&str]) -> String {
    let on = if options.contains(&"qemu") {
        "qemu"
    } else {
        "machine"
    };
    let _room = room(on);
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .arg("run")
        .arg(root().join("systems/exercises.toml"))
        .arg("--hypervisor")
        .arg(hypervisor())
        .args(options)
        .output()
        .unwrap();
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let said = said.concat();
    assert!(!output.status.success(), "{said}");
    said
}

/// The hypervisor refuses a VM whose vectors no hart has, before any guest runs.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn unmet_vector_lengths_are_refused() {
    let demand = ["--set", "vm.two.vector-length=256"];
    let said = refusal(&demand);
    let message = "two: vector-length = 256, but it would get vector registers of 0 bits (0: none)";
    assert!(said.contains(message), "{said}");
    assert!(!said.contains("exerciser: harts="), "{said}");
    let profile = ["--profile", "k3-class", "--set", "vm.two.vector-length=512"];
    let said = refusal(&profile);
    let message = "vm.two.vector-length = 512: harts with the profile k3-class have vector registers of 256 bits";
    assert!(said.contains(message), "{said}");
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn unmet_vector_lengths_are_refused_on_qemu() {
    let demand = ["--set", "vm.two.vector-length=256"];
    let on = ["--on", "qemu", "--timeout", "60", "--qemu-cpu"];
    let of = |cpu| refusal(&[&on[..], &[cpu], &demand].concat());
    for (cpu, bits) in [("vlen=128", 128), ("v=off", 0)] {
        let said = of(cpu);
        let message =
            format!("two: vector-length = 256, but it would get vector registers of {bits} bits");
        assert!(said.contains(&message), "{said}");
    }
}
