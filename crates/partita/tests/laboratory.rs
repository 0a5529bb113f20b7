//! The laboratory with real runs on the machine: accounts that close, runs that repeat, series that go on after a kill.

mod common;

use common::{alone, hypervisor, root};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A short workload with spins, system calls and idle time in it.
const WORK: &str = "exercise=work jobs=8 duration-ms=0 terminals=6 think-us=2000 steps=5 compute=2000 calls=3 hold=80 \
                    lock-count=1 partner-one-in=5 request-one-in=5 process=200";

/// `partita` with a system of two exercisers of two vCPUs on two harts, results and images in `folder`.
fn partita(verb: &str, file: &Path, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command
        .arg(verb)
        .arg(file)
        .arg("--hypervisor")
        .arg(hypervisor());
    command.env("PARTITA_CACHE", folder);
    command
}

fn on_exercises(verb: &str, folder: &Path) -> Command {
    let mut command = partita(verb, &root().join("systems/exercises.toml"), folder);
    for vm in ["one", "two"] {
        command.args(["--set", &format!("vm.{vm}.command-line=\"{WORK}\"")]);
    }
    command
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let (out, errors) = (&output.stdout, &output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(errors)
    );
    output
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap()
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn every_cycle_of_a_hart_is_accounted_for() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    for profile in ["mainframe-1994", "rocket-h"] {
        let mut command = on_exercises("run", folder.path());
        command.args(["--on", "machine", "--profile", profile, "--json"]);
        succeed(command.arg(&path));
        let report = read(&path);
        let work = |hart: u64| {
            let vms = report["vms"].as_array().unwrap().iter();
            let work = vms.flat_map(|vm| vm["work"].as_array().unwrap());
            let own = work.filter(move |work| number(work, "hart") == hart);
            own.map(|work| {
                number(work, "guest") + number(work, "scheduling") + number(work, "simulation")
            })
            .sum::<u64>()
        };
        let harts = report["harts"].as_array().unwrap();
        assert_eq!(harts.len(), 2);
        for hart in harts {
            let id = number(hart, "hart");
            let sum = work(id) + number(hart, "scheduling") + number(hart, "idle");
            assert_eq!(sum, number(hart, "elapsed"), "{profile}, hart {id}");
            assert!(
                work(id) > 0 && number(hart, "idle") > 0,
                "{profile}, hart {id}"
            );
        }
    }
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn a_run_repeats_itself_to_the_last_digit_and_a_changed_record_is_found() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let mut command = on_exercises("run", folder.path());
    command.args([
        "--on",
        "machine",
        "--profile",
        "mainframe-1994",
        "--seed",
        "3",
    ]);
    succeed(command.arg("--json").arg(&path));
    succeed(&mut partita("rerun", &path, folder.path()));

    let mut report = read(&path);
    let cycles = number(&report["harts"][1], "idle");
    report["harts"][1]["idle"] = Value::from(cycles + 1);
    std::fs::write(&path, report.to_string()).unwrap();
    let output = partita("rerun", &path, folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("diverges") && errors.contains("harts[1].idle"),
        "{errors}"
    );
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn a_comparison_that_was_killed_goes_on_and_comes_to_the_same() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.jsonl");
    let compare = |results: &Path, json: &Path| {
        let mut command = on_exercises("compare", folder.path());
        command.args(["--profile", "mainframe-1994", "--vary", "spin=wopd,rslp"]);
        command
            .args(["--seeds", "4", "--results"])
            .arg(results)
            .arg("--json")
            .arg(json);
        command
    };
    let mut killed = compare(&results, &folder.path().join("killed.json"))
        .spawn()
        .unwrap();
    // Until some runs are kept, but not all: the file's first line is no run.
    let kept = || std::fs::read_to_string(&results).map_or(0, |text| text.lines().count());
    while kept() < 3 && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // It may have ended meanwhile; then there is nothing to kill.
    let _ = killed.kill();
    killed.wait().unwrap();
    let before = kept();
    assert!(before >= 3, "no run was kept");

    let (resumed, fresh) = (
        folder.path().join("resumed.json"),
        folder.path().join("fresh.json"),
    );
    succeed(&mut compare(&results, &resumed));
    succeed(&mut compare(&folder.path().join("other.jsonl"), &fresh));
    assert_eq!(read(&resumed)["comparison"], read(&fresh)["comparison"]);
    assert_eq!(kept(), 1 + 8);
}
