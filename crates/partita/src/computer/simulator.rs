//! The machine as a computer: it runs in a thread of its own, and is looked after between slices of its time.

use super::line::{Keys, Line};
use super::{Computer, ComputerError, End};
use machine::{Limit, Machine, Stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// Slices of machine time a second, between which it can be stopped.
const SLICES: u64 = 100;

/// The machine, running.
#[derive(Debug)]
struct Simulator {
    keys: Keys,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<End>,
}

/// Lets a machine run.
pub fn start(
    machine: Machine,
    interactive: bool,
    output: Sender<Vec<u8>>,
) -> Result<Box<dyn Computer>, ComputerError> {
    let (keys, stop) = (Keys::default(), Arc::new(AtomicBool::new(false)));
    let (own_keys, own_stop) = (keys.clone(), stop.clone());
    let builder = std::thread::Builder::new().name(String::from("machine"));
    let thread = builder
        .spawn(move || follow(machine, interactive, &output, &own_keys, &own_stop))
        .map_err(|error| ComputerError::Host("a thread for the machine", error))?;
    Ok(Box::new(Simulator { keys, stop, thread }))
}

fn follow(
    mut machine: Machine,
    interactive: bool,
    output: &Sender<Vec<u8>>,
    keys: &Keys,
    stop: &AtomicBool,
) -> End {
    let line = || Box::new(Line::new(output.clone(), keys.clone(), interactive));
    machine.system_mut().devices.attach_console(line());
    let slice = machine.config().board.clock.cycles_per_second() / SLICES;
    let ending = loop {
        let limit = Limit {
            instructions: None,
            cycles: Some(machine.now().saturating_add(slice)),
        };
        match machine.run(limit) {
            Stop::Limit if stop.load(Ordering::Relaxed) => break None,
            Stop::Limit => {}
            // A key may yet end the wait.
            Stop::Idle if !keys.is_empty() => {}
            ending => break Some(ending),
        }
        if !interactive && !keys.is_empty() {
            // Nobody is listened to unless there is something to hear.
            machine.system_mut().devices.attach_console(line());
        }
    };
    machine
        .system_mut()
        .devices
        .attach_console(Box::new(machine::device::Silent));
    let failure = ending
        .and_then(|ending| failure(ending, &machine))
        .or_else(|| missing_fences(&machine));
    // Nobody may be listening any more.
    let _ = output.send(Vec::new());
    End {
        failure,
        monitor: Some(machine.report()),
    }
}

/// The fences that software has left out, if the machine looked for them and there are any.
fn missing_fences(machine: &Machine) -> Option<String> {
    let (found, count) = machine.stale_uses();
    if count == 0 {
        return None;
    }
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    Some(format!(
        "{count} uses of translations that may be stale, the first of each hart:\n{}",
        lines.join("\n")
    ))
}

/// What is wrong with an ending, for people.
pub fn failure(ending: Stop, machine: &Machine) -> Option<String> {
    match ending {
        Stop::PowerOff | Stop::Reset | Stop::Limit | Stop::Marker | Stop::Debugger => None,
        Stop::Exit(code) => Some(format!("the machine was switched off with code {code}")),
        Stop::Idle => {
            let harts = machine.harts().iter().map(machine::hart::Hart::describe);
            let harts: Vec<String> = harts.collect();
            Some(format!(
                "every hart of the machine waits, and nothing will ever wake one:\n{}",
                harts.join("\n")
            ))
        }
    }
}

impl Computer for Simulator {
    fn send(&mut self, keys: &[u8]) {
        self.keys.send(keys);
    }

    fn end(self: Box<Self>, kill: bool) -> std::io::Result<End> {
        self.stop.fetch_or(kill, Ordering::Relaxed);
        let end = self.thread.join();
        end.map_err(|_| std::io::Error::other("the machine's thread failed"))
    }
}
