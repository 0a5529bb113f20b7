//! The conformance suite for the interrupt architecture, on this machine and on QEMU.
//!
//! The suite is the package in `conformance/`: bare-metal programs that print a line for each of
//! their tests. Here all of them must pass with 1 and with 2 harts; on QEMU, where it is installed,
//! all but the known departures below. What only one of the two gets wrong is the suite's value.

mod programs;

use std::path::Path;
use std::process::Command;

use machine::device::Script;
use machine::{Config, Limit, Machine, Stop};

/// The programs, and the numbers of guest interrupt files with which they run here; on QEMU with the
/// first. It offers no more than seven.
const PROGRAMS: [(&str, &[u8]); 4] = [
    ("imsic", &[7, 63]),
    ("aplic", &[7, 63]),
    ("interrupts", &[7, 63]),
    ("nofiles", &[0]),
];

/// Tests that QEMU 10.0.2 fails, and what it does instead.
const QEMU_DEPARTURES: [&str; 14] = [
    // All ones are held (WLRL).
    "hstatus.VGEIN holds zero alone",
    // Illegal instruction.
    "reserved register numbers read as zero and ignore writes",
    // Modes 2 and 3 are held.
    "sourcecfg holds the defined modes and no reserved one",
    // target can be written.
    "an inactive source has no pending, enable or target bits",
    // The child's sourcecfg can be written at any time.
    "a source appears in the child while the root delegates it",
    // Guest Index can be written at machine level.
    "target holds hart, guest and identity; no guest at machine level",
    // The pending bit stays set in MSI delivery mode.
    "a level that falls takes its pending bit along",
    // Ties of priority go to the higher interrupt number.
    "mtopi follows the default order: external, software",
    "hvip's interrupts show in vstopi as supervisor interrupts",
    // There is no DPR.
    "hvictl holds its fields and no others",
    // No interrupt when hvictl gives no priority.
    "hvictl with IID = 9 gives an external interrupt its priority",
    // What is behind sireg and vsireg can be accessed whatever bits 58 and 59 say.
    "mstateen0 bit 58 takes the interrupt files behind sireg and vsireg from the lower modes",
    "mstateen0 bit 59 takes the priorities behind sireg from S-mode",
    "hstateen0 bit 58 takes the interrupt file behind sireg from the guest",
];

/// The names of the tests that failed, of a report that is complete.
fn failures(report: &str, program: &str) -> Vec<String> {
    let (mut passed, mut failed) = (0, Vec::new());
    let mut summary = None;
    for line in report.lines() {
        let Some(line) = line
            .trim()
            .strip_prefix(program)
            .and_then(|rest| rest.strip_prefix(": "))
        else {
            continue;
        };
        if line.starts_with("ok: ") {
            passed += 1;
        } else if let Some(failure) = line.strip_prefix("FAILED: ") {
            // The test's own name may have a colon; what was looked at has the last two.
            failed.push(failure.to_owned());
        } else {
            summary = Some(line.to_owned());
        }
    }
    let expected = format!("{} tests, {} failed", passed + failed.len(), failed.len());
    assert_eq!(
        summary,
        Some(expected),
        "a whole report of {program}: {report}"
    );
    assert!(passed > 0, "{program} has tests");
    failed
}

fn on_this_machine(program: &Path, harts: u32, guest_files: u8) -> String {
    let mut config = Config::default();
    config.board.harts = harts;
    config.board.memory = 64 << 20;
    config.board.guest_files = guest_files;
    let mut machine = Machine::new(config).expect("a machine");
    machine
        .load_bare(&std::fs::read(program).expect("a program"))
        .expect("a program");
    let console = Script::default();
    let heard = console.output.clone();
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(console));
    let stop = machine.run(Limit {
        instructions: Some(100_000_000),
        cycles: None,
    });
    assert_ne!(stop, Stop::Limit, "the program ends by itself");
    let heard = heard.lock().expect("one thread");
    String::from_utf8_lossy(&heard).into_owned()
}

/// The report of a program on QEMU; `None` where there is no QEMU for this machine.
fn on_qemu(program: &Path, guest_files: u8) -> Option<String> {
    let output = Command::new("qemu-system-riscv64")
        .arg("-M")
        .arg(format!("virt,aia=aplic-imsic,aia-guests={guest_files}"))
        .args(["-cpu", "rv64,smstateen=on"])
        .args([
            "-smp", "2", "-m", "64M", "-display", "none", "-monitor", "none",
        ])
        .args(["-serial", "stdio", "-bios"])
        .arg(program)
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_suite_passes_here_and_on_qemu() {
    let programs = programs::build();
    for (program, guest_files) in PROGRAMS {
        let path = programs.join(program);
        for (harts, &files) in [1, 2].into_iter().flat_map(|harts| {
            let of = move |files| (harts, files);
            guest_files.iter().map(of)
        }) {
            let failed = failures(&on_this_machine(&path, harts, files), program);
            assert!(
                failed.is_empty(),
                "{program} with {harts} harts and {files} guest files: {failed:#?}"
            );
        }
        let Some(report) = on_qemu(&path, guest_files[0]) else {
            eprintln!("qemu-system-riscv64 is not here: {program} ran on this machine alone");
            continue;
        };
        let known = |failure: &String| {
            QEMU_DEPARTURES
                .iter()
                .any(|departure| failure.starts_with(departure))
        };
        let (_, unknown): (Vec<_>, Vec<_>) =
            failures(&report, program).into_iter().partition(known);
        assert!(unknown.is_empty(), "{program} on QEMU: {unknown:#?}");
    }
}
