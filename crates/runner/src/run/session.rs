//! One run from start to end.

use super::account::{Account, Ending, Outcome};
use super::console::{Relay, behind_prompt};
use super::control::{Asked, Control, Socket};
use super::live::LiveRun;
use super::logs::Logs;
use super::scrape;
use super::script::Script;
use crate::computer::{
    self, Attendance, ComputerError, ComputerKind, Early, POWER_OFF_KEYS, Piece, Setup,
};
use abi::system::RESERVED_NAME;
use machine::front::{RawTerminal, end_by};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{IsTerminal, Read, Write, stdin};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use system::cache::Cache;
use system::image::{self, ImageError, slots::Assignment};
use system::installed;
use system::memory::{free_memory, place};
use system::{Bytes, System};

/// The keys that open the operator's prompt.
const PROMPT_KEYS: &[u8] = b"\x1dm";
/// On the machine a system's time limit is machine time; a run that takes so many times as long of the host's is given
/// up all the same.
const HOST_SECONDS: u32 = 60;

/// Longest wait for an event where nothing is due.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The VM whose console the terminal gets, or `partita` for the operator's prompt; without it what the system
    /// says, if there is a terminal.
    pub console: Option<String>,
    /// When the run is given up, in the host's time; without it, what the system says.
    pub time_limit: Option<Duration>,
    /// The hypervisor's ELF file.
    pub hypervisor: PathBuf,
    /// Shows the firmware's lines too.
    pub verbose: bool,
    /// Shows no line at all, unless the terminal has a console.
    pub quiet: bool,
    /// A folder for a file of each VM's lines.
    pub logs: Option<PathBuf>,
    /// A socket's file, at which programs can say what an operator says at the prompt.
    pub control: Option<PathBuf>,
    /// Where metrics are served; the host chooses port 0.
    pub metrics: Option<SocketAddr>,
    /// Computer to run it on.
    pub on: ComputerKind,
}

/// Why a run could not take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no hypervisor.
    #[error("there is no hypervisor at {path}; build it by `make build`, or name another with --hypervisor", path = .0.display())]
    NoHypervisor(PathBuf),
    /// The hypervisor's file is no ELF file.
    #[error("{path} is no ELF file, and so no hypervisor", path = .0.display())]
    NotHypervisor(PathBuf),
    /// No VM has that name.
    #[error("--console {0}: no VM has this name")]
    NoSuchVm(String),
    /// A person has to type, and there is no terminal.
    #[error(
        "the system wants a terminal for the console of {0}, and standard input is none: run it on one, give it a \
         --timeout, or let it read its keys from standard input by --console {0}"
    )]
    NoTerminal(String),
    /// The image and the VMs do not fit into the memory.
    #[error(
        "a VM's {vm} do not fit into the {memory} beside the system image of {image}; raise memory"
    )]
    Memory {
        /// The system's memory.
        memory: Bytes,
        /// The system image's size.
        image: Bytes,
        /// The VM's.
        vm: Bytes,
    },
    /// The image cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The computer cannot be switched on.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// The host's system refuses something.
    #[error("{0}: {1}")]
    System(&'static str, #[source] std::io::Error),
}

/// Event of a run.
enum Event {
    Console(Piece),
    Keys(Vec<u8>),
    Asked(Asked),
    Signal,
}

