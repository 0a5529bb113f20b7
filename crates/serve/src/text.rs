//! Texts that are put together without an allocator.

use core::ffi::CStr;
use core::fmt::{self, Write};

use crate::linux::File;

/// Bytes of a text.
const BYTES: usize = 256;

/// A text; what does not fit is left out.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; BYTES],
    length: usize,
}

impl Text {
    /// The text of `arguments`.
    pub fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self {
            bytes: [0; BYTES],
            length: 0,
        };
        let _ = text.write_fmt(arguments);
        text
    }

    /// As a path.
    pub fn path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Prints the text as a line.
    pub fn print(&self) {
        let line = self.bytes.get(..self.length).unwrap_or_default();
        let _ = File::OUTPUT.write(b"partita-serve: ");
        let _ = File::OUTPUT.write(line);
        let _ = File::OUTPUT.write(b"\n");
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A zero byte is kept behind the text.
        let left = (BYTES - 1).saturating_sub(self.length);
        let taken = text
            .as_bytes()
            .get(..left.min(text.len()))
            .unwrap_or_default();
        let to = self.bytes.get_mut(self.length..).unwrap_or_default();
        to.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        self.length += taken.len();
        Ok(())
    }
}

/// Prints a line.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::text::Text::of(format_args!($($argument)*)).print() };
}
