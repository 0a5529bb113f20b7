//! The escape key and what follows it.

/// Ctrl-], the key that leads out of a guest's console.
const ESCAPE_KEY: u8 = 0x1d;

/// Meaning of a typed byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A byte for the focus of the input.
    Plain(u8),
    /// The escape key: the next byte says what for.
    Pending,
    /// The next VM.
    Next,
    /// The VM of this number, from 1.
    Number(u8),
    /// The operator's prompt.
    Prompt,
    /// An orderly end of everything.
    PowerOff,
    /// Key without a meaning.
    Unknown,
}

/// Remembers whether the escape key came last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    escaped: bool,
}

impl Keys {
    pub fn press(&mut self, byte: u8) -> Key {
        if !core::mem::take(&mut self.escaped) {
            self.escaped = byte == ESCAPE_KEY;
            return if self.escaped {
                Key::Pending
            } else {
                Key::Plain(byte)
            };
        }
        match byte {
            ESCAPE_KEY => Key::Plain(byte),
            b'n' => Key::Next,
            b'1'..=b'9' => Key::Number(byte.saturating_sub(b'0')),
            b'm' => Key::Prompt,
            b'q' => Key::PowerOff,
            _ => Key::Unknown,
        }
    }
}
