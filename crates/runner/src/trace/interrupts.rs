//! From a message at an interrupt file to the trap of the hart that handles it.

use machine::device::InterruptFile;
use std::collections::{BTreeMap, VecDeque};

/// A message that no hart has taken yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The number of its arrow.
    pub flow: u64,
    /// When it arrived, in nanoseconds.
    pub at: u64,
    /// The source of the APLIC that caused it; without it, a hart sent it.
    pub source: Option<u32>,
}

/// Messages on their way.
#[derive(Debug, Default)]
pub struct Messages {
    waiting: BTreeMap<(u32, u8), VecDeque<Sent>>,
    next: u64,
    /// The source whose level rose last, and when.
    rose: Option<(u32, u64)>,
}

/// Most messages that wait at one file: later ones are the same interrupt to its handler.
const MAX_WAITING: usize = 64;

/// A guest file by its number; the supervisor's own counts as 0.
const fn number(file: InterruptFile) -> Option<u8> {
    match file {
        InterruptFile::Machine => None,
        InterruptFile::Supervisor => Some(0),
        InterruptFile::Guest(number) => Some(number),
    }
}

impl Messages {
    /// A device's source has a new level.
    pub fn line(&mut self, source: u32, level: bool, now: u64) {
        if level {
            self.rose = Some((source, now));
        }
    }

    /// A message arrives at a file of a hart. The number of its arrow, and the source that it is of.
    pub fn arrive(&mut self, hart: u32, file: InterruptFile, now: u64) -> Option<Sent> {
        let number = number(file)?;
        self.next += 1;
        // A device's message goes out at the moment at which its level rises.
        let source = self
            .rose
            .take()
            .filter(|&(_, at)| at == now)
            .map(|(source, _)| source);
        let sent = Sent {
            flow: self.next,
            at: now,
            source,
        };
        let waiting = self.waiting.entry((hart, number)).or_default();
        if waiting.len() < MAX_WAITING {
            waiting.push_back(sent);
        }
        Some(sent)
    }

    /// A hart takes an external interrupt of this file: every message that waits there is handled.
    pub fn take(&mut self, hart: u32, file: u8) -> Vec<Sent> {
        let waiting = self.waiting.remove(&(hart, file));
        waiting.unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_takes_messages_of_its_file() {
        let mut messages = Messages::default();
        messages.line(9, true, 100);
        let device = messages.arrive(1, InterruptFile::Guest(2), 100).unwrap();
        assert_eq!((device.source, device.at), (Some(9), 100));
        let other = messages.arrive(1, InterruptFile::Guest(3), 100).unwrap();
        assert_eq!(other.source, None);
        let hart = messages.arrive(1, InterruptFile::Guest(2), 150).unwrap();
        assert_eq!(messages.arrive(1, InterruptFile::Machine, 150), None);
        assert_eq!(messages.take(1, 2), [device, hart]);
        assert_eq!(messages.take(1, 2), []);
        assert_eq!(messages.take(0, 3), []);
        assert_eq!(messages.take(1, 3), [other]);
    }
}
