//! Whole systems on QEMU and on the machine: `make test` runs these, after it has built the hypervisor and the images.

mod balloon;
mod common;
mod translations;
mod ways;

use common::{hypervisor, room, root};
use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The computers that a system runs on.
const COMPUTERS: [&str; 2] = ["machine", "qemu"];

/// `partita run` of an example on a computer, with the hypervisor that was built.
fn run_command(on: &str, system: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.arg("run").arg(root().join("systems").join(system));
    command
        .args(["--on", on])
        .arg("--hypervisor")
        .arg(hypervisor());
    command
}

/// Runs an example with changes; it must end well. Returns its report.
fn run(on: &str, system: &str, changes: &[&str]) -> serde_json::Value {
    let _room = room(on);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let mut command = run_command(on, system);
    for change in changes {
        command.args(["--set", change]);
    }
    let output = command.arg("--json").arg(&json).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{changes:?}: {}\n{text}\n{errors}",
        output.status
    );
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

/// Sum of a number over all that the harts did for a VM.
fn sum(vm: &serde_json::Value, name: &str) -> u64 {
    vm["work"]
        .as_array()
        .unwrap()
        .iter()
        .map(|work| work[name].as_u64().unwrap())
        .sum()
}

/// Every VM powered off, its kernel without complaints (or the run would have failed), ran on every hart
/// that it may use, and took most interrupts without the hypervisor if it has files of its own.
fn check(report: &serde_json::Value, harts: usize, vms: usize, guest_files: u32) {
    assert_eq!(report["harts"].as_array().unwrap().len(), harts);
    let all = report["vms"].as_array().unwrap();
    assert_eq!(all.len(), vms);
    for vm in all {
        assert_eq!(vm["reason"], "power-off", "{vm}");
        assert!(sum(vm, "guest") > 0 && sum(vm, "dispatches") > 0, "{vm}");
        let own = &vm["guest_interrupts"];
        let own: u64 = ["timer", "ipi", "device"]
            .iter()
            .map(|kind| own[kind].as_u64().unwrap())
            .sum();
        if guest_files != 0 {
            assert!(
                sum(vm, "injected") < own / 10,
                "most of {own} interrupts were injected: {vm}"
            );
        }
    }
}

