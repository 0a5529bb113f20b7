//! The user's terminal: whatever ends a run, it is as it was before.

#[path = "common/program.rs"]
#[allow(dead_code, reason = "another test has use for the rest")]
mod program;

use program::{BASE, LOOP, elf};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, LocalModes, OutputModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

type Modes = (LocalModes, InputModes, OutputModes);

/// A terminal, and a command that has it.
struct Session {
    user: OwnedFd,
    keyboard: File,
    before: Modes,
    child: Child,
}

fn modes(terminal: &OwnedFd) -> Modes {
    let found = tcgetattr(terminal).unwrap();
    (found.local_modes, found.input_modes, found.output_modes)
}

impl Session {
    /// Starts the command and waits until it has taken the terminal.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let user = open(name, flags, Mode::empty()).unwrap();
        let before = modes(&user);
        assert!(before.0.contains(LocalModes::ECHO | LocalModes::ICANON));
        let keyboard = File::from(main);
        let mut screen = keyboard.try_clone().unwrap();
        // Somebody must read what is shown, or the command waits for them.
        std::thread::spawn(
            move || while screen.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {},
        );
        let child = Command::new(env!("CARGO_BIN_EXE_partita"))
            .args(arguments)
            .current_dir(folder)
            .env("PARTITA_CACHE", folder.join("cache"))
            .env("PARTITA_FIRMWARE", folder.join("firmware"))
            .stdin(user.try_clone().unwrap())
            .stdout(user.try_clone().unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut session = Self {
            user,
            keyboard,
            before,
            child,
        };
        while modes(&session.user).0.contains(LocalModes::ICANON) {
            if let Some(status) = session.child.try_wait().unwrap() {
                panic!("{status}: {}", session.end().1);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        session
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The command's end and what it said of it. The terminal must be as it was.
    fn end(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(modes(&self.user), self.before, "{status}: {said}");
        (status, said)
    }
}

/// A folder with firmware that does nothing, a kernel, a disk, a system, and profiles.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("firmware", &LOOP.to_le_bytes());
    let kernel = elf(&[LOOP], &[]);
    write("kernel", &program::image());
    let mut hypervisor = kernel;
    // Entry, virtual and physical address: away from the firmware.
    for at in [24, 80, 88] {
        hypervisor[at..at + 8].copy_from_slice(&(BASE + (2 << 20)).to_le_bytes());
    }
    write("hypervisor", &hypervisor);
    write("disk", &[7; 4096]);
    write(
        "system.toml",
        b"harts = 1\nmemory = \"512 MiB\"\n[vm.one]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\n\
          kernel = \"kernel\"\n",
    );
    let ideal = include_str!("../../../profiles/ideal.toml");
    let slow = ideal.lines().map(|line| match line.split_once(" = ") {
        // A slice of machine time, after which a run can be broken off, takes the host seconds then.
        Some(("hertz", _)) => "hertz = 100_000_000_000",
        _ => line,
    });
    write("slow.toml", slow.collect::<Vec<_>>().join("\n").as_bytes());
    folder
}

const MACHINE: [&str; 8] = [
    "machine",
    "--firmware",
    "firmware",
    "--memory",
    "16 MiB",
    "--disk",
    "disk",
    "--harts=1",
];

#[test]
fn terminals_return_after_signal_or_escape() {
    let folder = folder();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let session = Session::start(folder.path(), &MACHINE);
        session.signal(signal);
        let (status, said) = session.end();
        assert_eq!(status.code(), Some(130), "{signal:?}: {said}");
    }
    let mut session = Session::start(folder.path(), &MACHINE);
    session.keyboard.write_all(b"\x1dq").unwrap();
    assert_eq!(session.end().0.code(), Some(130));
    assert_eq!(fs::read(folder.path().join("disk")).unwrap(), [7; 4096]);
}

#[test]
fn terminals_return_after_a_second_signal() {
    let folder = folder();
    let arguments = [&MACHINE[..], &["--profile", "slow.toml"]].concat();
    let session = Session::start(folder.path(), &arguments);
    session.signal(Signal::INT);
    session.signal(Signal::TERM);
    let (status, said) = session.end();
    let by = status.signal().and_then(Signal::from_named_raw);
    assert!(
        matches!(by, Some(Signal::INT | Signal::TERM)),
        "{status}: {said}"
    );
    // The disk is free, and whole.
    let session = Session::start(folder.path(), &MACHINE);
    session.signal(Signal::TERM);
    assert_eq!(session.end().0.code(), Some(130));
    assert_eq!(fs::read(folder.path().join("disk")).unwrap(), [7; 4096]);
}

#[test]
fn top_ends_by_key_and_restores_terminal() {
    let folder = folder();
    let arguments = ["top", "system.toml", "--hypervisor", "hypervisor"];
    for (key, code) in [(b'q', 0), (3, 130)] {
        let mut session = Session::start(folder.path(), &arguments);
        session.keyboard.write_all(&[key]).unwrap();
        let (status, said) = session.end();
        assert_eq!(status.code(), Some(code), "{said}");
    }
}

#[test]
fn stuck_runs_return_the_terminal_when_signalled() {
    let folder = folder();
    let arguments = [
        "run",
        "system.toml",
        "--hypervisor",
        "hypervisor",
        "--console",
        "one",
    ];
    let session = Session::start(folder.path(), &arguments);
    session.signal(Signal::INT);
    session.signal(Signal::TERM);
    let (status, said) = session.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("broken off"), "{said}");
}

/// Output of a command on a terminal with so many columns.
fn shown(columns: u16, arguments: &[&str]) -> String {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let user = open(name, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_col: columns,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&user, size).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(user.try_clone().unwrap())
        .stderr(user)
        .spawn()
        .unwrap();
    let (mut screen, mut shown) = (File::from(main), Vec::new());
    let mut piece = [0; 4096];
    // Linux fails the read when nobody has the other side any more.
    while let Ok(length @ 1..) = screen.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
    }
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[test]
fn lines_fit_narrow_terminals() {
    const COLUMNS: u16 = 60;
    for arguments in [
        &["--help"][..],
        &["run", "-h"],
        &["run", "--help"],
        &["run", "none", "--seed", "99999999999999999999"],
        &["explain"],
        &["explain", "throughput"],
        &["explain", "none"],
        &["profile", "show", "k3-class"],
    ] {
        let shown = shown(COLUMNS, arguments);
        assert!(shown.lines().count() > 1, "{arguments:?}: {shown}");
        for line in shown.lines() {
            let is_one_word = line.split_whitespace().count() == 1;
            let fits = line.chars().count() <= COLUMNS.into();
            assert!(fits || is_one_word, "{arguments:?}: {line}");
        }
    }
}
