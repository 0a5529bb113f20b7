//! A run from start to end, which somebody may break off.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::ending::Ending;
use super::{Arguments, FrontError, RawTerminal};
use crate::machine::{Limit, Machine, Stop};

/// Slices of machine time a second, between which a run can be broken off.
const SLICES: u64 = 100;

/// What can end a run from outside.
#[derive(Debug)]
pub(super) struct Stopper {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stopper {
    /// Listens to signals from now on. A second signal ends the process at once.
    pub(super) fn new(timeout: Option<u64>) -> Result<Self, FrontError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let own = || flag.clone();
            signal_hook::flag::register_conditional_default(signal, own())
                .and_then(|_| signal_hook::flag::register(signal, own()))
                .map_err(|error| FrontError::Host("signals", error))?;
        }
        let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        Ok(Self { flag, deadline })
    }

    /// What is raised to break the run off.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }
}

/// Whether somebody talks to the machine: a kernel, that is, and not a program for tests.
pub(super) fn is_person(arguments: &Arguments) -> bool {
    arguments.bare.is_none() && std::io::stdin().is_terminal()
}

/// The terminal for whoever talks to the machine.
pub(super) fn raw_terminal(arguments: &Arguments) -> Result<Option<RawTerminal>, FrontError> {
    is_person(arguments)
        .then(RawTerminal::enter)
        .transpose()
        .map_err(|error| FrontError::Host("the terminal", error))
}

/// Lets the machine run until it ends, the limit is reached, or somebody breaks it off. Shows what a bare
/// program writes to its host.
pub(super) fn follow(machine: &mut Machine, limit: Limit, stop: &Stopper) -> Ending {
    let slice = machine.config().board.clock.cycles_per_second() / SLICES;
    let last_instruction = limit
        .instructions
        .map(|more| machine.retired().saturating_add(more));
    let exceptions_before = exceptions(machine);
    loop {
        let end = machine.now().saturating_add(slice);
        let piece = Limit {
            instructions: last_instruction.map(|last| last.saturating_sub(machine.retired())),
            cycles: Some(limit.cycles.map_or(end, |cycles| cycles.min(end))),
        };
        let stopped = machine.run(piece);
        show_host_output(machine);
        if stopped != Stop::Limit {
            return Ending::Stop(stopped);
        }
        let over = limit.cycles.is_some_and(|cycles| machine.now() >= cycles)
            || last_instruction.is_some_and(|last| machine.retired() >= last)
            || limit
                .instructions
                .is_some_and(|most| exceptions(machine) - exceptions_before > most)
            || stop.deadline.is_some_and(|at| Instant::now() >= at);
        if stop.flag.load(Ordering::Relaxed) {
            return Ending::BrokenOff;
        }
        if over {
            return Ending::Stop(Stop::Limit);
        }
    }
}

/// Shows what a bare program has written to its host.
pub(super) fn show_host_output(machine: &mut Machine) {
    let output = machine.take_host_output();
    let mut terminal = std::io::stdout().lock();
    // Nothing can be done about a closed standard output.
    let _ = terminal.write_all(&output).and_then(|()| terminal.flush());
}

/// Exceptions that all harts together have raised. Whoever handles one retires instructions; only a trap
/// handler that traps itself raises more than it retires.
fn exceptions(machine: &Machine) -> u64 {
    let harts = machine.harts().iter();
    let causes = harts.flat_map(|hart| hart.counts.traps.iter());
    let all = causes.flat_map(|cause| cause.exceptions.iter());
    all.sum()
}
