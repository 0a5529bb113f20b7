//! Where documents and text for people go, and what a full disk or a closed reader does.

mod common;

use common::{hypervisor, room, root};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn partita(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.args(arguments).current_dir(folder);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    (status.code(), text(&stdout), text(&stderr))
}

/// A run of two exercisers that end at once, on the machine.
fn short_run(folder: &Path, verb: &str, options: &[&str]) -> Command {
    let mut command = partita(folder, &[verb]);
    command
        .arg(root().join("systems/exercises.toml"))
        .arg("--hypervisor")
        .arg(hypervisor());
    for vm in ["one", "two"] {
        command.args(["--set", &format!("vm.{vm}.command-line=exercise=boot")]);
    }
    command.args(options).env("PARTITA_CACHE", folder);
    command
}

#[test]
fn full_standard_output_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["explain"][..],
        &["reference"],
        &["profile", "show"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, errors) = output(partita(folder.path(), arguments).stdout(full));
        assert_eq!(code, Some(5), "{arguments:?}: {errors}");
        assert!(
            errors.contains("standard output: No space left"),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
fn closed_readers_of_text_are_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = partita(folder.path(), &["reference"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), text(&stderr)), (Some(0), String::new()));
}

#[test]
fn unusable_folders_are_noticed_before_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let system = root().join("systems/exercises.toml");
    let system = system.to_str().unwrap();
    for arguments in [
        &["fuzz", "--findings", "file/findings"][..],
        &["board", system, "-o", "file/boot"],
    ] {
        let mut command = partita(folder.path(), arguments);
        let (code, _, errors) = output(command.arg("--hypervisor").arg("none"));
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        let last = arguments.last().unwrap();
        assert!(
            errors.starts_with(&format!("partita: {last}: ")),
            "{arguments:?}: {errors}"
        );
    }
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn second_documents_for_standard_output_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = short_run(folder.path(), "run", &["--json", "-", "--monitor", "-"]);
    let (code, out, errors) = output(&mut command);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("only one document"), "{errors}");
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn full_disks_are_noticed_before_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let own_mounts = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_partita"));
        command.current_dir(folder.path());
        command
    };
    if !output(&mut own_mounts("mount -t tmpfs none ."))
        .2
        .is_empty()
    {
        eprintln!("no small disk can be made here: this user may not mount one");
        return;
    }
    fs::create_dir(folder.path().join("full")).unwrap();
    let mount = "mount -t tmpfs -o size=64k none full";
    let system = root().join("systems/exercises.toml");
    let script = format!(
        "{mount} && exec \"$0\" run {} --hypervisor none --json full/report.json",
        system.display()
    );
    let (code, _, errors) = output(&mut own_mounts(&script));
    assert_eq!(code, Some(5), "{errors}");
    assert!(
        errors.contains("full/report.json: No space left"),
        "{errors}"
    );
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn documents_have_standard_output_to_themselves() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let compared = ["--vary", "spin=wopd,wapd", "--seeds", "1"];
    let cases: [(&str, &[&str]); 3] = [
        ("run", &["--json", "-"]),
        ("run", &["--json", "-", "--quiet"]),
        ("compare", &["--json", "-", "--results", "kept.jsonl"]),
    ];
    for (verb, options) in cases {
        let mut command = short_run(folder.path(), verb, options);
        if verb == "compare" {
            command.args(compared);
        }
        let (code, out, errors) = output(&mut command);
        assert_eq!(code, Some(0), "{verb} {options:?}: {errors}");
        let document: Result<serde_json::Value, _> = serde_json::from_str(&out);
        assert!(document.is_ok(), "{verb} {options:?}:\n{out}");
        assert!(errors.lines().count() > 3, "{verb} {options:?}: {errors}");
    }
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn unreadable_runs_name_the_cause() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (code, _, errors) = output(short_run(folder.path(), "run", &[]).stdout(full));
    assert_eq!(code, Some(5), "{errors}");
    assert!(
        errors.contains("standard output: No space left"),
        "{errors}"
    );
}
