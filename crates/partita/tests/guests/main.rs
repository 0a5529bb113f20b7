//! Whole systems on QEMU and on the machine: `make test` runs these, after it has built the hypervisor and the images.

mod alone;
mod balloon;
#[path = "../common/mod.rs"]
mod common;
mod console;
mod control;
mod firmware;
mod images;
mod kvm;
mod network;
mod pci;
mod served;
mod translations;
mod vectors;
mod ways;

use common::{hypervisor, room, root};
use std::fs;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The computers that a system runs on.
const COMPUTERS: [&str; 2] = ["machine", "qemu"];

/// `partita run` of an example on a computer, with the hypervisor that was built.
fn run_command(on: &str, system: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.arg("run").arg(root().join("systems").join(system));
    command
        .args(["--on", on])
        .arg("--hypervisor")
        .arg(hypervisor());
    command
}

/// Runs an example with changes; it must end well. Returns its report.
fn run(on: &str, system: &str, changes: &[&str]) -> serde_json::Value {
    run_with(on, system, changes, &[])
}

/// The same with more options.
fn run_with(on: &str, system: &str, changes: &[&str], options: &[&str]) -> serde_json::Value {
    let _room = room(on);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let mut command = run_command(on, system);
    for change in changes {
        command.args(["--set", change]);
    }
    command.args(options).arg("--json").arg(&json);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{changes:?}: {}\n{text}\n{errors}",
        output.status
    );
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

/// Sum of a number over all that the harts did for a VM.
fn sum(vm: &serde_json::Value, name: &str) -> u64 {
    vm["work"]
        .as_array()
        .unwrap()
        .iter()
        .map(|work| work[name].as_u64().unwrap())
        .sum()
}

/// Every VM powered off, its kernel without complaints (or the run would have failed), ran on every hart
/// that it may use, and took most interrupts without the hypervisor if it has files of its own.
fn check(report: &serde_json::Value, harts: usize, vms: usize, guest_files: u32) {
    assert_eq!(report["harts"].as_array().unwrap().len(), harts);
    let all = report["vms"].as_array().unwrap();
    assert_eq!(all.len(), vms);
    for vm in all {
        assert_eq!(vm["reason"], "power-off", "{vm}");
        assert!(sum(vm, "guest") > 0 && sum(vm, "dispatches") > 0, "{vm}");
        let own = &vm["guest_interrupts"];
        let own: u64 = ["timer", "ipi", "device"]
            .iter()
            .map(|kind| own[kind].as_u64().unwrap())
            .sum();
        if guest_files != 0 {
            assert!(
                sum(vm, "injected") < own / 10,
                "most of {own} interrupts were injected: {vm}"
            );
        }
    }
}

/// A `partita run` whose console is fed from here, with its output and its keys.
fn with_console(
    on: &str,
    system: &str,
    console: &str,
    changes: &[&str],
) -> (Child, ChildStdout, ChildStdin) {
    let mut command = run_command(on, system);
    for change in changes {
        command.args(["--set", change]);
    }
    command.args(["--console", console, "--timeout", "240"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let keys = child.stdin.take().unwrap();
    (child, output, keys)
}

/// Reads the console until `words` have come, and returns what came.
fn wait_for(console: &mut impl std::io::Read, words: &str) -> String {
    let begin = Instant::now();
    let (mut text, mut byte) = (String::new(), [0; 1]);
    while !text.ends_with(words) {
        assert!(
            begin.elapsed() < Duration::from_secs(240),
            "{words:?} does not come:\n{text}"
        );
        assert_ne!(
            console.read(&mut byte).unwrap(),
            0,
            "{words:?} never came:\n{text}"
        );
        text.push(char::from(byte[0]));
    }
    text
}

const SHORT: &str = "console=ttyS0 quiet partita.workload=mixed partita.seconds=3";

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn guests_work_with_few_guest_interrupt_files() {
    let short = ["web", "database"].map(|vm| format!("vm.{vm}.command-line={SHORT:?}"));
    let short = short.each_ref().map(String::as_str);
    guests_work_with_few_files("qemu", 3, 2, &short);
    guests_work_with_few_files("machine", 7, 1, &short);
}

/// Runs two guests, so many of which have their memory elsewhere than they see it, and their devices with it: on the machine in single pages.
fn guests_work_with_few_files(on: &str, files: u32, moved: usize, more: &[&str]) {
    let resident = ["web", "database"].map(|vm| format!("vm.{vm}.placement=\"resident\""));
    let mut changes: Vec<&str> = resident.iter().take(moved).map(String::as_str).collect();
    changes.extend(more);
    let files_key = format!("guest-interrupt-files={files}");
    // And one of them reaches its devices through the hypervisor.
    changes.push(match on {
        "qemu" => "vm.web.io=\"fast\"",
        _ => "vm.web.io=\"general\"",
    });
    if on == "machine" {
        changes.push("vm.web.placement=\"paged\"");
    }
    changes.push(&files_key);
    let report = run(on, "two-debian.toml", &changes);
    check(&report, 4, 2, files);
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_guests_work_with_few_files() {
    guests_work_with_few_files("qemu", 3, 2, &[]);
    guests_work_with_few_files("machine", 7, 1, &[]);
    check(
        &run("qemu", "two-debian.toml", &["guest-interrupt-files=0"]),
        4,
        2,
        0,
    );
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_three_guests_share_two_harts() {
    let lines = ["one", "two", "three"].map(|vm| format!("vm.{vm}.command-line={SHORT}"));
    let changes: Vec<&str> = lines.iter().map(String::as_str).collect();
    for on in COMPUTERS {
        check(&run(on, "stress-three-on-two.toml", &changes), 2, 3, 7);
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn dedicated_harts_leave_other_vms_alone() {
    let boot = "console=ttyS0 quiet partita.workload=hackbench partita.seconds=5";
    let report = run(
        "qemu",
        "two-debian.toml",
        &[
            "vm.web={ vcpus = 2, memory = \"512 MiB\", dedicated-harts = [1, 3], kernel = \"image:debian/kernel\", \
             initrd = \"image:debian/initrd\", command-line = \"console=ttyS0 quiet partita.workload=hackbench\" }",
            &format!("vm.database.command-line={boot}"),
        ],
    );
    let harts = |vm: &serde_json::Value| -> Vec<u64> {
        let work = vm["work"].as_array().unwrap().iter();
        work.filter(|work| work["guest"] != 0)
            .map(|work| work["hart"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(harts(&report["vms"][0]), [1, 3]);
    assert_eq!(harts(&report["vms"][1]), [0, 2]);
}
