//! The operator's line.

use alloc::string::String;

/// Characters that a line holds at most.
const LIMIT: usize = 120;

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Effect of a key on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// No visible change.
    Nothing,
    /// The line is another one now.
    Changed,
    /// The line is done.
    Line(String),
    /// End of the prompt: Ctrl-D, or Enter on an empty line.
    Leave,
}

/// A line of printable ASCII.
#[derive(Clone, Debug, Default)]
pub(super) struct Editor {
    text: String,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn press(&mut self, byte: u8) -> Edit {
        match byte {
            b'\r' | b'\n' if self.text.trim().is_empty() => Edit::Leave,
            b'\r' | b'\n' => Edit::Line(core::mem::take(&mut self.text)),
            CTRL_D if self.text.is_empty() => Edit::Leave,
            BACKSPACE | DELETE if self.text.pop().is_some() => Edit::Changed,
            CTRL_U | CTRL_C if !self.text.is_empty() => {
                self.text.clear();
                Edit::Changed
            }
            b' '..=b'~' if self.text.len() < LIMIT => {
                self.text.push(char::from(byte));
                Edit::Changed
            }
            _ => Edit::Nothing,
        }
    }
}
