//! The terminal as the other end of a serial line.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use super::pace::{INTERVAL, Pace};
use crate::base::{Clock, Cycles};
use crate::device::Console;

/// Ctrl-]: what follows is for this program and not for the machine.
pub const ESCAPE: u8 = 0x1d;
/// Bytes held back at most before they are shown.
const PIECE: usize = 4096;

/// Standard output and standard input. What comes from a person at the keyboard makes a run
/// unrepeatable.
#[derive(Debug)]
pub struct Terminal {
    output: Vec<u8>,
    input: Option<Receiver<u8>>,
    /// Somebody is there, and time does not run ahead of theirs.
    person: Option<Person>,
}

#[derive(Debug)]
struct Person {
    pace: Pace,
    /// Raised when they want the machine to stop.
    stop: Arc<AtomicBool>,
    /// The last key was the escape key.
    escaped: bool,
}

impl Terminal {
    /// A terminal that listens to whatever standard input is.
    #[must_use]
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for byte in std::io::stdin().lock().bytes() {
                let Ok(byte) = byte else { return };
                if sender.send(byte).is_err() {
                    return;
                }
            }
        });
        let mut terminal = Self::deaf();
        terminal.input = Some(receiver);
        terminal
    }

    /// A terminal with a person at the keyboard. Ctrl-] and then `q` raises `stop`; Ctrl-] twice sends it
    /// to the machine.
    #[must_use]
    pub fn for_person(stop: Arc<AtomicBool>) -> Self {
        let mut terminal = Self::new();
        terminal.person = Some(Person {
            pace: Pace::new(),
            stop,
            escaped: false,
        });
        terminal
    }

    /// A terminal that only shows what it gets.
    #[must_use]
    pub const fn deaf() -> Self {
        Self {
            output: Vec::new(),
            input: None,
            person: None,
        }
    }

    fn flush(&mut self) {
        if self.output.is_empty() {
            return;
        }
        let mut out = std::io::stdout().lock();
        // Nothing can be done about a closed standard output.
        let _ = out.write_all(&self.output).and_then(|()| out.flush());
        self.output.clear();
    }
}

impl Person {
    /// Key for the machine, if the terminal does not take it.
    fn key(&mut self, key: u8) -> Option<u8> {
        let escaped = std::mem::replace(&mut self.escaped, false);
        match (escaped, key) {
            (false, ESCAPE) => self.escaped = true,
            (true, b'q') => self.stop.store(true, Ordering::Relaxed),
            _ => return Some(key),
        }
        None
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Console for Terminal {
    fn put(&mut self, byte: u8) {
        self.output.push(byte);
        if byte == b'\n' || self.output.len() >= PIECE {
            self.flush();
        }
    }

    fn get(&mut self, _now: Cycles) -> Option<u8> {
        self.flush();
        loop {
            match self.input.as_ref()?.try_recv() {
                Ok(key) => match &mut self.person {
                    None => return Some(key),
                    Some(person) => {
                        if let Some(key) = person.key(key) {
                            return Some(key);
                        }
                    }
                },
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    self.input = None;
                    return None;
                }
            }
        }
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        self.input.as_ref()?;
        if let Some(person) = &self.person {
            person.pace.wait();
        }
        let nanoseconds = INTERVAL.as_nanos() as u64;
        Some(now.after(clock.cycles_in_nanoseconds(nanoseconds)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_escape_key_takes_the_next_key() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut person = Person {
            pace: Pace::new(),
            stop: stop.clone(),
            escaped: false,
        };
        let mut type_in =
            |keys: &[u8]| -> Vec<u8> { keys.iter().filter_map(|&key| person.key(key)).collect() };
        assert_eq!(type_in(b"ab\x03q"), b"ab\x03q");
        assert_eq!(type_in(&[ESCAPE, ESCAPE, b'q']), [ESCAPE, b'q']);
        assert!(!stop.load(Ordering::Relaxed));
        assert!(type_in(&[ESCAPE, b'q']).is_empty());
        assert!(stop.load(Ordering::Relaxed));
    }
}
