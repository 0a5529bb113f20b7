//! Calls of the SBI besides interrupts, timers and fences.

use super::{COMPUTERS, both, exercise_with, together};

/// Each of two VMs reads as stolen what it misses by its own clock, whatever translates it, and where the page of its area has no frame.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn stolen_time_is_what_guests_miss() {
    let paged = ["vm.one.placement=\"paged\"", "vm.two.placement=\"paged\""];
    let shadow = ["vm.one.translation=\"shadow\"", paged[1]];
    for (exercise, changes) in [
        ("steal", &[][..]),
        ("steal give-back=yes", &paged),
        ("steal", &shadow),
    ] {
        let told = together("machine", exercise, changes);
        // A sibling sees the vCPU without a hart.
        assert!(!told.contains("preempted=0 "), "{told}");
        assert_eq!(told.matches("steal absent-ns=").count(), 2, "{told}");
    }
}

/// Two VMs share harts, one with pointer masking and one without. Each sees its own, at every dispatch.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn firmware_features_stay_with_their_vcpus() {
    for masks in [7, 16] {
        let changes = [
            "time-slice=\"1 ms\"",
            "vm.two.command-line=\"exercise=features masks=0\"",
        ];
        together("machine", &format!("features masks={masks}"), &changes);
    }
}

/// Two VMs share harts and use the same addresses. One watches its stores there, at every dispatch, and the other never notices.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn debug_triggers_stay_with_their_vcpus() {
    let same_addresses = [
        "time-slice=\"1 ms\"",
        "vm.one.placement=\"resident\"",
        "vm.two.placement=\"resident\"",
        "vm.two.command-line=\"exercise=triggers watch=no\"",
    ];
    for on in COMPUTERS {
        together(on, "triggers", &same_addresses);
    }
    // Both have triggers, which fire at different times.
    together("machine", "triggers", &same_addresses[..3]);
}

/// Overflows of counters, and double traps where the firmware permits them (OpenSBI from 1.6), are told by events.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn events_tell_what_hardware_raises() {
    let told = together("machine", "events", &["time-slice=\"1 ms\""]);
    assert_eq!(told.matches("events overflows=40 ").count(), 2, "{told}");
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn suspended_vms_wake_by_interrupts() {
    for on in COMPUTERS {
        for files in [7, 0] {
            let files = format!("guest-interrupt-files={files}");
            together(on, "sleep", &[&files]);
        }
    }
    // A read that takes a while ends while its VM is suspended.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    for disk in [
        format!("{{ file = {file:?} }}"),
        format!("{{ file = {file:?}, io = \"general\" }}"),
    ] {
        let changes = [
            format!("vm.one.disks=[{disk}]"),
            String::from("vm.one.command-line=\"exercise=sleep disk=yes\""),
        ];
        let changes = both("sleep", &changes.each_ref().map(String::as_str));
        let profile = ["--profile", "k3-class"];
        exercise_with("machine", "exercises.toml", 2, &changes, &profile);
    }
}