/// Runs a checked system whose images are there.
///
/// # Errors
/// The run could not be started.
pub fn run(system: &System, cache: &Cache, options: &Options) -> Result<Outcome, RunError> {
    let person = stdin().is_terminal();
    let own_limit = system.time_limit().map(Duration::from);
    let console = options.console.as_ref().or(system.console.as_ref());
    if let (None, Some(name)) = (&options.console, &system.console)
        && !person
        && options.time_limit.or(own_limit).is_none()
    {
        return Err(RunError::NoTerminal(name.clone()));
    }
    // What a system only wishes for is for people.
    let console = console.filter(|_| person || options.console.is_some());
    let focus = match console {
        Some(name) if name != RESERVED_NAME => {
            let vm = system
                .vm(name)
                .ok_or_else(|| RunError::NoSuchVm(name.clone()))?;
            Some(&vm.name)
        }
        _ => None,
    };
    check_hypervisor(&options.hypervisor)?;
    let slots = Assignment::of(system);
    let image = image::compose(system, &slots, cache, focus)?;
    check_memory(system, image.len() as u64)?;
    let setup = Setup {
        system,
        slots: &slots,
        image: &image,
        hypervisor: &options.hypervisor,
        cache,
    };
    let mut attendance = Attendance {
        keys: console.is_some() || options.control.is_some() || options.metrics.is_some(),
        person: console.is_some() && person,
        paced: console.is_some(),
        time_limit: None,
    };
    let mut limit = options.time_limit;
    if let (Some(own), None) = (own_limit, limit) {
        limit = Some(own);
        if let ComputerKind::Machine(_) = options.on {
            attendance.time_limit = Some(own);
            limit = Some(own.saturating_mul(HOST_SECONDS));
        }
    }
    let focused = focus.map(|name| name.as_str());
    let names = system.vms.iter().map(|vm| vm.name.as_str());
    let logs = options
        .logs
        .as_ref()
        .map(|folder| Logs::create(folder, names, focused));
    let logs = logs
        .transpose()
        .map_err(|error| RunError::System("the logs", error))?;
    let mut session = Session {
        interactive: console.is_some(),
        logs,
        control: Control::default(),
        account: Account::new(focus),
        verbose: options.verbose,
        quiet: options.quiet,
        reports: 0,
        table_is_due: false,
        unwritten: None,
    };
    let ending = session.follow(options, &setup, limit, attendance)?;
    let mut outcome = session.account.judge(ending);
    outcome.unwritten = session.unwritten;
    Ok(outcome)
}

/// Checks that this is a program at all: anything else would be run as it is.
fn check_hypervisor(path: &Path) -> Result<(), RunError> {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut start));
    match read {
        Ok(_) if machine::board::is_elf(&start) => Ok(()),
        Ok(_) => Err(RunError::NotHypervisor(path.to_owned())),
        Err(error) => Err(RunError::System("the hypervisor", error)),
    }
}

/// Checks that VMs, host and image fit, now that the image's size is known.
pub(crate) fn check_memory(system: &System, image: u64) -> Result<(), RunError> {
    let sizes: Vec<Bytes> = system.vms.iter().map(|vm| vm.memory.value).collect();
    let memory = system.memory.value;
    place(free_memory(memory, image).to_vec(), &sizes).map_err(|vm| RunError::Memory {
        memory,
        image: Bytes(image),
        vm,
    })
}

/// A run while it goes on.
struct Session {
    /// Set if the terminal has a console.
    interactive: bool,
    logs: Option<Logs>,
    control: Control,
    account: Account,
    verbose: bool,
    quiet: bool,
    /// How many of the monitor's reports have been looked at.
    reports: usize,
    /// A report came that is shown if the run goes on: the last one is shown with the measures.
    table_is_due: bool,
    /// First failure to write what the console says.
    unwritten: Option<std::io::Error>,
}

