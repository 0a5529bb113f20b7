//! The guests' backlogs, and the terminal's unfinished line.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use abi::system::{MAX_NAME_LENGTH, VmName};

/// Bytes of a guest's output that wait for the UART at most.
pub const BACKLOG: usize = 4096;
/// Bytes of a line that go out as one; a longer line is broken.
const LINE_LIMIT: usize = 512;
/// Bytes that the guest with the focus sends in one turn.
const RAW_TURN: usize = 128;
/// Bytes of an unfinished line that are kept, so that it can be shown again below another's.
const PARTIAL_LIMIT: usize = 256;
/// Bytes of a guest's name that [`LastLine::raw`] adds to an unfinished line at most, with brackets.
const GUARD: usize = MAX_NAME_LENGTH + 2;
/// Bytes of an unfinished line with all that is sent around it.
pub const LONGEST_PARTIAL: usize = PARTIAL_LIMIT + GUARD + 16;
/// Beginnings of lines that only the hypervisor may send, less their last byte, a space.
const RESERVED: [&[u8]; 2] = [b"partita-monitor", b"[partita]"];

const ESCAPE: u8 = 0x1b;

/// A guest's output on its way out.
#[derive(Debug)]
pub(super) struct Guest {
    name: VmName,
    bytes: VecDeque<u8>,
    line_ends: usize,
    lost: u64,
}

impl Guest {
    pub fn new(name: VmName) -> Self {
        Self {
            name,
            // A line that is ended by force may be one byte longer.
            bytes: VecDeque::with_capacity(BACKLOG + 1),
            line_ends: 0,
            lost: 0,
        }
    }

    pub fn name(&self) -> VmName {
        self.name
    }

    pub fn room(&self) -> usize {
        BACKLOG.saturating_sub(self.bytes.len())
    }

    pub fn push(&mut self, byte: u8) {
        if self.room() == 0 {
            self.lost = self.lost.saturating_add(1);
        } else {
            self.push_unchecked(byte);
        }
    }

    pub fn push_unchecked(&mut self, byte: u8) {
        self.bytes.push_back(byte);
        if byte == b'\n' {
            self.line_ends = self.line_ends.saturating_add(1);
        }
    }

    fn pop(&mut self) -> Option<u8> {
        let byte = self.bytes.pop_front()?;
        if byte == b'\n' {
            self.line_ends = self.line_ends.saturating_sub(1);
        }
        Some(byte)
    }

    pub fn end_line(&mut self) {
        if self.bytes.back().is_some_and(|&last| last != b'\n') {
            self.push_unchecked(b'\n');
        }
    }

    /// Returns true if a drain would send output: any byte if `raw`, otherwise whole lines.
    pub fn has_output(&self, raw: bool) -> bool {
        self.lost > 0 || self.has_line() || raw && !self.bytes.is_empty()
    }

    fn has_line(&self) -> bool {
        self.line_ends > 0 || self.bytes.len() >= LINE_LIMIT
    }

    /// Number of lost bytes, once the output before the loss has been sent.
    pub fn take_lost(&mut self) -> Option<u64> {
        let due = self.lost > 0 && !self.has_line();
        due.then(|| core::mem::take(&mut self.lost))
    }

    /// The next line. A carriage return ends it too, so that no guest gets more of a turn than a line; several make no empty lines.
    pub fn take_line(&mut self) -> Option<Line> {
        if !self.has_line() {
            return None;
        }
        let mut line = Line {
            name: self.name,
            bytes: [0; LINE_LIMIT],
            length: 0,
        };
        for place in &mut line.bytes {
            match self.pop() {
                Some(b'\n') | None => break,
                Some(b'\r') => {
                    self.skip_line_end();
                    break;
                }
                Some(byte) => *place = byte,
            }
            line.length = line.length.saturating_add(1);
        }
        if line.length == LINE_LIMIT {
            // The line's own end must not make an empty line of its own.
            let end: &[u8] = if self.bytes.front() == Some(&b'\r') {
                b"\r\n"
            } else {
                b"\n"
            };
            if self.bytes.iter().take(end.len()).eq(end) {
                for _ in end {
                    self.pop();
                }
            }
        }
        Some(line)
    }

    /// Drops the rest of a line's end, behind its first carriage return.
    fn skip_line_end(&mut self) {
        while self.bytes.front() == Some(&b'\r') {
            self.pop();
        }
        if self.bytes.front() == Some(&b'\n') {
            self.pop();
        }
    }

    /// Sends some bytes as they are.
    pub fn drain_raw(&mut self, last_line: &mut LastLine, sink: &mut dyn FnMut(u8)) {
        for _ in 0..RAW_TURN {
            let Some(byte) = self.pop() else {
                return;
            };
            last_line.raw(byte, self.name, sink);
        }
    }
}

