//! The laboratory with real runs on the machine: accounts that close, runs that repeat, series that go on after a kill.

mod common;

use abi::system::{SpinMethod, WaitMethod};
use common::{hypervisor, room, root};
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
fn hart_cycles_are_all_accounted() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    // Every method of either kind with the other's default, and two profiles.
    let spins = SpinMethod::ALL
        .iter()
        .map(|method| format!("spin={:?}", method.name()));
    let waits = WaitMethod::ALL
        .iter()
        .map(|method| format!("wait={:?}", method.name()));
    let rocket = ("rocket-h", String::from("spin=\"reservation\""));
    let cases = spins.chain(waits).map(|change| ("mainframe-1994", change));
    for (profile, change) in cases.chain([rocket]) {
        let mut command = on_exercises("run", folder.path());
        command.args(["--on", "machine", "--profile", profile, "--without-native"]);
        command.args(["--set", &change, "--json"]);
        succeed(command.arg(&path));
        close(&read(&path), &format!("{profile}, {change}"));
    }
}

/// Asserts that the time of every hart of a report is accounted for to the cycle.
fn close(report: &Value, what: &str) {
    let harts = report["harts"].as_array().unwrap();
    assert_eq!(harts.len(), 2);
    let mut idle_everywhere = 0;
    for hart in harts {
        let id = number(hart, "hart");
        let vms = report["vms"].as_array().unwrap().iter();
        let work = vms.flat_map(|vm| vm["work"].as_array().unwrap());
        let own = work.filter(|work| number(work, "hart") == id);
        let work: u64 = own
            .map(|work| {
                number(work, "guest") + number(work, "scheduling") + number(work, "simulation")
            })
            .sum();
        let (scheduling, idle) = (number(hart, "scheduling"), number(hart, "idle"));
        let sum = work + scheduling + idle;
        assert_eq!(sum, number(hart, "elapsed"), "{what}, hart {id}");
        assert!(work > 0, "{what}, hart {id}");
        idle_everywhere += idle;
    }
    // A hart may have had work all the time, but not every one.
    assert!(idle_everywhere > 0, "{what}");
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn runs_repeat_and_changed_records_are_found() {
    let _room = room("machine");
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
fn killed_comparisons_resume_to_the_same_result() {
    let _room = room("compare");
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

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn runs_from_checkpoints_have_policies_and_repeat() {
    let _room = room("compare");
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("compared.json");
    let mut command = on_exercises("compare", folder.path());
    command.args(["--profile", "mainframe-1994", "--seeds", "2"]);
    command.args(["--start-at", "work allocation=", "--vary", "spin=wopd,rslp"]);
    command.args(["--vary", "vm.one.share=10,90"]);
    succeed(command.arg("--json").arg(&json));
    let runs = read(&json)["runs"].clone();
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 8);
    for run in runs {
        let start = &run["point"]["start"];
        assert_eq!(start["commands"].as_array().unwrap().len(), 2, "{start}");
        let report = &run["outcome"]["finished"]["report"];
        // Accounts close between two reports as they do from the beginning.
        for hart in report["harts"].as_array().unwrap() {
            let vms = report["vms"].as_array().unwrap().iter();
            let work = vms.flat_map(|vm| vm["work"].as_array().unwrap());
            let own = work.filter(|work| work["hart"] == hart["hart"]);
            let parts = ["guest", "scheduling", "simulation"];
            let sum: u64 = own
                .map(|work| parts.iter().map(|part| number(work, part)).sum::<u64>())
                .sum();
            let sum = sum + number(hart, "scheduling") + number(hart, "idle");
            assert_eq!(sum, number(hart, "elapsed"), "{hart}");
        }
    }
    // One boot for all of them.
    let checkpoints = std::fs::read_dir(folder.path().join("checkpoints")).unwrap();
    assert_eq!(checkpoints.count(), 1);
    // Policies and start phases make a difference, and nothing else does.
    let figures: std::collections::BTreeSet<String> = runs
        .iter()
        .map(|run| run["outcome"]["finished"]["report"]["measures"].to_string())
        .collect();
    assert_eq!(figures.len(), 8);
    succeed(&mut partita("rerun", &json, folder.path()));
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn windows_of_runs_have_exact_length() {
    let _room = room("compare");
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("compared.json");
    let mut command = on_exercises("compare", folder.path());
    command.args(["--profile", "mainframe-1994", "--seeds", "2"]);
    // Their work would go on for long.
    command.args(["--vary", "guest.jobs=1000000"]);
    command.args(["--start-at", "work allocation=", "--span", "40"]);
    succeed(command.arg("--json").arg(&json));
    let runs = read(&json)["runs"].clone();
    let runs = runs.as_array().unwrap();
    let mut instructions = std::collections::BTreeSet::new();
    for run in runs {
        let hardware = &run["outcome"]["finished"]["report"]["hardware"];
        let span = number(hardware, "hertz") / 1000 * 40;
        for hart in hardware["harts"].as_array().unwrap() {
            let cycles = number(hart, "cycles");
            // A hart stops at the end of an instruction.
            assert!(cycles.abs_diff(span) < span / 100, "{cycles} of {span}");
        }
        instructions
            .insert(run["outcome"]["finished"]["report"]["measures"]["instructions"].to_string());
    }
    assert_eq!((runs.len(), instructions.len()), (2, 2));
    succeed(&mut partita("rerun", &json, folder.path()));
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn endless_guests_cost_no_other_runs() {
    let _room = room("compare");
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.jsonl");
    let mut command = on_exercises("compare", folder.path());
    command.args(["--profile", "mainframe-1994", "--seeds", "2", "--jobs", "2"]);
    command.args(["--vary", "guest.jobs=100000000,8", "--timeout", "5"]);
    let output = command.arg("--results").arg(&results).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let named =
        |seed: u32| format!("guest.jobs=100000000, seed {seed}: it took longer than it may");
    assert!(
        errors.contains(&named(0)) && errors.contains(&named(1)),
        "{errors}"
    );
    let kept = std::fs::read_to_string(&results).unwrap();
    assert_eq!(kept.matches("\"finished\"").count(), 2);
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn steady_windows_leave_runs_unchanged() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let timed = WORK.replace("jobs=8 duration-ms=0", "duration-ms=300");
    let run = |name: &str, options: &[&str]| {
        let json = folder.path().join(name);
        let mut command = partita("run", &root().join("systems/exercises.toml"), folder.path());
        for vm in ["one", "two"] {
            command.args(["--set", &format!("vm.{vm}.command-line=\"{timed}\"")]);
        }
        command.args(["--profile", "mainframe-1994", "--without-native"]);
        succeed(command.args(options).arg("--json").arg(&json));
        (read(&json), json)
    };
    let (whole, _) = run("whole.json", &[]);
    let (steady, file) = run("steady.json", &["--steady-state"]);
    // The guests saw nothing of it: all that they counted and timed is the same.
    assert_eq!(steady["guests"], whole["guests"]);
    for report in [&whole, &steady] {
        for hart in report["harts"].as_array().unwrap() {
            let vms = report["vms"].as_array().unwrap().iter();
            let work = vms.flat_map(|vm| vm["work"].as_array().unwrap());
            let own = work.filter(|work| work["hart"] == hart["hart"]);
            let parts = ["guest", "scheduling", "simulation"];
            let sum: u64 = own
                .map(|work| parts.iter().map(|part| number(work, part)).sum::<u64>())
                .sum();
            let sum = sum + number(hart, "scheduling") + number(hart, "idle");
            assert_eq!(sum, number(hart, "elapsed"), "{hart}");
        }
    }
    // The window ends before the work does, and boot and last report are not in it.
    let seconds = |report: &Value| report["measures"]["uptime"].as_f64().unwrap();
    let (part, all) = (seconds(&steady), seconds(&whole));
    assert!((0.2..0.3).contains(&part) && all > 0.3, "{part} of {all}");
    // What was counted within is a part of the whole, to the last event.
    let counted = |report: &Value| report["hardware"]["harts"].as_array().unwrap().clone();
    for (part, all) in counted(&steady).iter().zip(counted(&whole)) {
        let events = part["total"].as_object().unwrap();
        assert!(!events.is_empty());
        for (event, part) in events {
            assert!(
                part.as_u64() <= all["total"][event].as_u64(),
                "{event}: {part}"
            );
        }
    }
    // VMs of the window have not ended.
    for vm in steady["vms"].as_array().unwrap() {
        assert_eq!(vm["state"], "running", "{vm}");
    }
    succeed(&mut partita("rerun", &file, folder.path()));
    // What has no such window is refused.
    let mut command = on_exercises("run", folder.path());
    let output = command.arg("--steady-state").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("duration-ms="),
        "{errors}"
    );
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn shards_make_one_table_and_repeat() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let timed = WORK.replace("jobs=8 duration-ms=0", "duration-ms=150");
    let compare = |options: &[&str]| {
        let system = root().join("systems/exercises.toml");
        let mut command = partita("compare", &system, folder.path());
        for vm in ["one", "two"] {
            command.args(["--set", &format!("vm.{vm}.command-line=\"{timed}\"")]);
        }
        command.args([
            "--profile",
            "mainframe-1994",
            "--steady-state",
            "--measure",
            "throughput",
        ]);
        command.arg("--nuisance=boot-offset,slice-phase,link-order");
        let output = succeed(command.args(options));
        String::from_utf8(output.stdout).unwrap()
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (one, two, all) = (file("1.jsonl"), file("2.jsonl"), file("all.jsonl"));
    for (shard, results) in [("1/2", &one), ("2/2", &two)] {
        // A shard has no table.
        assert_eq!(compare(&["--shard", shard, "--results", results]), "");
    }
    let runs = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        text.matches("\"finished\"").count()
    };
    assert_eq!((runs(&one), runs(&two)), (2, 2));
    let mut merge = Command::new(env!("CARGO_BIN_EXE_partita"));
    succeed(merge.args(["results", "merge", &all, &one, &two]));
    let json = folder.path().join("comparison.json");
    let table = compare(&["--results", &all, "--json", json.to_str().unwrap()]);
    // Nothing was left to be run.
    assert_eq!(runs(&all), 4);
    for told in [
        "variance of throughput",
        "boot-offset",
        "slice-phase",
        "link-order",
        "4 of 4",
    ] {
        assert!(table.contains(told), "{told}: {table}");
    }
    let whole = read(&json);
    let shares = whole["variances"][0]["shares"].as_array().unwrap();
    assert_eq!(shares.len(), 3);
    // Each level is a run of its own, and every one comes out again.
    let etr = |run: &Value| {
        run["outcome"]["finished"]["report"]["measures"]["throughput"]
            .as_f64()
            .unwrap()
    };
    let runs = whole["runs"].as_array().unwrap();
    let mut values: Vec<String> = runs.iter().map(|run| etr(run).to_string()).collect();
    values.sort();
    values.dedup();
    assert_eq!(values.len(), 4, "{values:?}");
    succeed(&mut partita("rerun", &json, folder.path()));
}

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_parent = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{parent}\n"))
    };
    ids.filter(has_parent).collect()
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn runs_end_with_their_command() {
    let _room = room("compare");
    let folder = tempfile::tempdir().unwrap();
    let mut command = on_exercises("compare", folder.path());
    command.args(["--profile", "mainframe-1994", "--jobs", "2", "--seeds", "2"]);
    let mut series = command
        .args(["--vary", "guest.jobs=100000000,100000001"])
        .spawn()
        .unwrap();
    let mut begun = Vec::new();
    while begun.len() < 2 && series.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        begun = children(series.id());
    }
    assert_eq!(begun.len(), 2, "the series has no runs");
    // SIGKILL: it can do nothing any more.
    series.kill().unwrap();
    series.wait().unwrap();
    // A zombie has ended; whoever adopted it has yet to notice.
    let lives = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| status.contains("partita") && !status.contains("State:\tZ"))
    };
    let mut attempts = 0;
    while begun.iter().any(lives) {
        attempts += 1;
        assert!(attempts < 3000, "{begun:?} outlived {}", series.id());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A guest that drives its disk itself, alone on its hart, does not leave it for longer than a window lasts. It works for so long that what
/// it does between its first line and its first read, of which the windows of the two runs may have different parts, hardly counts.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn endless_guests_count_in_the_window() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::write(&disk, vec![0; 1 << 20]).unwrap();
    let system = folder.path().join("alone.toml");
    let text = format!(
        r#"
        harts = 1
        memory = "256 MiB"
        [vm.one]
        vcpus = 1
        memory = "64 MiB"
        share = 100
        kernel = "image:exerciser"
        command-line = "exercise=work duration-ms=1500 terminals=1 steps=1 compute=2000 reads=1 sectors=8 trigger=edge"
        disks = [{{ file = {disk:?} }}]
        "#
    );
    std::fs::write(&system, text).unwrap();
    let json = folder.path().join("report.json");
    let mut command = partita("run", &system, folder.path());
    command.args(["--steady-state", "--profile", "mainframe-1994", "--json"]);
    succeed(command.arg(&json));
    let report = read(&json);
    let elapsed = number(&report["harts"][0], "elapsed");
    let cycles = number(&report["hardware"], "cycles");
    assert!(
        elapsed.abs_diff(cycles) < cycles / 100,
        "{elapsed} of {cycles}"
    );
    let guest = number(&report["vms"][0]["work"][0], "guest");
    assert!(
        guest > elapsed - elapsed / 100 && guest <= elapsed,
        "{guest} of {elapsed}"
    );
    let busy = report["measures"]["busy"].as_f64().unwrap();
    assert!((1.0..50.0).contains(&busy), "{busy}");
    // It does natively what it does here, and is as busy: neither run has its boot in the window.
    for relative in ["elapsed-time-expansion", "cpu-time-expansion"] {
        let more = report["against-native"][relative].as_f64().unwrap();
        assert!(more.abs() < 5.0, "{relative} {more}");
    }
}
