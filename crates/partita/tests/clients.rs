//! Programs that drive the command: schedulers of clusters, and the Python package.

mod common;

use common::{hypervisor, room, root};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A system that runs in some milliseconds of machine time.
const SYSTEM: &str = "harts = 2\nmemory = \"1 GiB\"\n\
    [vm.one]\nvcpus = 2\nmemory = \"64 MiB\"\nshare = 50\nkernel = \"image:exerciser\"\n\
    command-line = \"exercise=work duration-ms=4 terminals=6 think-us=200 steps=5 compute=2000 hold=80 lock-count=1\"\n";

/// The series, which both schedulers and one computer make.
const SERIES: [&str; 10] = [
    "compare",
    "it's a system.toml",
    "--vary",
    "spin=wopd,wapd",
    "--seeds",
    "3",
    "--jobs",
    "1",
    "--measure",
    "throughput",
];

/// Runs tasks one after the other as SLURM would. The second task is killed once it has finished a run, and made again.
const SBATCH: &str = r#"#!/bin/sh
script=$(mktemp)
cat >"$script"
for option; do
    case $option in
    --array=1-*) tasks=${option#--array=1-} ;;
    --output=*) log=${option#--output=} ;;
    --chdir=*) cd "${option#--chdir=}" ;;
    --dependency=afterok:7) [ -e "$BESIDE/all-ended-well" ] || exit 1 ;;
    esac
done
if [ -z "${tasks:-}" ]; then
    sh "$script" >"$log" 2>"$BESIDE/table.errors" || exit 1
    echo 8
    exit
fi
SLURM_ARRAY_TASK_ID=2 setsid sh "$script" >/dev/null 2>&1 &
while ! grep -q '"finished"' series/2.jsonl 2>/dev/null && kill -0 $!; do sleep 0.02; done
kill -s KILL -- -$!
wait
[ ! -e series/2.done ] && touch "$BESIDE/was-killed"
touch "$BESIDE/all-ended-well"
for number in $(seq "$tasks"); do
    SLURM_ARRAY_TASK_ID=$number sh "$script" >/dev/null || rm "$BESIDE/all-ended-well"
done
echo '7;cluster'
"#;

fn partita(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.args(arguments).current_dir(folder);
    command.env("PARTITA_CACHE", folder.join("cache"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that succeeds.
fn printed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout
}

fn submit(folder: &Path, scheduler: &[&str]) -> String {
    let options = [
        &["submit"],
        scheduler,
        &["--folder", "series", "--tasks", "2", "--"],
        &SERIES,
    ];
    printed(&mut partita(folder, &options.concat()))
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn clusters_print_one_computer_s_table() {
    let _room = room("machine");
    let hypervisor = hypervisor();
    assert!(hypervisor.is_file());
    let place = || {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SERIES[1]), SYSTEM).unwrap();
        folder
    };
    let alone = place();
    let table = printed(&mut partita(alone.path(), &SERIES));
    assert!(table.contains("3 of 3"), "{table}");

    let slurm = place();
    let beside = tempfile::tempdir().unwrap();
    let sbatch = beside.path().join("sbatch");
    std::fs::write(&sbatch, SBATCH).unwrap();
    std::fs::set_permissions(&sbatch, PermissionsExt::from_mode(0o755)).unwrap();
    let script = submit(slurm.path(), &["--slurm", "--option=--time=5"]);
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(slurm.path())
        .env("PATH", format!("{}:{path}", beside.path().display()))
        .env("BESIDE", beside.path())
        .env("PARTITA_CACHE", slurm.path().join("cache"));
    let told = printed(&mut shell);
    assert!(told.contains("table.log will have the table"), "{told}");
    assert!(beside.path().join("was-killed").exists());
    let log = std::fs::read_to_string(slurm.path().join("series/table.log")).unwrap();
    assert_eq!(log.split_once('\n').unwrap().1, table);
    // The table's own command made no run.
    let errors = std::fs::read_to_string(beside.path().join("table.errors")).unwrap();
    assert!(!errors.contains("to make"), "{errors}");

    let kubernetes = place();
    let claim = ["--kubernetes", "image:1", "--claim", "work"];
    let list: Value = serde_json::from_str(&submit(kubernetes.path(), &claim)).unwrap();
    let shards = &list["items"][0]["spec"];
    assert_eq!(shards["completionMode"], "Indexed");
    for index in 0..shards["completions"].as_u64().unwrap() {
        printed(&mut container(&list["items"][0], kubernetes.path(), index));
    }
    let told = printed(&mut container(&list["items"][1], kubernetes.path(), 0));
    assert_eq!(told.split_once('\n').unwrap().1, table);
}

/// The command of a Job's container, with the claim in `folder`.
fn container(job: &Value, folder: &Path, index: u64) -> Command {
    assert_eq!(job["apiVersion"], "batch/v1");
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> = container["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let built = Path::new(env!("CARGO_BIN_EXE_partita")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .current_dir(folder)
        .env("PATH", path)
        .env("PARTITA_CACHE", folder.join("cache"))
        .env("JOB_COMPLETION_INDEX", index.to_string());
    command
}

#[test]
fn series_that_cannot_be_placed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SYSTEM).unwrap();
    for (series, told) in [
        (&["run", "a.toml"][..], "give compare or sweep"),
        (
            &["compare", "a.toml", "--results=r"],
            "leave --results=r out",
        ),
        (
            &["compare", "a.toml", "--shard", "1/2"],
            "leave --shard out",
        ),
        (&["compare", "--random", "3"], "give a system file"),
        (&["compare", "b.toml"], "b.toml: No such file"),
        (
            &["compare", "a.toml", "--colour"],
            "unexpected argument '--colour'",
        ),
        (
            &["compare", "a.toml", "--set", "a\nPARTITA_TASK\n"],
            "has one line",
        ),
    ] {
        let options = [&["submit", "--slurm", "--"], series].concat();
        let output = partita(folder.path(), &options).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{series:?}: {errors}");
        assert!(errors.contains(told), "{series:?}: {errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn the_python_package_passes_its_tests() {
    let _room = room("machine");
    let output = Command::new("python3")
        .args(["-m", "unittest", "discover", "-t", ".", "-s", "tests"])
        .current_dir(root().join("python"))
        .env("PARTITA", env!("CARGO_BIN_EXE_partita"))
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("Ran ") && !errors.contains("Ran 0 tests"));
}
