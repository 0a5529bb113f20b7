//! Other forms of QEMU's board than the one that systems usually get.

use super::{both, exercise_with};

/// Two VMs of two vCPUs on two harts of such a board: deadlines, then interrupts between vCPUs, none lost and none doubled.
fn interrupts_are_counted(machine: &str, cpu: &str, deadlines: u32, interrupts: u32) {
    let board = ["--qemu-machine", machine, "--qemu-cpu", cpu];
    let timer = format!("timer count={deadlines}");
    for exercise in [timer, format!("ipi count={interrupts}")] {
        let told = exercise_with("qemu", "exercises.toml", 2, &both(&exercise, &[]), &board);
        assert!(!told.contains("hart 0 has no"), "{told}");
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn plic_and_no_sstc_suffice() {
    interrupts_are_counted("aia=none", "sstc=off", 50, 20);
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_interrupts_arrive_on_every_board() {
    for machine in ["aia=none", "aia=aplic", "aia=aplic-imsic"] {
        for cpu in ["sstc=on", "sstc=off", "sstc=off,zawrs=off,v=off"] {
            interrupts_are_counted(machine, cpu, 200, 50);
        }
    }
}

/// Registers survive the moves of vCPUs, and hostile guests harm nobody, where interrupts come by wires.
#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_hostile_guests_of_wired_boards() {
    for machine in ["aia=none", "aia=aplic"] {
        let board = ["--qemu-machine", machine, "--qemu-cpu", "sstc=off"];
        exercise_with(
            "qemu",
            "exercises.toml",
            2,
            &both("state rounds=100", &[]),
            &board,
        );
        exercise_with("qemu", "hostile.toml", 2, &[], &board);
    }
}
