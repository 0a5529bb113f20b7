//! Lines of the hypervisor's own that wait for the UART.

use alloc::collections::VecDeque;

/// Bytes that wait at most.
const MAX_WAITING: usize = 64 << 10;

const LINE_END: &[u8] = b"\r\n";

/// A queue of whole lines with their ends. Lines that find no room are counted.
#[derive(Debug)]
pub(super) struct Lines {
    bytes: VecDeque<u8>,
    lost: u64,
}

impl Lines {
    /// An empty queue, with all the room that it may need.
    pub fn new() -> Self {
        Self {
            bytes: VecDeque::with_capacity(MAX_WAITING),
            lost: 0,
        }
    }

    /// Tests whether `line` fits.
    pub fn has_room(&self, line: &str) -> bool {
        line.len().saturating_add(LINE_END.len()) <= MAX_WAITING.saturating_sub(self.bytes.len())
    }

    /// Adds a line.
    pub fn push(&mut self, prefix: &str, line: &str) {
        let length = prefix.len().saturating_add(line.len()).saturating_add(2);
        if length > MAX_WAITING.saturating_sub(self.bytes.len()) {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let line = line.bytes().filter(|&byte| byte != b'\n');
        self.bytes.extend(prefix.bytes().chain(line));
        self.bytes.extend(LINE_END);
    }

    /// Tests whether a drain would send something.
    pub fn has_output(&self) -> bool {
        !self.bytes.is_empty() || self.lost > 0
    }

    /// Lines that found no room since the last call, once those before them have been sent.
    pub fn take_lost(&mut self) -> Option<u64> {
        let due = self.bytes.is_empty() && self.lost > 0;
        due.then(|| core::mem::take(&mut self.lost))
    }

    /// Takes the oldest line, with its end.
    pub fn take(&mut self) -> Option<impl Iterator<Item = u8> + '_> {
        let at = self.bytes.iter().position(|&byte| byte == b'\n')?;
        Some(self.bytes.drain(..=at))
    }
}
