//! Lines of the hypervisor's own that wait for the UART.

use alloc::collections::VecDeque;
use core::fmt::{self, Write};

/// Bytes that wait at most.
pub(super) const MAX_WAITING: usize = 64 << 10;

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

    /// Bytes for which there is room.
    fn room(&self) -> usize {
        MAX_WAITING.saturating_sub(self.bytes.len())
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Tests whether `line` fits.
    fn has_room(&self, line: &str) -> bool {
        line.len().saturating_add(LINE_END.len()) <= self.room()
    }

    /// Adds `text`, each line with `prefix` in front. A line without room is left out as a whole.
    pub fn push(&mut self, prefix: &str, text: fmt::Arguments<'_>) {
        let mut lines = Writer {
            lines: self,
            prefix,
            begun: None,
            fits: true,
        };
        // Text that cannot be formatted ends where it fails.
        let _ = lines.write_fmt(text);
        lines.end();
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

/// Text on its way into the queue, in the pieces in which it is formatted.
struct Writer<'a> {
    lines: &'a mut Lines,
    prefix: &'a str,
    /// Bytes in front of the present line; `None` between two lines.
    begun: Option<usize>,
    /// Set unless the present line has found no room.
    fits: bool,
}

impl Writer<'_> {
    /// Adds a piece of a line, for whose end there is still room then.
    fn add(&mut self, piece: &str) {
        self.fits &= self.lines.has_room(piece);
        if self.fits {
            self.lines.bytes.extend(piece.as_bytes());
        }
    }

    /// Ends the present line, if there is one.
    fn end(&mut self) {
        let Some(begun) = self.begun.take() else {
            return;
        };
        if self.fits {
            self.lines.bytes.extend(LINE_END);
        } else {
            self.lines.bytes.truncate(begun);
            self.lines.lost = self.lines.lost.saturating_add(1);
        }
    }
}

impl Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            if self.begun.is_none() {
                self.begun = Some(self.lines.bytes.len());
                self.fits = true;
                self.add(self.prefix);
            }
            let line = part.strip_suffix('\n');
            self.add(line.unwrap_or(part));
            if line.is_some() {
                self.end();
            }
        }
        Ok(())
    }
}
