//! Keys that come from a pipe or a file: no person waits for a prompt before typing them.

use super::console::plain;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The escape key of a run's terminal: it and the key behind it are not for a guest.
const ESCAPE: u8 = 0x1d;
/// Endings of prompts.
const PROMPTS: [&str; 5] = ["# ", "$ ", "> ", ": ", "? "];
/// How long a prompt must have been there; others may go on to speak above it.
const PROMPT: Duration = Duration::from_millis(300);
/// The operator's prompt, and how long that must have been there: it is put anew behind every line that a guest says.
const OPERATOR: (&str, Duration) = ("partita> ", Duration::from_millis(20));
/// How long any other line that has no end must have been there.
const BEGUN: Duration = Duration::from_secs(60);

/// Keys that wait to be typed, a line at a time.
#[derive(Debug)]
pub(super) struct Script {
    waiting: VecDeque<u8>,
    ended: bool,
    /// When keys were typed last.
    typed: Instant,
    /// Beginning of a line without an end yet, and since when it is shown.
    shown: String,
    since: Instant,
}

impl Script {
    /// No keys.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            waiting: VecDeque::new(),
            ended: false,
            typed: now,
            shown: String::new(),
            since: now,
        }
    }

    /// Takes what was read; nothing if there is no more.
    pub(super) fn take(&mut self, read: &[u8]) {
        self.waiting.extend(read);
        self.ended |= read.is_empty();
    }

    /// The console shows this of a line that has no end yet. A line of another console that is put above it changes nothing.
    pub(super) fn show(&mut self, begun: &str, now: Instant) {
        let shown = plain(begun);
        if !shown.is_empty() && shown != self.shown {
            self.shown = shown;
            self.since = now;
        }
    }

    /// How long it is until the next keys are typed, if nothing changes; `None` if none wait, or nothing asks for any: while a
    /// guest boots, what is typed is lost.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        if *self.waiting.front()? == ESCAPE {
            return Some(Duration::ZERO);
        }
        let wait = match &self.shown[..] {
            "" => return None,
            shown if shown.ends_with(OPERATOR.0) => OPERATOR.1,
            shown if PROMPTS.iter().any(|prompt| shown.ends_with(prompt)) => PROMPT,
            _ => BEGUN,
        };
        let from = self.since.max(self.typed);
        Some(wait.saturating_sub(now.saturating_duration_since(from)))
    }

    /// The next keys, as a keyboard sends them: a line, or the escape key with the one behind it.
    pub(super) fn keys(&mut self, now: Instant) -> Vec<u8> {
        self.typed = now;
        let length = if self.waiting.front() == Some(&ESCAPE) {
            self.waiting.len().min(2)
        } else {
            let ends = |byte: &u8| *byte == b'\n' || *byte == ESCAPE;
            match self.waiting.iter().position(ends) {
                Some(end) => end + usize::from(self.waiting.get(end) == Some(&b'\n')),
                None => self.waiting.len(),
            }
        };
        let keys = self.waiting.drain(..length);
        keys.map(|byte| if byte == b'\n' { b'\r' } else { byte })
            .collect()
    }

    /// Returns whether everything has been typed and no more will come.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_typed_one_a_prompt() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut script = Script::new(start);
        script.show("/ # ", start);
        assert_eq!(script.patience(start), None);
        script.take(b"echo one\necho two\n");
        assert_eq!(script.patience(start), Some(PROMPT));
        assert_eq!(script.patience(after(300)), Some(Duration::ZERO));
        assert_eq!(script.keys(after(300)), b"echo one\r");
        assert_eq!(
            script.patience(after(400)),
            Some(Duration::from_millis(200))
        );
        // What is begun and is no prompt must have been there for long.
        script.show("working", after(500));
        assert_eq!(
            script.patience(after(900)),
            Some(BEGUN - Duration::from_millis(400))
        );
        script.show("/ # \x1b[6n", after(1000));
        assert_eq!(script.patience(after(1000)), Some(PROMPT));
        assert_eq!(script.keys(after(1300)), b"echo two\r");
        assert!(!script.is_over());
        script.take(b"last");
        script.take(b"");
        assert!(!script.is_over());
        assert_eq!(script.keys(after(1900)), b"last");
        assert!(script.is_over());
    }

    #[test]
    fn nothing_is_typed_during_silent_boot() {
        let start = Instant::now();
        let mut script = Script::new(start);
        script.take(b"echo one\n");
        assert_eq!(script.patience(start + Duration::from_secs(1000)), None);
        // A line that is cut where it looks like a prompt goes on at once.
        script.show("[    0.1] device: ", start);
        script.show(
            "[    0.1] device: ready",
            start + Duration::from_millis(100),
        );
        assert_eq!(
            script.patience(start + Duration::from_millis(400)),
            Some(BEGUN - PROMPT)
        );
    }

    #[test]
    fn terminal_setup_is_no_prompt() {
        let start = Instant::now();
        let mut script = Script::new(start);
        script.take(b"root\n");
        // What systemd sends to a console that it opens.
        let setup = "\x1b[!p\x1b]104\x07\x1b[?7h\x1b[6n\x1b]104;1\x1b\\\x1b[32766;32766H\x1b[6n";
        script.show(setup, start);
        assert_eq!(script.patience(start + Duration::from_secs(1000)), None);
        script.show(&format!("{setup}debian login: "), start);
        assert_eq!(script.patience(start), Some(PROMPT));
    }

    #[test]
    fn others_may_speak_above_a_prompt() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut script = Script::new(start);
        script.take(b"vm list\n");
        for at in [0, 100, 200] {
            script.show("partita> \x1b[K", after(at));
            script.show("", after(at + 50));
        }
        assert_eq!(script.patience(after(300)), Some(Duration::ZERO));
    }

    #[test]
    fn talking_guests_leave_operator_prompt_free() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut script = Script::new(start);
        script.take(b"vm list\n");
        for at in [0, 100, 200] {
            script.show("[one] exerciser: heart", after(at));
            script.show("partita> \x1b[K", after(at + 50));
        }
        assert_eq!(script.patience(after(270)), Some(Duration::ZERO));
    }

    #[test]
    fn the_escape_key_does_not_wait() {
        let start = Instant::now();
        let mut script = Script::new(start);
        script.take(b"ls\x1dq");
        script.show("# ", start);
        assert_eq!(script.keys(start), b"ls");
        assert_eq!(script.patience(start), Some(Duration::ZERO));
        assert_eq!(script.keys(start), b"\x1dq");
        assert_eq!(script.patience(start), None);
    }
}
