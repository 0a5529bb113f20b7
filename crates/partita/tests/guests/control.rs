//! Commands of an operator while guests run, at the prompt and by the control socket.

use super::common::room;
use super::{run_command, wait_for, with_console};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Single pages of a guest's run are free again when the run is over, and the next run takes them anew.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn faulted_pages_are_freed_at_the_end() {
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
fn guests_share_disks_across_restarts() {
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

/// Answer of a run's metrics.
fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: partita\r\n\r\n")
        .unwrap();
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).unwrap();
    scraped
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
        .args(["--metrics", "127.0.0.1:0"])
        .args(["--quiet", "--timeout", "240"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = notes.find_map(|note| {
        let note = note.unwrap();
        let address = note.strip_prefix("partita: metrics at http://")?;
        Some(String::from(address.strip_suffix("/metrics")?))
    });
    let address = address.unwrap();
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    client
        .write_all(
            b"vm list\n{\"request\":\"command\",\"line\":\"stats\"}\nshare one 30\nnonsense\nvm list\nvm stop one\n",
        )
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
    let ctl = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
        command.arg("ctl").arg(&socket).args(words);
        let Output { status, stdout, .. } = command.output().unwrap();
        (status.code(), String::from_utf8_lossy(&stdout).into_owned())
    };
    let (code, version) = ctl(&["version"]);
    assert_eq!(code, Some(0));
    assert!(version.starts_with("protocol 1, "), "{version}");
    assert!(ctl(&["vm", "list"]).1.contains("share 30"));
    assert!(ctl(&["stats"]).1.contains("dispatches"));
    assert_eq!(ctl(&["vm\tlist"]).0, Some(2));
    let scraped = scrape(&address);
    assert!(scraped.starts_with("HTTP/1.1 200 OK"), "{scraped}");
    let state = "partita_vm_state{vm=\"two\",state=\"running\"} 1";
    assert!(scraped.contains(state), "{scraped}");
    assert_eq!(ctl(&["power-off"]).0, Some(0));
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
    let said = fs::read_to_string(logs.join("partita.log")).unwrap();
    assert!(!said.contains("partita> "), "{said}");
    assert!(!socket.exists());
}
