//! Keys that come from a pipe or a file: nobody is there who would wait for a prompt before typing.

use super::console::plain;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The escape key of a run's terminal: it and the key behind it are not for a guest.
const ESCAPE: u8 = 0x1d;
/// What prompts end with.
const PROMPTS: [&str; 5] = ["# ", "$ ", "> ", ": ", "? "];
/// How long a prompt must have been there.
const PROMPT: Duration = Duration::from_millis(300);
/// How long a console must have been quiet where it shows none.
const QUIET: Duration = Duration::from_secs(5);

/// Keys that wait to be typed, a line at a time.
#[derive(Debug)]
pub(super) struct Script {
    waiting: VecDeque<u8>,
    ended: bool,
    /// When keys were typed last, or became the next to be.
    typed: Instant,
    /// When the console said something last.
    heard: Instant,
}

impl Script {
    /// No keys.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            waiting: VecDeque::new(),
            ended: false,
            typed: now,
            heard: now,
        }
    }

    /// Takes what was read; nothing if there is no more.
    pub(super) fn take(&mut self, read: &[u8]) {
        self.waiting.extend(read);
        self.ended |= read.is_empty();
    }

    /// The console has said something.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// How long it is until the next keys are typed, if no more is said; `None` if none wait. `begun` is what the console shows
    /// of a line that has no end yet.
    pub(super) fn patience(&self, begun: &str, now: Instant) -> Option<Duration> {
        let first = self.waiting.front()?;
        if *first == ESCAPE {
            return Some(Duration::ZERO);
        }
        let shown = plain(begun);
        let (from, wait) = if PROMPTS.iter().any(|prompt| shown.ends_with(prompt)) {
            (self.typed, PROMPT)
        } else {
            (self.heard.max(self.typed), QUIET)
        };
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

    /// Whether everything has been typed and no more will come.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_for_prompts_and_come_one_by_one() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut script = Script::new(start);
        assert_eq!(script.patience("/ # ", start), None);
        script.take(b"echo one\necho two\n");
        assert_eq!(script.patience("/ # ", start), Some(PROMPT));
        assert_eq!(script.patience("/ # ", after(300)), Some(Duration::ZERO));
        // No prompt: while the guest boots, it must have said nothing for long.
        assert_eq!(
            script.patience("", after(300)),
            Some(QUIET - Duration::from_millis(300))
        );
        script.hear(after(300));
        assert_eq!(script.patience("[    0.1] Linux", after(300)), Some(QUIET));
        // At the prompt, others may go on to speak.
        assert_eq!(
            script.patience("partita> \x1b[K", after(300)),
            Some(Duration::ZERO)
        );
        assert_eq!(script.keys(after(300)), b"echo one\r");
        assert_eq!(
            script.patience("/ # ", after(400)),
            Some(Duration::from_millis(200))
        );
        assert_eq!(script.keys(after(600)), b"echo two\r");
        assert!(!script.is_over());
        script.take(b"last");
        script.take(b"");
        assert!(!script.is_over());
        assert_eq!(script.keys(after(900)), b"last");
        assert!(script.is_over());
    }

    #[test]
    fn the_escape_key_does_not_wait() {
        let start = Instant::now();
        let mut script = Script::new(start);
        script.take(b"ls\x1dq");
        assert_eq!(script.patience("", start), Some(QUIET));
        assert_eq!(script.keys(start), b"ls");
        assert_eq!(script.patience("", start), Some(Duration::ZERO));
        assert_eq!(script.keys(start), b"\x1dq");
        assert_eq!(script.patience("", start), None);
    }
}
