//! The command as the shell sees it: what it prints and the code that it ends with.

#[path = "common/program.rs"]
#[allow(dead_code, reason = "another test has use for the rest")]
mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn partita(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(arguments)
        .current_dir(folder)
        .env("PARTITA_CACHE", folder.join("cache"))
        .env("PARTITA_FIRMWARE", folder.join("firmware"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A folder with a system whose kernel does nothing.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernel"), program::image()).unwrap();
    fs::write(
        folder.path().join("system.toml"),
        "harts = 2\nmemory = \"512 MiB\"\n[vm.one]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\n\
         kernel = \"kernel\"\n",
    )
    .unwrap();
    folder
}

#[test]
fn check_says_that_all_is_well() {
    let folder = folder();
    let (code, out, err) = partita(folder.path(), &["check", "system.toml"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("system.toml: no mistakes"), "{out}");
}

#[test]
fn check_reads_kernels_disks_and_standard_input() {
    let folder = folder();
    let (_, out, _) = partita(folder.path(), &["check", "system.toml"]);
    assert!(out.contains("1 VM with 1 vCPU on 2 harts"), "{out}");
    fs::write(folder.path().join("disk"), b"abc").unwrap();
    fs::write(
        folder.path().join("notes"),
        b"a text of some length that is no kernel\n",
    )
    .unwrap();
    let changes = [
        "--set",
        "vm.one.kernel=notes",
        "--set",
        "vm.one.disks=[{ file = \"disk\" }]",
    ];
    let arguments = [&["check", "system.toml"][..], &changes].concat();
    let (code, _, err) = partita(folder.path(), &arguments);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("it is text") && err.contains("3 bytes"),
        "{err}"
    );
    let (code, _, err) = partita(
        folder.path(),
        &["run", "system.toml", "--set", "vm.one.kernel=notes"],
    );
    assert!(code == Some(1) && err.contains("it is text"), "{err}");

    let child = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(["check", "-"])
        .current_dir(folder.path())
        .stdin(fs::File::open(folder.path().join("system.toml")).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(
        child.status.success() && said.contains("no mistakes"),
        "{child:?}"
    );
}

#[test]
fn footprint_adds_up_by_crate_and_module() {
    let folder = folder();
    let program = env!("CARGO_BIN_EXE_partita");
    let arguments = [
        "footprint",
        program,
        "--functions",
        "3",
        "--json",
        "size.json",
    ];
    let (code, out, err) = partita(folder.path(), &arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let json = fs::read_to_string(folder.path().join("size.json")).unwrap();
    let size: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sum = |rows: &serde_json::Value| -> u64 {
        let rows = rows.as_array().unwrap();
        rows.iter().map(|row| row["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&size["crates"]), size["text"].as_u64().unwrap());
    for owner in size["crates"].as_array().unwrap() {
        assert_eq!(sum(&owner["modules"]), owner["bytes"].as_u64().unwrap());
    }
    for word in ["machine::", "partita::command", "core::"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let (code, _, err) = partita(folder.path(), &["footprint", "system.toml"]);
    assert!(
        code == Some(2) && err.contains("system.toml: not a 64-bit"),
        "{err}"
    );
}

#[test]
fn check_finds_methods_that_a_hypervisor_lacks() {
    let folder = folder();
    fs::write(folder.path().join("laboratory"), "a hypervisor").unwrap();
    let product = format!("a hypervisor {}", abi::operator::WITHOUT_PAPERS);
    fs::write(folder.path().join("product"), product).unwrap();
    for (hypervisor, method, expected) in [
        ("laboratory", "spin=wopd", Some(0)),
        ("product", "spin=wapd", Some(0)),
        ("product", "spin=wopd", Some(1)),
        ("missing", "spin=wapd", Some(2)),
    ] {
        let arguments = [
            "check",
            "system.toml",
            "--hypervisor",
            hypervisor,
            "--set",
            method,
        ];
        let (code, _, err) = partita(folder.path(), &arguments);
        assert_eq!(code, expected, "{hypervisor} {method}: {err}");
        let is_refused =
            err.contains("spin = wopd: this hypervisor was built without the papers' methods");
        assert_eq!(is_refused, expected == Some(1), "{err}");
    }
}

#[test]
fn shells_and_man_learn_the_command() {
    let folder = folder();
    for (shell, word) in [
        ("bash", "COMPREPLY"),
        ("zsh", "#compdef partita"),
        ("fish", "complete -c partita"),
    ] {
        let (code, out, _) = partita(folder.path(), &["completions", shell]);
        assert!(
            code == Some(0) && out.contains(word) && out.contains("sweep"),
            "{shell}: {out}"
        );
    }
    let (code, _, err) = partita(folder.path(), &["manual", "man"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for page in [
        "partita.1",
        "partita-run.1",
        "partita-compare.1",
        "partita-machine.1",
    ] {
        let text = fs::read_to_string(folder.path().join("man").join(page)).unwrap();
        assert!(text.contains(".TH") && text.len() > 500, "{page}: {text}");
    }
    let run = fs::read_to_string(folder.path().join("man/partita-run.1")).unwrap();
    assert!(run.contains("quiet"), "{run}");
}

#[test]
fn unwritable_outputs_are_refused_before_a_run() {
    let folder = folder();
    let refused = |arguments: &[&str]| {
        let begun = std::time::Instant::now();
        let (code, _, err) = partita(folder.path(), arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains("none/"), "{arguments:?}: {err}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    };
    fs::write(folder.path().join("firmware"), program::LOOP.to_le_bytes()).unwrap();
    // The hypervisor would never end.
    let system = ["system.toml", "--hypervisor", "kernel"];
    for (command, options) in [
        ("run", &["--json"][..]),
        ("run", &["--monitor"]),
        ("compare", &["--vary", "spin=wopd,wapd", "--csv"]),
        ("compare", &["--report"]),
        ("sweep", &["--over", "harts=1,2", "--json"]),
        ("trace", &["--output"]),
    ] {
        let arguments = [&[command][..], &system, options, &["none/file"]].concat();
        refused(&arguments);
    }
    let machine = [
        "machine",
        "--firmware",
        "firmware",
        "--monitor",
        "none/file",
    ];
    let (code, _, err) = partita(folder.path(), &machine);
    assert!(code == Some(125) && err.contains("none/file"), "{err}");
}

#[test]
fn machines_without_a_kernel_are_refused() {
    let folder = folder();
    fs::write(folder.path().join("firmware"), program::LOOP.to_le_bytes()).unwrap();
    let (code, _, err) = partita(folder.path(), &["machine"]);
    assert!(
        code == Some(125) && err.contains("nothing to boot"),
        "{err}"
    );
    fs::write(folder.path().join("firmware"), b"this is not OpenSBI\n").unwrap();
    for arguments in [
        &["machine", "--kernel", "kernel"][..],
        &["machine", "--firmware", "firmware"],
        &[
            "run",
            "system.toml",
            "--hypervisor",
            env!("CARGO_BIN_EXE_partita"),
        ],
    ] {
        let (code, _, err) = partita(folder.path(), arguments);
        assert!(
            code != Some(0) && err.contains("this is text"),
            "{arguments:?}: {err}"
        );
    }
    let (code, _, err) = partita(
        folder.path(),
        &["machine", "--restore", "kernel", "--harts", "2"],
    );
    assert!(code == Some(2) && err.contains("--harts"), "{err}");
    let (code, _, err) = partita(folder.path(), &["machine", "--restore", "kernel"]);
    assert!(code == Some(125) && err.contains("cannot go on"), "{err}");
}

#[test]
fn check_prints_every_mistake_and_fails() {
    let folder = folder();
    let (code, out, err) = partita(
        folder.path(),
        &[
            "check",
            "system.toml",
            "--set",
            "vm.one.kernel=none",
            "--set",
            "vm.one.vcpu=4",
        ],
    );
    assert_eq!((code, out.as_str()), (Some(1), ""));
    for words in [
        "vm.one.kernel = none: there is no file none",
        "did you mean vcpus?",
        "2 mistakes",
    ] {
        assert!(err.contains(words), "{words:?} is not in:\n{err}");
    }
}

#[test]
fn wrong_command_lines_have_their_own_code() {
    let folder = folder();
    assert_eq!(partita(folder.path(), &["check", "none.toml"]).0, Some(2));
    assert_eq!(partita(folder.path(), &["check"]).0, Some(2));
    assert_eq!(
        partita(folder.path(), &["run", "system.toml", "--timeout", "0"]).0,
        Some(2)
    );
}

#[test]
fn unusable_caches_name_a_remedy() {
    let folder = folder_with_hypervisor();
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(["run", "system.toml", "--hypervisor", "hypervisor"])
        .current_dir(folder.path())
        .env_remove("PARTITA_CACHE")
        .env_remove("XDG_CACHE_HOME")
        // No user can make a folder there.
        .env("HOME", "/proc/nowhere")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{err}");
    assert!(err.contains("/proc/nowhere/.cache/partita: "), "{err}");
    assert!(err.contains("PARTITA_CACHE"), "{err}");
}

#[test]
fn former_options_name_the_present_ones() {
    let folder = folder();
    for (arguments, present) in [
        (&["run", "system.toml", "--passages"][..], "--exit-latency"),
        (&["bench", "--passages"], "--exit-latency"),
        (
            &["machine", "--guest-files", "3"],
            "--guest-interrupt-files",
        ),
        (&["run", "system.toml", "--steady"], "--steady-state"),
        (&["machine", "--gear", "fast"], "--mode"),
        (&["images", "--again"], "--rebuild"),
        (&["top", "system.toml", "--every", "10"], "--interval"),
    ] {
        let (code, _, err) = partita(folder.path(), arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        let expected = format!("is called {present} now");
        assert!(err.contains(&expected), "{arguments:?}: {err}");
    }
}

#[test]
fn senseless_comparisons_are_refused_before_running() {
    let folder = folder();
    fs::write(folder.path().join("hypervisor"), b"\x7fELF").unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["--vary", "spin=wapd,wadp"], "spin = wadp"),
        (&["--vary", "wait=sleep"], "use one of host-interrupt"),
        (&["--vary", "profile=ideal,nothere"], "no profile `nothere`"),
        (&["--vary", "profile.costs.trap=1"], "add --profile NAME"),
        (
            &["--profile", "ideal", "--vary", "profile.costs.trp=1"],
            "did you mean costs.trap?",
        ),
        (
            &["--on", "qemu", "--vary", "profile=ideal"],
            "add --on machine",
        ),
        (&["--vary", "vms=2"], "not so many VMs"),
        (&["--vary", "vcpus=99"], "use 1 to"),
        (&["--vary", "vm.one.dedicated-harts=[0]"], "not both"),
        (
            &["--vary", "spin=wapd", "--vary", "spin=wopd"],
            "varied twice",
        ),
        (&["--measure", "thruput"], "did you mean throughput?"),
    ];
    for (options, expected) in cases {
        let mut arguments = vec!["compare", "system.toml", "--hypervisor", "hypervisor"];
        arguments.extend(["--results", "results.jsonl"]);
        arguments.extend(options);
        let (code, out, err) = partita(folder.path(), &arguments);
        assert!(
            err.contains(expected),
            "{options:?}: {code:?}\n{out}\n{err}"
        );
        assert!(
            code != Some(0) && out.is_empty(),
            "{options:?}: {code:?}\n{out}"
        );
        let kept = fs::read_to_string(folder.path().join("results.jsonl"));
        assert!(
            kept.map_or(0, |text| text.lines().count()) <= 1,
            "{options:?}"
        );
    }
}

#[test]
fn a_run_says_what_it_lacks() {
    let folder = folder();
    let (code, _, err) = partita(
        folder.path(),
        &["run", "system.toml", "--hypervisor", "none"],
    );
    assert_eq!(code, Some(5));
    assert!(err.contains("no hypervisor at none"), "{err}");
    let (code, _, err) = partita(
        folder.path(),
        &[
            "run",
            "system.toml",
            "--hypervisor",
            "kernel",
            "--console",
            "two",
        ],
    );
    assert_eq!(code, Some(5));
    assert!(err.contains("--console two"), "{err}");
    let arguments = ["run", "system.toml", "--hypervisor", "kernel"];
    let (code, out, err) = partita(folder.path(), &arguments);
    assert_eq!((code, out.as_str()), (Some(5), ""));
    assert!(err.contains("kernel is no ELF file"), "{err}");
}

/// A folder with a system that the machine can have, and an ELF file without code for a hypervisor.
fn folder_with_hypervisor() -> tempfile::TempDir {
    let folder = folder();
    let elf = program::elf(&[program::LOOP], &[]);
    fs::write(folder.path().join("hypervisor"), elf).unwrap();
    fs::write(folder.path().join("firmware"), program::LOOP.to_le_bytes()).unwrap();
    folder
}

#[test]
fn unfit_runs_are_refused_before_they_start() {
    let folder = folder_with_hypervisor();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("bad.toml"), "hertz = 0\n").unwrap();
    fs::write(path("disk"), [0; 1024]).unwrap();
    let run = |more: &[&str]| {
        let arguments = ["run", "system.toml", "--hypervisor", "hypervisor"];
        partita(folder.path(), &[&arguments, more].concat())
    };
    let refused = |more: &[&str], code: i32, words: &str| {
        let (found, out, err) = run(more);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{more:?}: {err}");
        assert!(err.contains(words), "{words:?} is not in:\n{err}");
    };
    refused(&["--profile", "none"], 1, "there is no profile `none`");
    refused(&["--profile", "bad.toml"], 1, "bad.toml:1: hertz = 0");
    refused(
        &["--on", "qemu", "--seed", "1"],
        2,
        "--seed is for the machine",
    );
    // More than any host has room for.
    refused(&["--set", "memory=8388608 GiB"], 5, "memory");
    // Somebody else has the disk.
    let disks = "vm.one.disks=[{ file = \"disk\", persistent = true }]";
    let holder = fs::File::open(path("disk")).unwrap();
    holder.lock().unwrap();
    refused(&["--set", disks], 5, "in use by another machine");
    drop(holder);
    let mut permissions = fs::metadata(path("disk")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path("disk"), permissions).unwrap();
    refused(&["--set", disks], 5, "write-protected");
}

#[test]
fn missing_terminals_are_reported() {
    let folder = folder_with_hypervisor();
    let system = fs::read_to_string(folder.path().join("system.toml")).unwrap();
    let system = format!("console = \"one\"\n{system}");
    fs::write(folder.path().join("system.toml"), system).unwrap();
    let arguments = ["run", "system.toml", "--hypervisor", "hypervisor"];
    let (code, out, err) = partita(folder.path(), &arguments);
    assert_eq!((code, out.as_str()), (Some(5), ""), "{err}");
    assert!(
        err.contains("wants a terminal for the console of one"),
        "{err}"
    );
}

#[test]
fn former_words_for_papers_are_refused() {
    let folder = folder();
    for (arguments, told) in [
        (&["papers"][..], "`paper --all`"),
        (&["papers", "--run", "--quick"], "`paper --all`"),
        (&["paper", "spins"], "spins is called 000 now"),
        (
            &["paper", "tlb-reuse", "--quick"],
            "tlb-reuse is called 003 now",
        ),
    ] {
        let (code, _, err) = partita(folder.path(), arguments);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(told), "{err}");
    }
    // Without a paper or --all, and with both.
    for arguments in [&["paper"][..], &["paper", "000", "--all"]] {
        assert_eq!(partita(folder.path(), arguments).0, Some(2));
    }
}

#[test]
fn former_measures_are_refused_with_present_names() {
    let folder = folder();
    let (code, _, err) = partita(folder.path(), &["explain", "etr"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("etr is called throughput now"), "{err}");
}
