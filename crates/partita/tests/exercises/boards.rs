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

/// Reads of disks that are the guests' own end by interrupts, where these come by wires.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn disks_interrupt_by_wires() {
    let folder = tempfile::tempdir().unwrap();
    let mut disks = Vec::new();
    for vm in ["one", "two"] {
        let file = folder.path().join(vm);
        std::fs::write(&file, vec![0; 1 << 20]).unwrap();
        disks.push(format!("vm.{vm}.disks=[{{ file = {file:?} }}]"));
    }
    let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
    let changes = both("work duration-ms=0 jobs=300 reads=2 terminals=4", &disks);
    for machine in ["aia=none", "aia=aplic"] {
        let board = ["--qemu-machine", machine];
        let told = exercise_with("qemu", "exercises.toml", 2, &changes, &board);
        assert!(told.contains("\nmmio-plic "), "{told}");
        assert!(!told.contains("\nmmio-aplic "), "{told}");
    }
}

/// A clock of the board is a VM's own: its registers are mapped, and its alarms interrupt by each kind of controller. The other VM has an emulated one.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn given_clock_interrupts_its_vm() {
    let given = [
        "vm.one.devices=[\"/soc/rtc@101000\"]",
        "vm.one.placement=\"resident\"",
        "vm.one.confined=\"required\"",
        "vm.one.command-line=\"exercise=alarm\"",
    ]
    .map(String::from);
    for (on, board) in [
        ("machine", &[][..]),
        ("qemu", &["--qemu-machine", "aia=none"]),
        ("qemu", &["--qemu-machine", "aia=aplic"]),
    ] {
        let told = exercise_with(on, "exercises.toml", 2, &given, board);
        assert!(told.contains("alarm interrupts=5 of 5 early=0"), "{told}");
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
