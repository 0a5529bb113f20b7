//! A run from start to end, which somebody may break off.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::arguments::Arguments;
use super::ending::Ending;
use super::error::FrontError;
use super::raw::{self, RawTerminal};
use crate::machine::{Limit, Machine, Stop};

/// Slices of machine time a second, between which a run can be broken off.
const SLICES: u64 = 100;

/// Conditions outside the machine that end a run.
#[derive(Debug)]
pub(super) struct Stopper {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stopper {
    /// Listens to signals from now on. A second signal ends the process at once, with the terminal as
    /// it was before.
    pub(super) fn new(timeout: Option<u64>) -> Result<Self, FrontError> {
        let flag = Arc::new(AtomicBool::new(false));
        let raised = flag.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| FrontError::Host("signals", error))?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if raised.swap(true, Ordering::Relaxed) {
                    raw::end_by(signal);
                }
            }
        });
        let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        Ok(Self { flag, deadline })
    }

    /// Flag that is raised to break the run off.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }
}

/// Tests whether somebody talks to the machine: a kernel, that is, and not a program for tests.
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
    let exceptions_before = machine.exceptions();
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
            // Only a trap handler that traps itself raises more exceptions than it retires instructions.
            || limit
                .instructions
                .is_some_and(|most| machine.exceptions() - exceptions_before > most)
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
