//! Long runs of stock Debian guests that reach their disks in every way at once, while operations fail and one guest is stopped and started.
//!
//! The guests use bare disks: a file system would not outlast a disk that fails one operation in ten.

use super::common::{hypervisor, room};
use super::sum;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use system::cache::Cache;
use system::image::archive::Writer;

/// The guests' first process.
const INIT: &str = include_str!("init");
/// Bytes of each guest's disk.
const DISK: u64 = 16 << 20;
/// How disks behave: the time and the depth of `k3-class`, and one operation in ten fails.
const DISKS: &str = "
[disk.service]
fixed_nanoseconds = 58_824
queue_depth = 29
[disk.faults]
errors = { per_million = 100_000 }
late_interrupts = { per_million = 10_000 }
late_nanoseconds = 200_000
";
/// Blocks of which the victim tells before it is stopped.
const BLOCKS: usize = 20;
/// The VMs: name, placement, `io`, and the disk.
const VMS: [(&str, &str, &str, &str); 4] = [
    ("general", "paged", "general", "{ file = \"DISK\" }"),
    ("fast", "resident", "fast", "{ file = \"DISK\" }"),
    ("handshake", "resident", "direct", "{ file = \"DISK\" }"),
    (
        "slice",
        "resident",
        "direct",
        "{ slice-of = \"shared\", offset = \"0 B\", size = \"16 MiB\" }",
    ),
];

/// Conditions of a run.
struct Run {
    on: &'static str,
    rounds: u32,
    /// One operation in ten fails.
    errors: bool,
    /// The VM that is stopped in the midst of its writes, and started.
    victim: Option<&'static str>,
    /// The machine checks for stale translations.
    checked: bool,
}

#[test]
#[ignore = "soak: four Debian guests on two harts for minutes; make soak runs it"]
fn soak_guests_reach_failing_disks_every_way() {
    for victim in ["fast", "slice"] {
        survive(&Run {
            on: "machine",
            rounds: 2,
            errors: true,
            victim: Some(victim),
            checked: false,
        });
    }
}

#[test]
#[ignore = "soak: four Debian guests on QEMU for minutes; make soak runs it"]
fn soak_guests_reach_disks_on_qemu() {
    survive(&Run {
        on: "qemu",
        // The others are still at work when the victim has told of its blocks; with two they had ended on a fast host.
        rounds: 4,
        errors: false,
        victim: Some("general"),
        checked: false,
    });
}

#[test]
#[ignore = "soak: four Debian guests, each of whose translations is looked at; make soak runs it"]
fn soak_disk_io_leaves_no_stale_translation() {
    survive(&Run {
        on: "machine",
        rounds: 1,
        errors: true,
        victim: None,
        checked: true,
    });
}

/// Debian's initial RAM disk with fio and the libraries that it needs, and another first process: later files of an archive take the place of earlier
/// ones.
fn initrd(folder: &Path) -> PathBuf {
    let debian = Cache::from_environment().unwrap().folder().join("debian");
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    let dump = Command::new("debugfs")
        .args(["-R", &format!("rdump /usr {}", tree.display())])
        .arg(debian.join("disk"))
        .output()
        .expect("the package e2fsprogs has debugfs");
    assert!(dump.status.success(), "{dump:?}");
    let mut archive = Writer::new();
    add(&mut archive, &tree, "usr");
    archive.file("init", 0o755, INIT.as_bytes()).unwrap();
    let mut bytes = fs::read(debian.join("initrd")).unwrap();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes.extend(archive.finish());
    let path = folder.join("initrd");
    fs::write(&path, bytes).unwrap();
    path
}

/// Adds what lies below a folder, in the order of the names, without the largest program.
fn add(archive: &mut Writer, tree: &Path, name: &str) {
    archive.folder(name).unwrap();
    let entries = fs::read_dir(tree.join(name)).unwrap();
    let mut entries: Vec<_> = entries.map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{name}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add(archive, tree, &name);
        } else if !name.ends_with("stress-ng") {
            let data = fs::read(entry.path()).unwrap();
            archive.file(&name, 0o755, &data).unwrap();
        }
    }
}

