//! The host's end of the machine's UART.

use machine::device::{Clock, Console, Cycles};
use machine::front::{INTERVAL, Pace};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Output is passed on in pieces of at most this many bytes.
const PIECE: usize = 4096;

/// Keys on their way to a console.
#[derive(Debug, Clone, Default)]
pub struct Keys(Arc<Mutex<VecDeque<u8>>>);

impl Keys {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends some.
    pub fn send(&self, keys: &[u8]) {
        self.lock().extend(keys);
    }

    /// Whether none is waiting.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// A line whose output goes to a channel, and whose input comes from [`Keys`].
#[derive(Debug)]
pub struct Line {
    output: Sender<Vec<u8>>,
    held: Vec<u8>,
    keys: Keys,
    /// Somebody is at the console, and time does not run ahead of theirs.
    pace: Option<Pace>,
}

impl Line {
    /// A line. With `interactive` it is always listened to, and machine time does not run ahead of the host's.
    pub fn new(output: Sender<Vec<u8>>, keys: Keys, interactive: bool) -> Self {
        Self {
            output,
            held: Vec::new(),
            keys,
            pace: interactive.then(Pace::new),
        }
    }

    fn pass_on(&mut self) {
        if !self.held.is_empty() {
            // Whoever does not listen any more has no need to.
            let _ = self.output.send(std::mem::take(&mut self.held));
        }
    }
}

impl Console for Line {
    fn put(&mut self, byte: u8) {
        self.held.push(byte);
        if byte == b'\n' || self.held.len() >= PIECE {
            self.pass_on();
        }
    }

    fn get(&mut self, _now: Cycles) -> Option<u8> {
        self.pass_on();
        self.keys.lock().pop_front()
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        let nanoseconds = INTERVAL.as_nanos() as u64;
        let next = now.after(clock.cycles_in_nanoseconds(nanoseconds));
        if let Some(pace) = &self.pace {
            pace.wait();
            return Some(next);
        }
        (!self.keys.is_empty()).then_some(next)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.pass_on();
    }
}
