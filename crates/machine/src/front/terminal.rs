//! The terminal as the other end of a serial line.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use crate::device::{Clock, Console, Cycles};

/// How often input is looked for, in nanoseconds of machine time.
const INTERVAL: u64 = 1_000_000;

/// Standard output and standard input. What comes from a person at the keyboard makes a run
/// unrepeatable.
#[derive(Debug)]
pub struct Terminal {
    output: Vec<u8>,
    input: Option<Receiver<u8>>,
}

impl Terminal {
    /// A terminal that also listens.
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
        Self {
            output: Vec::new(),
            input: Some(receiver),
        }
    }

    /// A terminal that only shows what it gets.
    #[must_use]
    pub const fn deaf() -> Self {
        Self {
            output: Vec::new(),
            input: None,
        }
    }

    fn flush(&mut self) {
        let mut out = std::io::stdout().lock();
        // Nothing can be done about a closed standard output.
        let _ = out.write_all(&self.output).and_then(|()| out.flush());
        self.output.clear();
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
        if byte == b'\n' || self.output.len() >= 4096 {
            self.flush();
        }
    }

    fn get(&mut self, _now: Cycles) -> Option<u8> {
        if !self.output.is_empty() {
            self.flush();
        }
        self.input.as_ref()?.try_recv().ok()
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        self.input.as_ref()?;
        // At multiples of the interval, whenever the terminal was attached.
        let interval = clock.cycles_in_nanoseconds(INTERVAL).0;
        Some(Cycles((now.0 / interval + 1).saturating_mul(interval)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.flush();
    }
}
