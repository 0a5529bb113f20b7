//! The operator's line.

/// Characters that a line holds at most.
const LIMIT: usize = 120;

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Effect of a key on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// No visible change.
    Nothing,
    /// The line is another one now.
    Changed,
    /// The line is done: [`Editor::text`], and then [`Editor::clear`].
    Line,
    /// End of the prompt: Ctrl-D, or Enter on an empty line.
    Leave,
}

/// A line of printable ASCII.
#[derive(Clone, Debug)]
pub(super) struct Editor {
    bytes: [u8; LIMIT],
    length: usize,
}

impl Editor {
    /// An empty line.
    pub const fn new() -> Self {
        Self {
            bytes: [0; LIMIT],
            length: 0,
        }
    }

    pub fn text(&self) -> &str {
        let typed = self.bytes.get(..self.length).unwrap_or_default();
        core::str::from_utf8(typed).unwrap_or_default()
    }

    /// Begins a new line.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    pub fn press(&mut self, byte: u8) -> Edit {
        match byte {
            b'\r' | b'\n' if self.text().trim().is_empty() => Edit::Leave,
            b'\r' | b'\n' => Edit::Line,
            CTRL_D if self.length == 0 => Edit::Leave,
            BACKSPACE | DELETE if self.length > 0 => {
                self.length = self.length.saturating_sub(1);
                Edit::Changed
            }
            CTRL_U | CTRL_C if self.length > 0 => {
                self.clear();
                Edit::Changed
            }
            b' '..=b'~' => match self.bytes.get_mut(self.length) {
                Some(place) => {
                    *place = byte;
                    self.length = self.length.saturating_add(1);
                    Edit::Changed
                }
                None => Edit::Nothing,
            },
            _ => Edit::Nothing,
        }
    }
}