/// The system's file.
fn system(folder: &Path, run: &Run) -> PathBuf {
    let rounds = run.rounds;
    let initrd = initrd(folder);
    let disk = folder.join("disk");
    fs::File::create(&disk).unwrap().set_len(DISK).unwrap();
    let disk = disk.display().to_string();
    let mut text = format!(
        "harts = 2\nmemory = \"3 GiB\"\nguest-interrupt-files = 7\nexperiment.migration = \"always\"\nwhen-idle = \"power-off\"\n\
         [disk.shared]\nfile = \"{disk}\"\n"
    );
    for (name, placement, io, its) in VMS {
        let its = its.replace("DISK", &disk);
        // The only vCPU of a VM is told of several operations at once while it is at work.
        let vcpus = if name == "fast" { 1 } else { 2 };
        let is_victim = if run.victim == Some(name) {
            "yes"
        } else {
            "no"
        };
        text += &format!(
            "[vm.{name}]\nvcpus = {vcpus}\nmemory = \"256 MiB\"\nplacement = \"{placement}\"\nio = \"{io}\"\nshare = 25\n\
             kernel = \"image:debian/kernel\"\ninitrd = {initrd:?}\n\
             command-line = \"console=ttyS0 quiet ways.rounds={rounds} ways.until-stopped={is_victim}\"\ndisks = [{its}]\n"
        );
    }
    let path = folder.join("ways.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Reads the console until a line that holds `words` has come, and returns what came. The run's own limit ends a wait for what never comes.
fn wait_for(console: &mut impl BufRead, words: &str) -> String {
    let mut text = String::new();
    while !text.contains(words) {
        let read = console.read_line(&mut text).unwrap();
        assert_ne!(read, 0, "{words:?} never came:\n{text}");
    }
    text
}

/// Runs the four guests, and asserts that each block was what it should be, that no operation was lost or made twice, that as many failed as the
/// profile says, and that the fast way served what it should.
fn survive(run: &Run) {
    let _room = room(run.on);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.arg("run").arg(system(folder.path(), run));
    command.args(["--on", run.on, "--timeout", "7200", "--without-native"]);
    command.arg("--hypervisor").arg(hypervisor());
    command.arg("--control").arg(file("socket"));
    command.arg("--json").arg(file("report"));
    if run.on == "machine" {
        let faults = if run.errors { DISKS } else { "" };
        let ideal = include_str!("../../../../../profiles/ideal.toml");
        fs::write(file("profile.toml"), format!("{ideal}{faults}")).unwrap();
        command.arg("--profile").arg(file("profile.toml"));
        command.arg("--monitor").arg(file("monitor"));
    }
    if run.checked {
        command.args(["--check-translations", "--check-after", "6"]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut console = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    // A client that has gone is not served any more.
    let mut operator = None;
    if let Some(victim) = run.victim {
        said += &wait_for(&mut console, &format!("[{victim}] partita-guest start"));
        let mut client = std::os::unix::net::UnixStream::connect(file("socket")).unwrap();
        // It writes until it is stopped, and its disk has told of as many blocks.
        for _ in 0..BLOCKS {
            said += &wait_for(&mut console, &acknowledged(victim));
        }
        client
            .write_all(format!("vm stop {victim}\n").as_bytes())
            .unwrap();
        // What it has under way ends first, and its memory is given back.
        said += &wait_for(&mut console, &format!("{victim}: stopped (operator)"));
        client
            .write_all(format!("vm start {victim}\n").as_bytes())
            .unwrap();
        operator = Some(client);
    }
    console.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    drop(operator);
    assert!(status.success(), "{status}\n{said}");
    assert!(
        !said.contains("ok=no") && !said.contains("may be stale"),
        "{said}"
    );
    for (vm, ..) in VMS {
        let last = format!("[{vm}] partita-ways round number={} ok=yes", run.rounds);
        assert!(said.contains(&last), "{vm}\n{said}");
    }
    if let Some(victim) = run.victim {
        check_blocks(victim, &said);
    }
    let stopped = said.contains("stopped (operator)");
    assert_eq!(stopped, run.victim.is_some(), "{said}");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(file(name)).unwrap()).unwrap()
    };
    check_hits(&read("report"));
    if run.on == "machine" {
        check_operations(run, &said, &read("monitor"));
    }
}

/// Console line about a block that the victim's disk has.
fn acknowledged(victim: &str) -> String {
    format!("[{victim}] partita-ways acknowledged block=")
}

/// Each block of which the victim told before it was stopped is found by the guest that was started after it.
fn check_blocks(victim: &str, said: &str) {
    let numbers = |words: &str| -> BTreeSet<u32> {
        let lines = said.lines().filter_map(|line| line.split_once(words));
        lines
            .map(|(_, number)| number.trim().parse().unwrap())
            .collect()
    };
    let written = numbers(&acknowledged(victim));
    let kept = numbers(&format!("[{victim}] partita-ways kept block="));
    eprintln!(
        "{victim}: {} blocks written, {} kept",
        written.len(),
        kept.len()
    );
    assert!(
        written.len() >= BLOCKS && written.is_subset(&kept),
        "{written:?} {kept:?}\n{said}"
    );
    assert!(!said.contains("was not stopped"), "{said}");
}

/// At least 99 of 100 chains of the VM with `io = "fast"` took the fast way, and each VM ran on both harts.
fn check_hits(report: &serde_json::Value) {
    for (vm, (name, ..)) in report["vms"].as_array().unwrap().iter().zip(VMS) {
        assert_eq!(vm["name"], name, "{report}");
        assert!(sum(vm, "guest") > 0 && sum(vm, "dispatches") > 0, "{vm}");
        let count = |event: &str| -> u64 {
            let works = vm["work"].as_array().unwrap().iter();
            works
                .filter_map(|work| work["events"][event].as_u64())
                .sum()
        };
        let (fast, general) = (count("request-fast"), count("request-general"));
        eprintln!("{name}: request-fast {fast}, request-general {general}");
        match name {
            "fast" => assert!(fast > 0 && 100 * fast >= 99 * (fast + general), "{vm}"),
            "general" | "slice" => assert!(fast == 0 && general > 0, "{vm}"),
            _ => assert_eq!((fast, general), (0, 0), "{vm}"),
        }
    }
}

/// Each disk did what its guest saw end, no operation more and none less, and one in ten failed.
fn check_operations(run: &Run, said: &str, monitor: &serde_json::Value) {
    let all = monitor["devices"].as_array().unwrap().iter();
    let disks: Vec<_> = all.filter(|device| device["kind"] == "block").collect();
    let figure = |disk: &serde_json::Value, name: &str| disk[name].as_u64().unwrap();
    let mut counts: Vec<_> = disks.iter().map(|disk| figure(disk, "requests")).collect();
    eprintln!("operations of the disks: {counts:?}");
    for (vm, ..) in VMS.iter().filter(|(vm, ..)| run.victim != Some(vm)) {
        let line = format!("[{vm}] partita-ways operations=");
        let after = said.split(&line).nth(1).unwrap();
        let digits = after.split(|c: char| !c.is_ascii_digit()).next().unwrap();
        let ended: u64 = digits.parse().unwrap();
        eprintln!("{vm}: {ended} operations");
        let place = counts.iter().position(|count| *count == ended);
        counts.remove(place.unwrap_or_else(|| panic!("{vm}: {ended} of {disks:?}\n{said}")));
    }
    for disk in disks {
        let (requests, errors) = (figure(disk, "requests"), figure(disk, "errors"));
        assert!(
            requests > 2_000 && (8..=12).contains(&(100 * errors / requests)),
            "{disk}"
        );
    }
}
