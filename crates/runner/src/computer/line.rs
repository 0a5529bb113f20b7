//! The host's end of the machine's UART.

use super::interface::Piece;
use machine::device::{Clock, Console, Cycles};
use machine::front::{INTERVAL, Pace};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Output is passed on in pieces of at most this many bytes.
const PIECE: usize = 4096;

/// Keys on their way to a console.
#[derive(Debug, Clone)]
pub struct Keys(Arc<Mutex<Waiting>>);

/// Keys that no console has taken yet.
#[derive(Debug)]
struct Waiting {
    keys: VecDeque<u8>,
    /// More may come.
    open: bool,
}

impl Keys {
    /// No keys yet.
    pub fn open() -> Self {
        Self::new(true)
    }

    /// No keys, and none to come.
    pub fn closed() -> Self {
        Self::new(false)
    }

    fn new(open: bool) -> Self {
        let keys = VecDeque::new();
        Self(Arc::new(Mutex::new(Waiting { keys, open })))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends some, even after they have been closed.
    pub fn send(&self, keys: &[u8]) {
        self.lock().keys.extend(keys);
    }

    /// No keys will come any more.
    pub fn close(&self) {
        self.lock().open = false;
    }

    /// Returns whether keys may still come.
    pub fn are_open(&self) -> bool {
        self.lock().open
    }

    /// Returns whether none is waiting.
    pub fn are_none(&self) -> bool {
        self.lock().keys.is_empty()
    }
}

/// A line whose output goes to a channel, and whose input comes from [`Keys`].
#[derive(Debug)]
pub struct Line {
    output: Sender<Piece>,
    clock: Clock,
    held: Vec<u8>,
    /// When the last of them came.
    at: Cycles,
    keys: Keys,
    /// A person is at the console, and machine time does not run ahead of the host's.
    pace: Option<Pace>,
}

impl Line {
    /// A line of a machine with this clock. If it is `paced`, it is listened to until the keys are closed, and
    /// machine time does not run ahead of the host's.
    pub fn new(output: Sender<Piece>, clock: Clock, keys: Keys, paced: bool) -> Self {
        Self {
            output,
            clock,
            held: Vec::new(),
            at: Cycles(0),
            keys,
            pace: paced.then(Pace::new),
        }
    }

    fn pass_on(&mut self) {
        if !self.held.is_empty() {
            // A receiver that is gone needs nothing.
            let _ = self.output.send(Piece {
                bytes: std::mem::take(&mut self.held),
                at: Duration::from_nanos(self.clock.nanoseconds(self.at)),
            });
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

    fn put_at(&mut self, byte: u8, now: Cycles) {
        self.at = now;
        self.put(byte);
    }

    fn get(&mut self, _now: Cycles) -> Option<u8> {
        self.pass_on();
        self.keys.lock().keys.pop_front()
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        let nanoseconds = INTERVAL.as_nanos() as u64;
        let next = now.after(clock.cycles_in_nanoseconds(nanoseconds));
        if let Some(pace) = &self.pace
            && self.keys.are_open()
        {
            pace.wait();
            return Some(next);
        }
        (!self.keys.are_none()).then_some(next)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.pass_on();
    }
}
