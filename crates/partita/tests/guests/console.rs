//! Consoles, and runs that end before their guests do.

use super::common::room;
use super::{COMPUTERS, run_command, wait_for, with_console};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_guests_console_can_be_used() {
    for on in COMPUTERS {
        let _room = room(on);
        let (mut child, mut console, mut keys) = with_console(on, "shell.toml", "debian", &[]);
        wait_for(&mut console, "partita-guest start workload=shell");
        wait_for(&mut console, "# ");
        keys.write_all(b"echo 6 times 7 is $((6 * 7))\n").unwrap();
        wait_for(&mut console, "6 times 7 is 42");
        keys.write_all(b"exit\n").unwrap();
        wait_for(&mut console, "interrupts: direct");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// A request of many pages is as many descriptors for the disk: the guest is told how many fit.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn guests_in_pages_may_make_long_requests() {
    for on in COMPUTERS {
        let _room = room(on);
        let changes = ["vm.debian.placement=paged", "vm.debian.io=general"];
        let (mut child, mut console, mut keys) = with_console(on, "shell.toml", "debian", &changes);
        wait_for(&mut console, "# ");
        keys.write_all(b"dd if=/dev/vda of=/dev/null bs=4M count=4 iflag=direct; echo ended: $?\n")
            .unwrap();
        wait_for(&mut console, "ended: 0");
        keys.write_all(b"exit\n").unwrap();
        wait_for(&mut console, "interrupts: direct");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// Flag, code and interrupt tell a guest of each change of its allocation (paper 000 §3.1): the exerciser compares them
/// and fails if one hart was not told.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn guests_learn_their_allocation_while_running() {
    let _room = room("qemu");
    let changes = [
        "harts=3",
        "vm.one.command-line=exercise=allocation duration-ms=12000 changes=4",
        "vm.two.command-line=exercise=heartbeat duration-ms=12000",
    ];
    let (mut child, mut console, mut keys) =
        with_console("qemu", "exercises.toml", "partita", &changes);
    wait_for(&mut console, "allocation start code=0x0 flag=0 harts=0");
    for harts in ["0,1", "shared", "2,1", "shared"] {
        writeln!(keys, "harts one {harts}").unwrap();
        let answer = if harts == "shared" {
            "one: on shared harts"
        } else {
            "one: on harts of its own"
        };
        wait_for(&mut console, answer);
    }
    wait_for(&mut console, "untold=0");
    wait_for(&mut console, "[one] exerciser: PASS allocation");
    assert!(child.wait().unwrap().success());
}

/// Guests that never end by themselves.
const ENDLESS: [&str; 2] = [
    "vm.one.command-line=exercise=heartbeat duration-ms=0",
    "vm.two.command-line=exercise=heartbeat duration-ms=0",
];

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn the_escape_key_powers_everything_off() {
    for on in COMPUTERS {
        let _room = room(on);
        let (mut child, mut console, mut keys) =
            with_console(on, "exercises.toml", "one", &ENDLESS);
        wait_for(&mut console, "uptime-ms=");
        keys.write_all(b"\x1dq").unwrap();
        wait_for(&mut console, "interrupts: direct");
        // Whoever leaves wants it to end: that the guest did not power itself off is no failure.
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn interrupted_runs_leave_nothing_behind() {
    for on in COMPUTERS {
        let _room = room(on);
        let mut command = run_command(on, "exercises.toml");
        for change in ENDLESS {
            command.args(["--set", change]);
        }
        let mut child = command
            .args(["--timeout", "240"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut console = child.stdout.take().unwrap();
        wait_for(&mut console, "uptime-ms=");
        let id = child.id();
        let interrupt = Command::new("kill")
            .args(["-INT", &id.to_string()])
            .status()
            .unwrap();
        assert!(interrupt.success());
        // Everything that is still said must be read, or it would wait.
        std::io::copy(&mut console, &mut std::io::sink()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        assert!(children.is_err(), "the process is still there");
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn runs_past_their_limit_end() {
    for on in COMPUTERS {
        let _room = room(on);
        // No host boots Debian in a second.
        let output = run_command(on, "one-debian.toml")
            .args(["--timeout", "1"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{on}: {errors}");
        assert!(errors.contains("--timeout 1"), "{on}: {errors}");
    }
}

/// Nobody waits for a prompt: everything is there before the guest is.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn a_script_reaches_a_guest() {
    let _room = room("machine");
    let (mut child, mut console, mut keys) = with_console("machine", "shell.toml", "debian", &[]);
    keys.write_all(b"echo 6 times 7 is $((6 * 7))\nexit\n")
        .unwrap();
    drop(keys);
    wait_for(&mut console, "6 times 7 is 42");
    wait_for(&mut console, "interrupts: direct");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
