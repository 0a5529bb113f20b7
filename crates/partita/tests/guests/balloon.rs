//! Memory that a guest gives back by its balloon.

use super::common::room;
use super::{wait_for, with_console};
use std::io::Write;

/// A stock guest in single pages fills its memory and empties it. The pages are free again where the guest has a balloon, and stay where it has none.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn balloons_return_unneeded_memory() {
    emptied_memory_is_returned(true);
}

#[test]
#[ignore = "soak: half a minute of a guest; make soak runs it"]
fn soak_memory_stays_without_a_balloon() {
    emptied_memory_is_returned(false);
}

fn emptied_memory_is_returned(balloon: bool) {
    let _room = room("machine");
    let changes = [
        "vm.debian.placement=\"paged\"",
        "vm.debian.io=\"general\"",
        "vm.debian.rng=false",
        &format!("vm.debian.balloon={balloon}"),
    ];
    let (mut child, mut console, mut keys) =
        with_console("machine", "shell.toml", "debian", &changes);
    wait_for(&mut console, "partita-guest start workload=shell");
    wait_for(&mut console, "# ");
    // How many MiB of the guest's memory are there, after it has done this.
    let mut there = |work: &str| -> u64 {
        writeln!(keys, "{work}; echo done $((6 * 7))").unwrap();
        wait_for(&mut console, "done 42");
        keys.write_all(b"\x1dm").unwrap();
        wait_for(&mut console, "partita> ");
        keys.write_all(b"vm list\n").unwrap();
        wait_for(&mut console, "MiB, of which ");
        let answer = wait_for(&mut console, " are there");
        keys.write_all(b"\n").unwrap();
        answer.trim_end_matches(" are there").parse().unwrap()
    };
    let filled = there("dd if=/dev/zero of=/tmp/file bs=1M count=200");
    let emptied = there("rm /tmp/file; sleep 10");
    let again = there("dd if=/dev/zero of=/tmp/file bs=1M count=200");
    assert!(filled > 200 && again > 200, "{filled} and {again}");
    // Blocks of 2 MiB are reported, so that not all of it comes back.
    assert_eq!(emptied + 180 < filled, balloon, "{filled} and {emptied}");
    keys.write_all(b"exit\n").unwrap();
    wait_for(&mut console, "interrupts: direct");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The operator takes memory and vCPUs from a stock guest while it runs, and gives them back.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn running_vms_are_resized() {
    let _room = room("machine");
    let changes = [
        "vm.debian.placement=\"paged\"",
        "vm.debian.io=\"general\"",
        "vm.debian.rng=false",
        "vm.debian.balloon=true",
    ];
    let (mut child, mut console, mut keys) =
        with_console("machine", "shell.toml", "debian", &changes);
    wait_for(&mut console, "partita-guest start workload=shell");
    wait_for(&mut console, "# ");
    // What the guest answers, and what the hypervisor does.
    let mut turn = |work: &str, until: &str, command: &str, answer: &str| -> String {
        writeln!(keys, "{work}; echo {until}$((6 * 7))").unwrap();
        let said = wait_for(&mut console, &format!("{until}42"));
        keys.write_all(b"\x1dm").unwrap();
        wait_for(&mut console, "partita> ");
        writeln!(keys, "{command}").unwrap();
        wait_for(&mut console, answer);
        keys.write_all(b"\n").unwrap();
        said
    };
    let online = "nproc; grep MemTotal /proc/meminfo";
    turn(
        "dd if=/dev/zero of=/tmp/file bs=1M count=200; rm /tmp/file",
        "a",
        "vm resize debian memory 256",
        "debian: asked to use 256 MiB of 512",
    );
    // Its balloon has 256 MiB, so that less is there.
    turn(
        "sleep 8",
        "b",
        "vm list",
        "256 of 256 asked for are given back",
    );
    let cpu = "/sys/devices/system/cpu/cpu1/online";
    turn(
        online,
        "c",
        "vm resize debian vcpus 1",
        "debian: at most 1 of 2 vCPUs started; now 2",
    );
    turn(
        &format!("echo 0 > {cpu}"),
        "d",
        "vm list",
        "at most 1 of 2 vCPUs",
    );
    let refused = turn(
        &format!("echo 1 > {cpu} || echo refu\"\"sed"),
        "e",
        "vm resize debian vcpus 2",
        "debian: at most 2 of 2 vCPUs started; now 1",
    );
    assert!(refused.contains("refused"), "{refused}");
    let again = turn(
        &format!("echo 1 > {cpu}; echo $(nproc) C\"\"PUs"),
        "f",
        "vm resize debian memory 512",
        "debian: asked to use 512 MiB of 512",
    );
    assert!(again.contains("2 CPUs"), "{again}");
    // All of its memory is the guest's again.
    turn(
        "sleep 8; dd if=/dev/zero of=/tmp/file bs=1M count=200",
        "g",
        "vm list",
        "512 MiB, of which ",
    );
    keys.write_all(b"exit\n").unwrap();
    wait_for(&mut console, "interrupts: direct");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
