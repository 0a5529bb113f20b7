//! History of a vCPU's spin exits: which of them belong to one wait.

use crate::port::ReadWord;
use crate::word::{SpinStatus, WatchedWord};

/// Current wait of a vCPU, as its spin exits tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinHistory {
    /// Word and, if known, ticket; word 0 stands for an unknown one.
    wait: Option<(u64, Option<u16>)>,
    exits: u32,
    /// Dispatches for an interrupt.
    interrupts: u32,
    /// The wait is over: another exit at the same word, without a ticket, begins another wait.
    over: bool,
}

/// Figures of a wait that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedSpin {
    /// Spin exits, 0 before the first wait.
    pub exits: u32,
    /// Dispatches for an interrupt among them.
    pub interrupts: u32,
}

impl SpinHistory {
    /// Counts a spin exit. Returns the wait before if this one begins another.
    pub fn exit<A: ReadWord>(&mut self, status: SpinStatus<A>) -> Option<EndedSpin> {
        let (wait, over) = match status {
            SpinStatus::Over(word) => (word.wait(), true),
            SpinStatus::On(word) => (word.wait(), false),
            SpinStatus::Unknown => ((0, None), false),
        };
        let continues = self.wait == Some(wait) && (wait.1.is_some() || !self.over);
        let before = EndedSpin {
            exits: self.exits,
            interrupts: self.interrupts,
        };
        self.over = over;
        self.wait = Some(wait);
        if continues {
            self.exits = self.exits.saturating_add(1);
        } else {
            (self.exits, self.interrupts) = (1, 0);
        }
        (!continues).then_some(before)
    }

    /// Returns true if the last wait was for `word` and is over.
    #[must_use]
    pub fn was_over_at<A: ReadWord>(&self, word: WatchedWord<A>) -> bool {
        self.over && self.wait == Some(word.wait())
    }

    /// Spin exits of the current wait.
    #[must_use]
    pub const fn exits(self) -> u32 {
        self.exits
    }

    /// Notes that the wait is over.
    pub const fn note_over(&mut self) {
        self.over = true;
    }

    /// Counts a dispatch for an interrupt.
    pub const fn note_interrupt(&mut self) {
        self.interrupts = self.interrupts.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::Width;

    #[derive(Clone, Copy, Debug)]
    struct At(u64);

    impl ReadWord for At {
        fn read(self, _: Width) -> u64 {
            0
        }

        fn raw(self) -> u64 {
            self.0
        }
    }

    fn on(address: u64, ticket: Option<u16>) -> SpinStatus<At> {
        SpinStatus::On(WatchedWord::new(At(address), false, 0, ticket))
    }

    #[test]
    fn exits_at_one_word_are_one_wait() {
        let mut history = SpinHistory::default();
        assert_eq!(history.exit(on(8, None)), Some(EndedSpin::default()));
        assert_eq!(history.exit(on(8, None)), None);
        history.note_interrupt();
        let ended = EndedSpin {
            exits: 2,
            interrupts: 1,
        };
        assert_eq!(history.exit(on(16, None)), Some(ended));
        assert_eq!(history.exits(), 1);
    }

    #[test]
    fn wait_that_is_over_is_not_continued() {
        let mut history = SpinHistory::default();
        let _ = history.exit(on(8, None));
        history.note_over();
        assert!(history.was_over_at(WatchedWord::new(At(8), false, 0, None)));
        assert!(history.exit(on(8, None)).is_some());
        // A ticket is given once.
        let _ = history.exit(on(8, Some(3)));
        history.note_over();
        assert_eq!(history.exit(on(8, Some(3))), None);
    }
}