impl Session {
    /// Switches the computer on and follows it to its end.
    fn follow(
        &mut self,
        options: &Options,
        setup: &Setup<'_>,
        limit: Option<Duration>,
        attendance: Attendance,
    ) -> Result<Ending, RunError> {
        let interactive = self.interactive;
        let io = |what| move |error| RunError::System(what, error);
        let (events, happened) = channel();
        let console = forward(&events, Event::Console);
        let requests = events.clone();
        let take = move |asked| requests.send(Event::Asked(asked)).is_ok();
        let control = options.control.as_deref();
        let socket = control.map(|path| Socket::listen(path, take.clone()));
        let _socket = socket.transpose().map_err(io("the control socket"))?;
        let metrics = options
            .metrics
            .map(|address| scrape::listen(address, take.clone()));
        if let Some(address) = metrics.transpose().map_err(io("the metrics"))? {
            eprintln!("partita: metrics at http://{address}/metrics");
        }
        let computer = computer::start(&options.on, setup, attendance, console)?;
        listen_for_signals(&events).map_err(io("signals"))?;
        let terminal = interactive
            .then(RawTerminal::enter)
            .transpose()
            .map_err(io("the terminal"))?;
        if attendance.person {
            eprint!("partita: {}\r\n", abi::operator::KEYS);
        }
        if interactive {
            let keys = forward(&events, Event::Keys);
            std::thread::spawn(move || pass_on_keys(&keys));
        }

        let mut live = LiveRun {
            computer,
            relay: Relay::new(),
            script: Script::new(Instant::now()),
            person: attendance.person,
            open_prompt: interactive && !self.account.has_focus(),
            deadline: limit.map(|limit| Instant::now() + limit),
            ending: Ending::Finished,
        };
        let kill = loop {
            let event = happened.recv_timeout(self.wait(&live));
            if let ControlFlow::Break(kill) = self.advance(event, &mut live) {
                break kill;
            }
        };
        if let Some(line) = live.relay.rest() {
            // The run is over; a terminal that is gone changes nothing.
            let _ = self.take(&line, Duration::ZERO, !interactive);
        }
        let end = (live.computer.end(kill)).map_err(io("the end of the computer"))?;
        drop(terminal);
        let ending = match (live.ending, end.early) {
            (Ending::Finished, Some(Early::TimeLimit)) => Ending::TimeLimit,
            (Ending::Finished, Some(Early::Waiting)) => Ending::Waiting,
            (ending, _) => ending,
        };
        self.account.end(end);
        Ok(ending)
    }

