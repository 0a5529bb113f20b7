//! Harts that lack an optional extension: the hypervisor does without, or says what it needs.

mod common;

use common::{hypervisor, room, root};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Runs two guests that make spin calls on QEMU's harts without `extension`; returns what was printed.
fn without(extension: &str) -> String {
    let _room = room("qemu");
    let folder = tempfile::tempdir().unwrap();
    // The last of several `-cpu` counts.
    let script = folder.path().join("qemu-system-riscv64");
    let path = std::env::var("PATH").unwrap();
    let lines = format!(
        "#!/bin/sh\nPATH={path}\n[ \"$1\" = --version ] || set -- \"$@\" -cpu rv64,svinval=on,svpbmt=on,sscofpmf=on,{extension}=off\n\
         exec qemu-system-riscv64 \"$@\"\n"
    );
    std::fs::write(&script, lines).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command
        .arg("run")
        .arg(root().join("systems/exercises.toml"))
        .args(["--on", "qemu", "--timeout", "60", "--hypervisor"])
        .arg(hypervisor())
        .env("PATH", format!("{}:{path}", folder.path().display()));
    for vm in ["one", "two"] {
        command.arg("--set").arg(format!(
            "vm.{vm}.command-line=\"exercise=work spin=call locks=4 hold=2000 terminals=4 jobs=200 duration-ms=0\""
        ));
    }
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Harts lack the extension, and the guests do their work.
fn guests_work_without(extension: &str) {
    let told = without(extension);
    assert!(!told.contains("defect:"), "{extension}: {told}");
    assert_eq!(
        told.matches("exerciser: PASS").count(),
        2,
        "{extension}: {told}"
    );
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn spin_calls_survive_harts_without_zawrs() {
    guests_work_without("zawrs");
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn guests_run_on_harts_without_sstc() {
    guests_work_without("sstc");
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn guests_run_on_harts_without_sscofpmf() {
    guests_work_without("sscofpmf");
}
