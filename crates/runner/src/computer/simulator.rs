//! The machine as a computer: it runs in a thread of its own, and is looked after between slices of its time.

use super::error::ComputerError;
use super::interface::{Attendance, Computer, Early, End, GRACE, POWER_OFF_KEYS, Piece};
use super::line::{Keys, Line};
use crate::storms::{Runs, Watcher};
use crate::terminals::Users;
use machine::front::INTERVAL;
use machine::{Limit, Machine, Stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

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
    users: Users,
    attendance: Attendance,
    check_after: Option<Duration>,
    output: Sender<Piece>,
) -> Result<Box<dyn Computer>, ComputerError> {
    let keys = if attendance.keys {
        Keys::open()
    } else {
        Keys::closed()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (own_keys, own_stop) = (keys.clone(), stop.clone());
    let builder = std::thread::Builder::new().name(String::from("machine"));
    let thread = builder
        .spawn(move || {
            let end = follow(
                machine,
                attendance,
                check_after,
                &output,
                &own_keys,
                &own_stop,
            );
            End {
                users: Some(users),
                ..end
            }
        })
        .map_err(|error| ComputerError::Host("a thread for the machine", error))?;
    Ok(Box::new(Simulator { keys, stop, thread }))
}

fn follow(
    mut machine: Machine,
    attendance: Attendance,
    check_after: Option<Duration>,
    output: &Sender<Piece>,
    keys: &Keys,
    stop: &AtomicBool,
) -> End {
    let watcher = Watcher::attach(&mut machine, Runs::Hypervisor);
    machine.watch_stretches();
    let clock = machine.config().board.clock;
    let line = || {
        Box::new(Line::new(
            output.clone(),
            clock,
            keys.clone(),
            attendance.paced,
        ))
    };
    machine.system_mut().devices.attach_console(line());
    let cycles = |time: Duration| {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        clock.cycles_in_nanoseconds(nanoseconds).0
    };
    let slice = clock.cycles_per_second() / SLICES;
    let mut latest = attendance.time_limit.map(cycles);
    let mut check_from = check_after.map(cycles);
    let mut early = None;
    let ending = loop {
        if check_from.take_if(|from| machine.now() >= *from).is_some() {
            machine.check_translations();
        }
        let end = machine.now().saturating_add(slice);
        let limit = Limit {
            instructions: None,
            cycles: Some(latest.map_or(end, |latest| latest.min(end))),
        };
        let stopped = machine.run(limit);
        let reason = match stopped {
            Stop::Limit | Stop::Idle if stop.load(Ordering::Relaxed) => break None,
            Stop::Limit if latest.is_some_and(|latest| machine.now() >= latest) => {
                Some(Early::TimeLimit)
            }
            Stop::Limit => None,
            // A key may yet end the wait.
            Stop::Idle if !keys.are_none() => None,
            Stop::Idle if keys.are_open() => {
                std::thread::sleep(INTERVAL);
                None
            }
            Stop::Idle if early.is_none() => Some(Early::Waiting),
            ending => break Some(ending),
        };
        if reason.is_some() {
            if early.is_some() {
                break None;
            }
            early = reason;
            keys.send(POWER_OFF_KEYS);
            latest = Some(machine.now().saturating_add(cycles(GRACE)));
        }
        let heard = attendance.paced && keys.are_open();
        if !heard && (keys.are_open() || !keys.are_none()) {
            // A line that is not paced is listened to only while keys wait. Their sender may wait for a prompt, which
            // the old line passes on as it goes.
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
    // The receiver may be gone.
    let _ = output.send(Piece {
        bytes: Vec::new(),
        at: Duration::from_nanos(clock.nanoseconds(machine::device::Cycles(machine.now()))),
    });
    End {
        failure,
        monitor: Some(machine.report()),
        storms: watcher.map(|watcher| watcher.storms()),
        users: None,
        early,
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

/// The failure of an ending, for people.
pub fn failure(ending: Stop, machine: &Machine) -> Option<String> {
    match ending {
        Stop::PowerOff | Stop::Reset | Stop::Limit | Stop::Marker | Stop::Debugger => None,
        Stop::Exit(code) => Some(format!("the machine was switched off with code {code}")),
        Stop::Idle => Some(describe(
            "every hart of the machine waits, and nothing will ever wake one",
            machine,
        )),
        Stop::Stuck => Some(describe(
            "every hart of the machine traps at the first instruction of its trap handler, for ever",
            machine,
        )),
    }
}

/// The failure, with the state of the harts.
fn describe(what: &str, machine: &Machine) -> String {
    let harts = machine.harts().iter().map(machine::hart::Hart::describe);
    let harts: Vec<String> = harts.collect();
    format!("{what}:\n{}", harts.join("\n"))
}

impl Computer for Simulator {
    fn send(&mut self, keys: &[u8]) {
        self.keys.send(keys);
    }

    fn close_keys(&mut self) {
        self.keys.close();
    }

    fn end(self: Box<Self>, kill: bool) -> std::io::Result<End> {
        self.stop.fetch_or(kill, Ordering::Relaxed);
        let end = self.thread.join();
        end.map_err(|_| std::io::Error::other("the machine's thread failed"))
    }
}