    /// Time until something is to be done though no event comes.
    fn wait(&self, live: &LiveRun) -> Duration {
        let limit = live.deadline.map_or(MAX_WAIT, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        let patience = self.patience(&live.script);
        patience.map_or(limit, |patience| limit.min(patience))
    }

    /// Does what an event, or its absence, asks for. Breaks with false when the computer has ended, and with true when it is to be
    /// switched off at once.
    fn advance(
        &mut self,
        event: Result<Event, RecvTimeoutError>,
        live: &mut LiveRun,
    ) -> ControlFlow<bool> {
        let done = match event {
            Ok(Event::Console(piece)) if piece.bytes.is_empty() => {
                return ControlFlow::Break(false);
            }
            Ok(Event::Console(piece)) => self.console(&piece, live),
            Ok(Event::Keys(keys)) => {
                live.type_keys(&keys);
                Ok(())
            }
            Ok(Event::Asked(asked)) => {
                if self.control.take(asked) {
                    live.computer.send(POWER_OFF_KEYS);
                }
                Ok(())
            }
            // Failures to write end the run as a signal does.
            Ok(Event::Signal) => Err(std::io::ErrorKind::Interrupted.into()),
            Err(RecvTimeoutError::Timeout) if live.is_late() => {
                if live.ending != Ending::Finished {
                    return ControlFlow::Break(true);
                }
                live.power_off(Ending::TimeLimit);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(false),
        };
        self.type_what_is_due(live);
        if let Err(error) = done {
            if error.kind() != std::io::ErrorKind::Interrupted {
                self.unwritten.get_or_insert(error);
            }
            if live.ending == Ending::Interrupted {
                return ControlFlow::Break(true);
            }
            live.power_off(Ending::Interrupted);
        }
        ControlFlow::Continue(())
    }

    /// Shows what the console says.
    fn console(&mut self, piece: &Piece, live: &mut LiveRun) -> std::io::Result<()> {
        if self.interactive {
            let shown = self.pass_on(&mut live.relay, piece);
            live.script.show(&live.relay.begun(), Instant::now());
            return shown;
        }
        let lines = live.relay.lines(&piece.bytes);
        lines
            .iter()
            .try_for_each(|line| self.take(line, piece.at, true))
    }

    /// Types the keys of a script, of requests at the socket and of the prompt's opening that are due.
    fn type_what_is_due(&mut self, live: &mut LiveRun) {
        if self.patience(&live.script) == Some(Duration::ZERO) {
            live.computer.send(&live.script.keys(Instant::now()));
        }
        if self.interactive && live.script.is_over() {
            live.computer.close_keys();
        }
        let reports = self.account.reports();
        let report = || self.account.report();
        let back = self.control.answer(&live.relay, reports, report);
        let spoke = self.account.hypervisor_spoke();
        let next = spoke.then(|| self.control.keys(reports));
        for keys in back.into_iter().chain(next.flatten()) {
            live.computer.send(&keys);
        }
        // What is typed before the hypervisor listens goes to the firmware, and is lost.
        if live.open_prompt && spoke {
            live.open_prompt = false;
            live.computer.send(PROMPT_KEYS);
        }
    }

    /// How long it is until keys of a script are typed: what is typed before the hypervisor listens is lost.
    fn patience(&self, script: &Script) -> Option<Duration> {
        let patience = script.patience(Instant::now());
        patience.filter(|_| self.account.hypervisor_spoke())
    }

    /// Passes bytes on to the terminal, and keeps what the lines among them say.
    fn pass_on(&mut self, relay: &mut Relay, piece: &Piece) -> std::io::Result<()> {
        let (mut out, lines) = relay.bytes(&piece.bytes);
        if self.table_is_due && !out.is_empty() {
            self.table_is_due = false;
            out.splice(..0, self.table().into_bytes());
        }
        for line in lines {
            self.take(&line, piece.at, false)?;
        }
        print(&out)?;
        let reports = self.account.reports();
        self.table_is_due |= reports > self.reports;
        self.reports = reports;
        Ok(())
    }

    /// The monitor's present report for a terminal in raw mode, which the operator has asked for.
    fn table(&self) -> String {
        let report = self.account.report();
        let text = report.map_or_else(String::new, |report| format!("\n{report}\n"));
        text.replace('\n', "\r\n")
    }

    /// Keeps what a line says that ended at this time, and shows it if it is for people.
    fn take(&mut self, line: &str, at: Duration, show: bool) -> std::io::Result<()> {
        if self.control.line(line) {
            return Ok(());
        }
        let line = behind_prompt(line);
        if let Some(logs) = &mut self.logs {
            logs.line(line).map_err(of("the logs"))?;
        }
        let for_people = self.account.line(line, at);
        let firmware = !self.account.hypervisor_spoke() && !self.verbose;
        if !show || !for_people || firmware || self.quiet {
            return Ok(());
        }
        print(format!("{line}\n").as_bytes())
    }
}

/// Writes to standard output.
fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(of("standard output"))
}

/// Names the place that an error belongs to.
fn of(place: &str) -> impl FnOnce(std::io::Error) -> std::io::Error {
    move |error| std::io::Error::new(error.kind(), format!("{place}: {error}"))
}

/// A channel whose pieces become events.
fn forward<T: Send + 'static>(events: &Sender<Event>, event: fn(T) -> Event) -> Sender<T> {
    let (pieces, received) = channel();
    let events = events.clone();
    std::thread::spawn(move || {
        for piece in received {
            if events.send(event(piece)).is_err() {
                return;
            }
        }
    });
    pieces
}

/// Sends what is typed until standard input ends, and nothing to say so.
fn pass_on_keys(keys: &Sender<Vec<u8>>) {
    let mut buffer = [0; 256];
    while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
        if keys
            .send(buffer.get(..length).unwrap_or_default().to_vec())
            .is_err()
        {
            return;
        }
    }
    // The run may be over.
    let _ = keys.send(Vec::new());
}

/// The first signal asks for an orderly end, the second for one at once; the third is for a computer that does not
/// come to either.
fn listen_for_signals(events: &Sender<Event>) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let events = events.clone();
    std::thread::spawn(move || {
        for (number, signal) in signals.forever().enumerate() {
            if number >= 2 || events.send(Event::Signal).is_err() {
                end_by(signal);
            }
        }
    });
    Ok(())
}

/// The hypervisor that belongs to the command: see [`system::installed`].
pub fn default_hypervisor(command: &Path) -> PathBuf {
    installed::program(command, "hypervisor")
}
