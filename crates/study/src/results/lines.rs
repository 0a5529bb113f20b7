//! JSON with a line for each entry down to a depth, and each deeper entry on the line of the one that it belongs to.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// So deep an entry has a line of its own: one figure of one method, in a result.
const DEEPEST: usize = 6;
const INDENT: &[u8] = b"  ";

/// Writes a value.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn to_string(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Where lines are broken.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    has_entry: bool,
}

impl Lines {
    fn open(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_entry = false;
        writer.write_all(bracket)
    }

    fn close(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_entry && self.depth < DEEPEST {
            self.begin_line(writer)?;
        }
        self.has_entry = true;
        writer.write_all(bracket)
    }

    fn entry(&self, writer: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        match self.depth <= DEEPEST {
            true => self.begin_line(writer),
            false if first => Ok(()),
            false => writer.write_all(b" "),
        }
    }

    fn begin_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(INDENT))
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_entry = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_entry = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_deep_stays_on_its_line() {
        let deep = json!([[[[[{ "figures": [1, 2.5], "none": {} }, 3]]]], []]);
        let text = to_string(&deep).unwrap();
        let wanted = [
            "[",
            "  [",
            "    [",
            "      [",
            "        [",
            "          {",
            "            \"figures\": [1, 2.5],",
            "            \"none\": {}",
            "          },",
            "          3",
            "        ]",
            "      ]",
            "    ]",
            "  ],",
            "  []",
            "]",
        ];
        let wanted = wanted.join("\n");
        assert_eq!(text, wanted);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            deep
        );
    }
}
