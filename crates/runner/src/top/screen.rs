//! Text that is written over itself on a terminal of any size.

use std::fmt::Write;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// A terminal that does not say how large it is.
const USUAL: Screen = Screen {
    columns: 80,
    rows: 24,
};

impl Screen {
    /// The terminal on standard output.
    pub fn of_terminal() -> Self {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Self {
                columns: usize::from(size.ws_col),
                rows: usize::from(size.ws_row),
            },
            _ => USUAL,
        }
    }

    /// The text from the top left corner on, with the rest of the screen empty: lines are cut, and those that have no
    /// room are counted in the last one, so that nothing wraps and nothing scrolls.
    pub fn fit(self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        // The cursor rests in the last line.
        let room = self.rows.saturating_sub(1).max(1);
        let mut out = String::from("\x1b[H");
        let kept = if lines.len() > room {
            room - 1
        } else {
            lines.len()
        };
        for line in lines.iter().take(kept) {
            let cut: String = line.chars().map(harmless).take(self.columns).collect();
            // Writing to a String does not fail.
            let _ = write!(out, "{cut}\x1b[K\r\n");
        }
        if kept < lines.len() {
            let more = format!("{} more lines", lines.len() - kept);
            let cut: String = more.chars().take(self.columns).collect();
            let _ = write!(out, "{cut}\x1b[K\r\n");
        }
        out + "\x1b[J"
    }

    /// The text as it is, without what a guest may have put into it to move a terminal's cursor.
    pub fn plain(text: &str) -> String {
        let plain = |character| match character {
            '\n' => '\n',
            other => harmless(other),
        };
        text.chars().map(plain).collect::<String>() + "\n"
    }
}

/// A character that a terminal shows, and does not obey.
fn harmless(character: char) -> char {
    if character.is_control() {
        '\u{fffd}'
    } else {
        character
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps_and_nothing_scrolls() {
        let screen = Screen {
            columns: 5,
            rows: 4,
        };
        let text = screen.fit("abcdefgh\nsecond\nthird\nfourth\n");
        assert_eq!(
            text,
            "\x1b[Habcde\x1b[K\r\nsecon\x1b[K\r\n2 mor\x1b[K\r\n\x1b[J"
        );
        let tiny = Screen {
            columns: 1,
            rows: 1,
        };
        assert_eq!(tiny.fit("abc\ndef"), "\x1b[H2\x1b[K\r\n\x1b[J");
        let large = Screen {
            columns: 80,
            rows: 24,
        };
        assert_eq!(large.fit("a\n"), "\x1b[Ha\x1b[K\r\n\x1b[J");
    }

    #[test]
    fn a_guest_does_not_move_the_cursor() {
        let hostile = "before\x1b[2Jafter\x07\n";
        assert_eq!(Screen::plain(hostile), "before\u{fffd}[2Jafter\u{fffd}\n\n");
        let shown = USUAL.fit(hostile);
        assert!(!shown.contains("\x1b[2J"), "{shown:?}");
    }
}
