//! Keys that come from a pipe or a file: nobody is there who would wait for a prompt before typing.

use std::collections::VecDeque;
use std::time::Duration;

/// How long a console must have been quiet, with a line begun and not ended, to be taken for a prompt.
const PROMPT: Duration = Duration::from_millis(300);
/// How long it must have been quiet where no line is begun.
const QUIET: Duration = Duration::from_secs(5);

/// Lines that wait to be typed.
#[derive(Debug, Default)]
pub(super) struct Script {
    waiting: VecDeque<u8>,
    ended: bool,
}

impl Script {
    /// Takes what was read; nothing if there is no more.
    pub(super) fn take(&mut self, read: &[u8]) {
        self.waiting.extend(read);
        self.ended |= read.is_empty();
    }

    /// How long a console must be quiet before the next line is typed; `None` if none waits. `begun` tells whether it shows
    /// a line that has no end yet.
    pub(super) fn patience(&self, begun: bool) -> Option<Duration> {
        let whole = self.ended || self.waiting.contains(&b'\n');
        let waits = whole && !self.waiting.is_empty();
        waits.then_some(if begun { PROMPT } else { QUIET })
    }

    /// The next line, as a keyboard sends it.
    pub(super) fn line(&mut self) -> Vec<u8> {
        let end = self.waiting.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(self.waiting.len(), |end| end + 1);
        let line = self.waiting.drain(..length);
        line.map(|byte| if byte == b'\n' { b'\r' } else { byte })
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
        let mut script = Script::default();
        assert_eq!(script.patience(true), None);
        script.take(b"echo one\nec");
        assert_eq!(script.patience(true), Some(PROMPT));
        assert_eq!(script.patience(false), Some(QUIET));
        assert_eq!(script.line(), b"echo one\r");
        // The next one is not whole yet.
        assert_eq!(script.patience(true), None);
        script.take(b"ho two\n\nlast");
        assert_eq!(
            (script.line(), script.line()),
            (b"echo two\r".to_vec(), b"\r".to_vec())
        );
        assert_eq!(script.patience(true), None);
        assert!(!script.is_over());
        script.take(b"");
        assert_eq!(script.patience(true), Some(PROMPT));
        assert!(!script.is_over());
        assert_eq!(script.line(), b"last");
        assert!(script.is_over());
        assert_eq!(script.patience(true), None);
    }
}
