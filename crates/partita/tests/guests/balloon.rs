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