const SHORT: &str = "console=ttyS0 quiet partita.workload=mixed partita.seconds=3";

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn two_guests_work_with_seven_three_and_no_guest_files() {
    let resident = ["web", "database"].map(|vm| format!("vm.{vm}.placement=\"resident\""));
    // How many of the two have their memory elsewhere than they see it, and their devices with it: on the machine in single pages.
    for (on, files, moved) in [("qemu", 3, 2), ("qemu", 0, 0), ("machine", 7, 1)] {
        let mut changes: Vec<&str> = resident.iter().take(moved).map(String::as_str).collect();
        let files_key = format!("guest-files={files}");
        if moved > 0 {
            // And one of them reaches its devices through the hypervisor.
            changes.push(match on {
                "qemu" => "vm.web.io=\"fast\"",
                _ => "vm.web.io=\"general\"",
            });
        }
        if on == "machine" {
            changes.push("vm.web.placement=\"paged\"");
        }
        changes.push(&files_key);
        let report = run(on, "two-debian.toml", &changes);
        check(&report, 4, 2, files);
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn three_guests_of_four_vcpus_share_two_harts() {
    let lines = ["one", "two", "three"].map(|vm| format!("vm.{vm}.command-line={SHORT}"));
    let changes: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(&run("qemu", "stress-three-on-two.toml", &changes), 2, 3, 7);
}

/// Guests that have no cards of the computer's fetch from each other through a switch, and compare what they got. With an uplink the first
/// reaches the host's network too.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn guests_reach_each_other_through_a_switch() {
    const LINE: &str =
        "console=ttyS0 quiet partita.workload=network partita.guests=3 partita.amount=1";
    let uplink = ["switch.lan.uplink=true", "host-network=\"lan\""];
    for (on, more, outside) in [
        ("machine", &[][..], ""),
        ("qemu", &uplink, "partita.outside=10.0.2.2"),
    ] {
        let lines = [("one", 1), ("two", 2), ("three", 3)].map(|(vm, number)| {
            format!("vm.{vm}.command-line={LINE} partita.number={number} {outside}")
        });
        let lines = lines.iter().map(String::as_str);
        let changes: Vec<&str> = lines.chain(more.iter().copied()).collect();
        let report = run(on, "switched.toml", &changes);
        check(&report, 2, 3, 0);
        let frames = |name: &str| report["measures"][format!("events.{name}")].as_f64();
        let (sent, received) = (frames("frame-sent"), frames("frame-received"));
        // Each of the three sends a MiB to both others, in frames of 1,500 bytes.
        assert!(sent > Some(4_000.0) && received > Some(4_000.0), "{report}");
    }
}

/// Cards of the computer's that are simulated, one of a guest in single pages: what they fetch is compared with what was sent. A card says
/// itself how it is reached.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn guests_reach_each_other_by_cards_that_are_simulated() {
    const LINE: &str = "console=ttyS0 quiet partita.workload=network partita.amount=1";
    for on in COMPUTERS {
        let lines = [("one", 1), ("two", 2)]
            .map(|(vm, number)| format!("vm.{vm}.command-line={LINE} partita.number={number}"));
        let changes = [
            "when-idle=\"power-off\"",
            "vm.three.autostart=false",
            "vm.one.placement=\"paged\"",
            "vm.one.network=[{ network = \"cards\", io = \"fast\" }]",
            "vm.two.network=[{ network = \"cards\", io = \"general\" }]",
            &lines[0],
            &lines[1],
        ];
        let report = run(on, "switched.toml", &changes);
        let of = |vm: usize, name: &str| {
            let vms = report["vms"].as_array().unwrap();
            let work = vms[vm]["work"].as_array().unwrap().iter();
            work.map(|work| work["events"][name].as_u64().unwrap_or(0))
                .sum::<u64>()
        };
        // A MiB comes in 700 frames at least.
        assert!(of(0, "chain-fast") > 700, "{report}");
        assert!(of(1, "chain-general") > 700, "{report}");
        assert_eq!((of(0, "chain-general"), of(1, "chain-fast")), (0, 0));
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_vm_with_dedicated_harts_leaves_the_others_alone() {
    let boot = "console=ttyS0 quiet partita.workload=hackbench partita.seconds=5";
    let report = run(
        "qemu",
        "two-debian.toml",
        &[
            "vm.web={ vcpus = 2, memory = \"512 MiB\", dedicated-harts = [1, 3], kernel = \"image:debian/kernel\", \
             initrd = \"image:debian/initrd\", command-line = \"console=ttyS0 quiet partita.workload=hackbench\" }",
            &format!("vm.database.command-line={boot}"),
        ],
    );
    let harts = |vm: &serde_json::Value| -> Vec<u64> {
        let work = vm["work"].as_array().unwrap().iter();
        work.filter(|work| work["guest"] != 0)
            .map(|work| work["hart"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(harts(&report["vms"][0]), [1, 3]);
    assert_eq!(harts(&report["vms"][1]), [0, 2]);
}

#[test]
#[ignore = "needs QEMU and the images; make test runs it"]
fn the_images_boot_without_a_hypervisor() {
    let _room = room("qemu");
    let cache = partita::cache::Cache::from_environment().unwrap();
    for harts in ["1", "4"] {
        let file = |name: &str| cache.folder().join("debian").join(name);
        let drive = format!(
            "file={},format=raw,if=none,id=disk,snapshot=on",
            file("disk").display()
        );
        let output = Command::new(partita::qemu::PROGRAM)
            .args([
                "-machine",
                "virt,aia=aplic-imsic",
                "-cpu",
                "rv64",
                "-smp",
                harts,
                "-m",
                "512M",
            ])
            .args([
                "-nodefaults",
                "-display",
                "none",
                "-serial",
                "stdio",
                "-no-reboot",
            ])
            .arg("-bios")
            .arg(partita::computer::firmware::find().unwrap())
            .arg("-kernel")
            .arg(file("kernel"))
            .arg("-initrd")
            .arg(file("initrd"))
            .args(["-append", "console=ttyS0 quiet partita.workload=job"])
            .args([
                "-global",
                "virtio-mmio.force-legacy=false",
                "-drive",
                &drive,
            ])
            .args([
                "-device",
                "virtio-blk-device,drive=disk,bus=virtio-mmio-bus.0",
            ])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains(&format!(
                "partita-guest start workload=job cpus={harts} disk=yes"
            )),
            "{text}"
        );
        assert!(text.contains("partita-guest complaints count=0"), "{text}");
        assert!(text.contains("partita-guest end ok=yes"), "{text}");
    }
}

/// Debian by itself on the machine, with a disk that takes its time and whose first request fails.
#[test]
#[ignore = "needs the images; make test runs it"]
fn disks_take_time_and_fail_as_the_profile_says() {
    let _room = room("machine");
    let cache = partita::cache::Cache::from_environment().unwrap();
    let file = |name: &str| cache.folder().join("debian").join(name);
    let folder = tempfile::tempdir().unwrap();
    let (profile, figures) = (
        folder.path().join("slow.toml"),
        folder.path().join("figures"),
    );
    let ideal = include_str!("../../../profiles/ideal.toml");
    let disk =
        "[disk.service]\nfixed_nanoseconds = 100_000\n[disk.faults]\nerrors = { at = [0] }\n";
    fs::write(&profile, format!("{ideal}\n{disk}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args([
            "machine",
            "--gear",
            "fast",
            "--snapshot",
            "--timeout",
            "600",
        ])
        .args(["--append", "console=ttyS0 partita.workload=job"])
        .arg("--kernel")
        .arg(file("kernel"))
        .arg("--initrd")
        .arg(file("initrd"))
        .arg("--disk")
        .arg(file("disk"))
        .arg("--profile")
        .arg(profile)
        .arg("--monitor")
        .arg(&figures)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
    assert!(text.contains("I/O error, dev vda, sector 0"), "{text}");
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(figures).unwrap()).unwrap();
    let disk = &figures["devices"][0];
    let figure = |name: &str| disk[name].as_u64().unwrap();
    assert_eq!(
        (disk["kind"].as_str(), figure("errors")),
        (Some("block"), 1)
    );
    assert!(figure("requests") > 1, "{disk}");
    // A cycle of the ideal machine is a nanosecond.
    assert_eq!(figure("busy_cycles"), figure("requests") * 100_000);
}

/// A `partita run` whose console is fed from here, with its output and its keys.
fn with_console(
    on: &str,
    system: &str,
    console: &str,
    changes: &[&str],
) -> (Child, ChildStdout, ChildStdin) {
    let mut command = run_command(on, system);
    for change in changes {
        command.args(["--set", change]);
    }
    command.args(["--console", console, "--timeout", "240"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let keys = child.stdin.take().unwrap();
    (child, output, keys)
}

/// Reads the console until `words` have come, and returns what came.
fn wait_for(console: &mut impl std::io::Read, words: &str) -> String {
    let begin = Instant::now();
    let (mut text, mut byte) = (String::new(), [0; 1]);
    while !text.ends_with(words) {
        assert!(
            begin.elapsed() < Duration::from_secs(240),
            "{words:?} does not come:\n{text}"
        );
        assert_ne!(
            console.read(&mut byte).unwrap(),
            0,
            "{words:?} never came:\n{text}"
        );
        text.push(char::from(byte[0]));
    }
    text
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_guests_console_can_be_used() {
    for on in COMPUTERS {
        let _room = room(on);
        let (mut child, mut console, mut keys) = with_console(on, "shell.toml", "debian", &[]);
        wait_for(&mut console, "partita-guest start workload=shell");
        wait_for(&mut console, "# ");
        keys.write_all(b"echo 6 times 7 is $((6 * 7))\n").unwrap();
        wait_for(&mut console, "6 times 7 is 42");
        keys.write_all(b"exit\n").unwrap();
        wait_for(&mut console, "interrupts: direct");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// Flag, code and interrupt tell a guest of each change of its allocation (paper 000 §3.1): the exerciser compares them
/// and fails if one hart was not told.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_guest_is_told_how_it_gets_its_harts_while_it_runs() {
    let _room = room("qemu");
    let changes = [
        "harts=3",
        "vm.one.command-line=exercise=allocation duration-ms=12000 changes=4",
        "vm.two.command-line=exercise=heartbeat duration-ms=12000",
    ];
    let (mut child, mut console, mut keys) =
        with_console("qemu", "exercises.toml", "partita", &changes);
    wait_for(&mut console, "allocation start code=0x0 flag=0 harts=0");
    for harts in ["0,1", "shared", "2,1", "shared"] {
        writeln!(keys, "harts one {harts}").unwrap();
        let answer = if harts == "shared" {
            "one: on shared harts"
        } else {
            "one: on harts of its own"
        };
        wait_for(&mut console, answer);
    }
    wait_for(&mut console, "untold=0");
    wait_for(&mut console, "[one] exerciser: PASS allocation");
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn the_escape_key_powers_everything_off() {
    for on in COMPUTERS {
        let _room = room(on);
        let (mut child, mut console, mut keys) = with_console(on, "shell.toml", "debian", &[]);
        wait_for(&mut console, "partita-guest start workload=shell");
        keys.write_all(b"\x1dq").unwrap();
        wait_for(&mut console, "interrupts: direct");
        // Whoever leaves wants it to end: that the guest did not power itself off is no failure.
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_run_that_is_broken_off_leaves_nothing_behind() {
    for on in COMPUTERS {
        let _room = room(on);
        let mut child = run_command(on, "shell.toml")
            .args(["--timeout", "240"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut console = child.stdout.take().unwrap();
        wait_for(&mut console, "partita-guest start workload=shell");
        let id = child.id();
        let interrupt = Command::new("kill")
            .args(["-INT", &id.to_string()])
            .status()
            .unwrap();
        assert!(interrupt.success());
        // Everything that is still said must be read, or it would wait.
        std::io::copy(&mut console, &mut std::io::sink()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        assert!(children.is_err(), "the process is still there");
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_run_that_takes_too_long_is_ended() {
    for on in COMPUTERS {
        let _room = room(on);
        // No host boots Debian in a second.
        let output = run_command(on, "one-debian.toml")
            .args(["--timeout", "1"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{on}: {errors}");
        assert!(errors.contains("--timeout 1"), "{on}: {errors}");
    }
}

/// Nobody waits for a prompt: everything is there before the guest is.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn a_script_reaches_a_guest() {
    let _room = room("machine");
    let (mut child, mut console, mut keys) = with_console("machine", "shell.toml", "debian", &[]);
    keys.write_all(b"echo 6 times 7 is $((6 * 7))\nexit\n")
        .unwrap();
    drop(keys);
    wait_for(&mut console, "6 times 7 is 42");
    wait_for(&mut console, "interrupts: direct");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What a guest's run took in single pages is free again when the run is over, and the next run takes it anew.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn pages_that_came_go_when_the_run_ends() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let initrd = folder.path().join("initrd");
    std::fs::write(&initrd, vec![1; 8 << 20]).unwrap();
    let mut command = run_command("machine", "exercises.toml");
    for change in [
        "vm.one.command-line=exercise=heartbeat duration-ms=0",
        "vm.two.command-line=exercise=heartbeat duration-ms=0",
        "vm.one.placement=paged",
        &format!("vm.one.initrd={initrd:?}"),
    ] {
        command.args(["--set", change]);
    }
    command
        .arg("--control")
        .arg(&socket)
        .args(["--quiet", "--timeout", "240"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let mut answers = std::io::BufRead::lines(std::io::BufReader::new(client.try_clone().unwrap()));
    let mut say = |line: &str| -> String {
        client.write_all(format!("{line}\n").as_bytes()).unwrap();
        answers.next().unwrap().unwrap()
    };
    // How many MiB are free, once the VM is in this state.
    let mut free = |state: &str, question: &str| -> u64 {
        say(question);
        loop {
            let list = say("vm list");
            if list.contains(&format!("one              {state}")) {
                let before = list.split(" MiB of memory free").next().unwrap();
                let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
                return digits.parse().unwrap();
            }
        }
    };
    let running = free("running", "vm list");
    let stopped = free("stopped", "vm stop one");
    let again = free("running", "vm start one");
    // Its initial RAM disk alone is 8 MiB.
    assert!(running + 8 <= stopped, "{running} and {stopped}");
    assert_eq!(again, running);
    child.kill().unwrap();
    let _ = child.wait();
}

/// Stock guests work on slices of one disk. One of them is stopped in the middle of its work and started again: the others notice
/// nothing, and it finds its file system in order.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn guests_share_a_disk_while_one_of_them_is_stopped_and_started() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let (socket, json) = (folder.path().join("socket"), folder.path().join("report"));
    let mut child = run_command("machine", "sliced.toml")
        .arg("--control")
        .arg(&socket)
        .arg("--json")
        .arg(&json)
        .args(["--timeout", "300"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut console = child.stdout.take().unwrap();
    wait_for(&mut console, "[web] partita-guest start workload=fio");
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    client.write_all(b"vm stop web\nvm start web\n").unwrap();
    let mut said = wait_for(&mut console, "[web] partita-guest start workload=fio");
    said += &wait_for(&mut console, "ended:");
    assert!(said.contains("web: stopped (operator)"), "{said}");
    for vm in ["web", "database", "mail"] {
        let result = format!("[{vm}] partita-guest result workload=fio ok=yes");
        assert!(said.contains(&result), "{vm}\n{said}");
    }
    assert_eq!(said.matches("complaints count=0").count(), 3, "{said}");
    std::io::copy(&mut console, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(report["vms"].as_array().unwrap().len(), 3);
}

/// The operator's question has a table for an answer, and programs get the same by the control socket.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn the_operator_and_programs_are_answered() {
    let _room = room("machine");
    let changes = [
        "vm.one.command-line=exercise=heartbeat duration-ms=0",
        "vm.two.command-line=exercise=heartbeat duration-ms=0",
    ];
    let (mut child, mut console, mut keys) =
        with_console("machine", "exercises.toml", "partita", &changes);
    keys.write_all(b"stats\nvm list\n").unwrap();
    wait_for(&mut console, "partita> ");
    let said = wait_for(&mut console, "share 50");
    assert!(
        said.contains("dispatches") && said.contains("SBI calls"),
        "{said}"
    );
    assert!(said.contains("spin reservation"), "{said}");
    keys.write_all(b"\x1dq").unwrap();
    wait_for(&mut console, "interrupts: direct");
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let folder = tempfile::tempdir().unwrap();
    let (socket, logs) = (folder.path().join("socket"), folder.path().join("logs"));
    let mut command = run_command("machine", "exercises.toml");
    for change in changes {
        command.args(["--set", change]);
    }
    command
        .arg("--control")
        .arg(&socket)
        .arg("--logs")
        .arg(&logs)
        .args(["--quiet", "--timeout", "240"]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    client
        .write_all(b"vm list\nstats\nshare one 30\nnonsense\nvm list\nvm stop one\nvm stop two\n")
        .unwrap();
    let answers: Vec<serde_json::Value> = std::io::BufRead::lines(std::io::BufReader::new(client))
        .take(6)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    let lines = |index: usize| answers[index]["lines"].to_string();
    assert!(lines(0).contains("share 50"), "{answers:?}");
    assert_eq!(answers[1]["report"]["vms"][0]["name"], "one", "{answers:?}");
    assert!(lines(2).contains("one: share 30"), "{answers:?}");
    assert!(lines(3).contains("there is no command"), "{answers:?}");
    assert!(lines(4).contains("share 30"), "{answers:?}");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("ended:") && text.lines().count() == 5,
        "{text}"
    );
    assert!(
        fs::read_to_string(logs.join("one.log"))
            .unwrap()
            .contains("exerciser: ")
    );
    assert!(!socket.exists());
}
