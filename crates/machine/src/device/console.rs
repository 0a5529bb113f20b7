//! The host's side of a serial line.

use super::{Clock, Cycles};

/// Other end of a UART or a console port.
///
/// A run is repeatable if its consoles are: a script that gives its bytes at given machine times
/// is; a person at a terminal is not.
pub trait Console: core::fmt::Debug + Send {
    /// Takes a byte from the guest.
    fn put(&mut self, byte: u8);

    /// Takes a byte from the guest that arrives at this machine time, for consoles that keep times.
    fn put_at(&mut self, byte: u8, _now: Cycles) {
        self.put(byte);
    }

    /// Gives the next byte that has arrived by `now`, if any.
    fn get(&mut self, _now: Cycles) -> Option<u8> {
        None
    }

    /// When to ask for input next; `None` for never again. Later than `now`.
    fn next_input(&self, _now: Cycles, _clock: &Clock) -> Option<Cycles> {
        None
    }
}

/// A console that drops what it gets and never says anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Console for Silent {
    fn put(&mut self, _byte: u8) {}
}

/// A console that says given bytes at given times, and keeps what it hears.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Bytes to say with their machine times, earliest first.
    pub input: std::collections::VecDeque<(Cycles, Vec<u8>)>,
    /// Bytes that the guest has put.
    pub output: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    spoken: usize,
}

impl Script {
    /// A script that says `input`: machine time and bytes, earliest first.
    #[must_use]
    pub fn new(input: impl IntoIterator<Item = (Cycles, Vec<u8>)>) -> Self {
        Self {
            input: input.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Console for Script {
    fn put(&mut self, byte: u8) {
        if let Ok(mut output) = self.output.lock() {
            output.push(byte);
        }
    }

    fn get(&mut self, now: Cycles) -> Option<u8> {
        loop {
            let (at, bytes) = self.input.front()?;
            if *at > now {
                return None;
            }
            if let Some(&byte) = bytes.get(self.spoken) {
                self.spoken += 1;
                return Some(byte);
            }
            self.input.pop_front();
            self.spoken = 0;
        }
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        let (at, _) = self.input.front()?;
        // What has been said in part waits for room: look again after a millisecond.
        Some((*at).max(now.after(clock.cycles_in_nanoseconds(1_000_000))))
    }
}
