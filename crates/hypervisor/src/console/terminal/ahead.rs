//! Bytes that the operator types while a report is awaited or written. They wait for the report's end, in a bounded space.

use alloc::collections::VecDeque;

use super::Command;

/// Bytes that wait at most: some commands of full length.
pub(super) const MAX_AHEAD: usize = 512;

/// Answer to a command that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answering {
    Nothing,
    /// The answer of a command that is being carried out.
    Command,
    /// A report of which no line has been written: harts have still to publish their time.
    AwaitedReport,
    /// A report whose lines come when there is room for them.
    Report,
}

impl Answering {
    /// Answer to this command.
    pub const fn to(command: Command) -> Self {
        match command {
            Command::Stats => Self::AwaitedReport,
            _ => Self::Command,
        }
    }

    /// Returns true if what is typed waits for the answer's end.
    pub const fn holds_input(self) -> bool {
        matches!(self, Self::AwaitedReport | Self::Report)
    }
}

/// Typed bytes that wait. Those without room are counted.
#[derive(Debug)]
pub(super) struct TypedAhead {
    bytes: VecDeque<u8>,
    lost: u64,
}

impl TypedAhead {
    /// Nothing, with all the room that may be needed.
    pub fn new() -> Self {
        Self {
            bytes: VecDeque::with_capacity(MAX_AHEAD),
            lost: 0,
        }
    }

    pub fn push(&mut self, byte: u8) {
        if self.bytes.len() < MAX_AHEAD {
            self.bytes.push_back(byte);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    pub fn take(&mut self) -> Option<u8> {
        self.bytes.pop_front()
    }

    pub fn has_bytes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Number of lost bytes, once those before them have been taken.
    pub fn take_lost(&mut self) -> Option<u64> {
        let due = self.bytes.is_empty() && self.lost > 0;
        due.then(|| core::mem::take(&mut self.lost))
    }
}
