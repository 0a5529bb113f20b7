//! The long run of Debian guests under each method of keeping translations.

use super::common::{room, root};
use super::run_command;
use abi::system::TlbPurge;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Guest instructions under each method of keeping translations, each looked at.
const INSTRUCTIONS: u64 = 1_000_000_000;

/// Seconds of machine time that are not looked at. Both guests have booted before they are over.
const BOOT: u64 = 12;

/// Two Debian guests of two vCPUs, which start processes, map memory and unmap it until they are stopped, booted once under each way of
/// scheduling. The operator changes the method while they run, from each to the next and back to the first: the machine holds each
/// translation that it uses against the tables.
#[test]
#[ignore = "soak: two boots of two Debian guests and a thousand million instructions, each looked at; make soak runs it"]
fn soak_debian_never_meets_stale_translations() {
    let until = Instant::now() + LIMIT;
    let moving = TlbPurge::ALL.iter().copied();
    let moving = moving.filter(|method| *method != TlbPurge::Keep);
    let there_and_back = moving.clone().chain(moving.rev().skip(1));
    under_each_method(
        &["experiment.migration=\"always\"", "scheduling=\"floating\""],
        there_and_back,
        until,
    );
    let keep = [TlbPurge::Keep].into_iter();
    under_each_method(&["scheduling=\"pinned\""], keep, until);
}

/// How long both boots and all methods together may take by this computer's clock.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// A child that is ended with its owner, and what it has said so far.
struct Running {
    child: Child,
    said: PathBuf,
    until: Instant,
}

impl Running {
    fn new(command: &mut Command, said: PathBuf, until: Instant) -> Self {
        let file = fs::File::create(&said).unwrap();
        let errors = file.try_clone().unwrap();
        let command = command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = command.spawn().unwrap();
        Self { child, said, until }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.said).unwrap()).into_owned()
    }

    /// Waits a moment while it should be running; fails where it has ended, or takes too long.
    fn wait_a_moment(&mut self, what: &str) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{what}: {ended:?}\n{}", self.said());
        self.check_limit(what);
        std::thread::sleep(Duration::from_millis(200));
    }

    fn check_limit(&self, what: &str) {
        assert!(
            Instant::now() < self.until,
            "{what}: not done in {LIMIT:?}\n{}",
            self.said()
        );
    }

    /// Waits for its end; what it has said.
    fn end(mut self) -> String {
        while self.child.try_wait().unwrap().is_none() {
            self.check_limit("the end");
            std::thread::sleep(Duration::from_millis(200));
        }
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets the guests run for so many instructions under each of these methods, and asserts that no translation was stale.
fn under_each_method(changes: &[&str], methods: impl Iterator<Item = TlbPurge>, until: Instant) {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let (socket, logs) = (folder.path().join("socket"), folder.path().join("logs"));
    let profile = folder.path().join("profile.toml");
    // An instruction takes a cycle.
    let ideal = fs::read_to_string(root().join("profiles/ideal.toml")).unwrap();
    let more = "\n[extensions]\npurge_mask = true\npurge_check = true\n";
    fs::write(&profile, ideal + more).unwrap();
    let mut command = run_command("machine", "two-debian.toml");
    let mut set = |change: &str| {
        command.args(["--set", change]);
    };
    set("harts=2");
    for change in changes {
        set(change);
    }
    for vm in ["web", "database"] {
        let line = "console=ttyS0 quiet partita.workload=stress partita.seconds=3600";
        set(&format!("vm.{vm}.vcpus=2"));
        set(&format!("vm.{vm}.command-line=\"{line}\""));
    }
    command.arg("--control").arg(&socket);
    command.arg("--logs").arg(&logs);
    command.args(["--quiet", "--check-translations", "--check-after"]);
    command.arg(BOOT.to_string()).arg("--profile").arg(&profile);
    let mut running = Running::new(&mut command, folder.path().join("said"), until);
    let log = |vm: &str| fs::read_to_string(logs.join(format!("{vm}.log"))).unwrap_or_default();
    while !["web", "database"]
        .map(log)
        .iter()
        .all(|log| log.contains("partita-guest start"))
    {
        running.wait_a_moment("both guests boot");
    }
    let client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(600)))
        .unwrap();
    let mut answers = std::io::BufReader::new(client.try_clone().unwrap());
    let mut asked = client;
    let mut ask = |command: &str| -> serde_json::Value {
        writeln!(asked, "{command}").unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut answers, &mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let guests = |answer: &serde_json::Value| -> u64 {
        let vms = answer["report"]["vms"].as_array().unwrap().iter();
        let works = vms.flat_map(|vm| vm["work"].as_array().unwrap());
        works.map(|work| work["guest"].as_u64().unwrap()).sum()
    };
    while ask("stats")["report"]["seconds"].as_f64().unwrap() <= BOOT as f64 {
        running.wait_a_moment("the machine begins to look");
    }
    for method in methods {
        let command = format!("tlb-purge {method}");
        let said = ask(&command);
        assert_eq!(said["lines"], serde_json::json!([command]), "{said}");
        let (began, begin) = (Instant::now(), guests(&ask("stats")));
        let mut ran = 0;
        while ran < INSTRUCTIONS {
            running.wait_a_moment(method.name());
            ran = guests(&ask("stats")) - begin;
        }
        eprintln!("{method}: {ran} instructions in {:?}", began.elapsed());
    }
    ask("vm stop web");
    ask("vm stop database");
    let text = running.end();
    assert!(!text.contains("may be stale"), "{changes:?}: {text}");
    assert!(text.contains("ended:"), "{changes:?}: {text}");
}
