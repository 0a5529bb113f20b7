//! The farm: hostile systems of a seed hold, and come again to the byte.

mod common;

use common::{hypervisor, room, root};
use std::path::Path;
use std::process::Command;

/// Runs the farm; returns what it says. Nothing may be found.
fn farm(findings: &Path, options: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .arg("fuzz")
        .args(options)
        .arg("--findings")
        .arg(findings)
        .arg("--hypervisor")
        .arg(hypervisor())
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn hostile_systems_hold_and_repeat() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let told = farm(folder.path(), &["--systems", "2"]);
    assert!(told.contains("2 systems, 0 with findings"), "{told}");
    assert_eq!(
        farm(folder.path(), &["--systems", "2", "--jobs", "2"]),
        told
    );
}

/// The witness's own checks and exits take a fortieth of its hart, also without the three vCPUs that interrupt each other beside it.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn witness_keeps_share_beside_interrupts() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let system = ["--seed", "2", "--first", "12", "--systems", "1"];
    let told = farm(folder.path(), &system);
    assert!(told.contains("1 systems, 0 with findings"), "{told}");
}

/// A bound that no hypervisor keeps makes a finding, which is shrunk and replayed.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn findings_can_be_replayed() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_partita"))
            .arg("fuzz")
            .args(options)
            .args(["--stretch-us", "0.001", "--hypervisor"])
            .arg(hypervisor())
            .current_dir(root())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let findings = folder.path().to_str().unwrap();
    run(&["--systems", "1", "--shrink", "1", "--findings", findings]);
    let finding = folder.path().join("1-0");
    for file in ["finding.md", "system.toml", "console.log"] {
        assert!(finding.join(file).is_file(), "{file}");
    }
    let case: serde_json::Value =
        serde_json::from_slice(&std::fs::read(finding.join("case.json")).unwrap()).unwrap();
    let again = run(&["--replay", finding.to_str().unwrap()]);
    let fingerprint = &case["fingerprint"].as_str().unwrap()[..12];
    assert!(again.contains(fingerprint), "{again}");
}

#[test]
#[ignore = "soak: ten minutes; make soak runs it"]
fn soak_hostile_systems_hold() {
    let _room = room("fuzz");
    let folder = tempfile::tempdir().unwrap();
    let told = farm(
        folder.path(),
        &["--seed", "2", "--hours", "0.1667", "--jobs", "2"],
    );
    println!("{told}");
}