/// A guest's line without its end.
#[derive(Debug)]
pub(super) struct Line {
    name: VmName,
    bytes: [u8; LINE_LIMIT],
    length: usize,
}

impl Line {
    /// Sends the line as others may see it, with the name in front and its end. Control characters
    /// and escape sequences are left out: on a terminal that others share they could change what
    /// others wrote.
    pub fn send(&self, sink: &mut dyn FnMut(u8)) {
        for prefix in [b"[", self.name.as_str().as_bytes(), b"] "] {
            send(prefix, sink);
        }
        send_printable(self.bytes.get(..self.length).unwrap_or_default(), sink);
        send(b"\r\n", sink);
    }
}

/// Sends what is neither a control character (but tab) nor part of an escape sequence (ECMA-48:
/// ESC, or ESC `[` up to a byte from 0x40 to 0x7e).
fn send_printable(text: &[u8], sink: &mut dyn FnMut(u8)) {
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == ESCAPE {
            if bytes.next() == Some(b'[') {
                while bytes
                    .next()
                    .is_some_and(|byte| !(0x40..=0x7e).contains(&byte))
                {}
            }
        } else if byte == b'\t' || !byte.is_ascii_control() {
            sink(byte);
        }
    }
}

/// Last line of the operator's screen.
#[derive(Debug)]
pub(super) struct LastLine {
    /// Text of the last line, shown again below a line that is printed in between. It has its room from the start.
    partial: Vec<u8>,
    /// Set if the last line holds text that is not to be shown again.
    dangling: bool,
}

impl LastLine {
    /// An empty line.
    pub fn new() -> Self {
        Self {
            partial: Vec::with_capacity(LONGEST_PARTIAL),
            dangling: false,
        }
    }

    /// Returns true if the next byte begins a line.
    pub fn is_at_line_start(&self) -> bool {
        self.partial.is_empty() && !self.dangling
    }

    /// Sends a whole line, which brings its own end, and shows again what it interrupted. With
    /// `in_place` it takes the place of the unfinished line.
    pub fn insert(
        &mut self,
        line: impl FnOnce(&mut dyn FnMut(u8)),
        in_place: bool,
        sink: &mut dyn FnMut(u8),
    ) {
        if self.is_at_line_start() {
            // Nothing to interrupt.
        } else if in_place && !self.dangling {
            send(b"\r\x1b[K", sink);
        } else {
            send(b"\r\n", sink);
        }
        self.dangling = false;
        line(sink);
        send(&self.partial, sink);
    }

    /// Sends a byte of the guest that has the focus. A line that only the hypervisor may send gets
    /// the guest's name into it, so that it cannot pass for one.
    pub fn raw(&mut self, byte: u8, name: VmName, sink: &mut dyn FnMut(u8)) {
        if core::mem::take(&mut self.dangling) && self.partial.is_empty() {
            send(b"\r\n", sink);
        }
        if byte == b' ' {
            let text = self
                .partial
                .rsplit(|&byte| byte == b'\r')
                .next()
                .unwrap_or(&[]);
            if RESERVED.contains(&text) {
                for guard in [b"[", name.as_str().as_bytes(), b"]"] {
                    send(guard, sink);
                    self.partial.extend_from_slice(guard);
                }
            }
        }
        sink(byte);
        if byte == b'\n' {
            self.partial.clear();
        } else if self.partial.len() < PARTIAL_LIMIT {
            self.partial.push(byte);
        } else {
            self.forget_partial_line();
        }
    }

    /// Puts the operator's prompt and what is typed in the place of the unfinished line.
    pub fn replace_partial_line(&mut self, text: [&str; 2], sink: &mut dyn FnMut(u8)) {
        if core::mem::take(&mut self.dangling) {
            send(b"\r\n", sink);
        }
        self.partial.clear();
        for part in text {
            self.partial.extend_from_slice(part.as_bytes());
        }
        send(b"\r", sink);
        send(&self.partial, sink);
        send(b"\x1b[K", sink);
    }

    /// Ends the unfinished line, if there is one.
    pub fn end_partial_line(&mut self, sink: &mut dyn FnMut(u8)) {
        if !self.is_at_line_start() {
            send(b"\r\n", sink);
        }
        self.dangling = false;
        self.partial.clear();
    }

    /// Drops the text of the last line: no later line repeats it.
    pub fn forget_partial_line(&mut self) {
        self.dangling = !self.is_at_line_start();
        self.partial.clear();
    }
}

fn send(bytes: &[u8], sink: &mut dyn FnMut(u8)) {
    bytes.iter().copied().for_each(sink);
}
