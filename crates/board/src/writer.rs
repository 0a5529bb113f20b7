//! Writing a flattened device tree (Devicetree Specification 0.4, chapter 5).

use alloc::vec::Vec;

/// First four bytes of the header (§5.2).
const MAGIC: u32 = 0xd00d_feed;
/// Version of the format, and the oldest that a reader may know (§5.2).
const VERSION: u32 = 17;
const OLDEST_READER: u32 = 16;
/// Bytes of the header.
const HEADER: usize = 40;
/// Bytes of the list of reserved memory, which has its end alone (§5.3).
const RESERVATIONS: usize = 16;
/// Offset of the structure block.
const STRUCTURE: usize = HEADER + RESERVATIONS;

/// Tokens of the structure block (§5.4.1).
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const END: u32 = 9;

/// Reasons why a tree cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriterError {
    /// A text ends at a NUL.
    #[error("a text has a NUL in it")]
    Nul,
    /// A length or an offset has more than 32 bits.
    #[error("it is larger than 4 GiB")]
    TooLarge,
}

/// A tree that is being written. The first error is kept until [`TreeWriter::finish`]. The caller names nodes and properties as the
/// specification allows, and closes each node that it begins.
#[derive(Debug, Default)]
pub(crate) struct TreeWriter {
    structure: Vec<u8>,
    strings: Vec<u8>,
    error: Option<WriterError>,
}

impl TreeWriter {
    fn append(&mut self, word: u32) {
        self.structure.extend_from_slice(&word.to_be_bytes());
    }

    /// Fills with zeros up to a whole word.
    fn align(&mut self) {
        let length = self.structure.len().next_multiple_of(4);
        self.structure.resize(length, 0);
    }

    /// Refuses a text with a NUL in it.
    fn check(&mut self, text: &str) {
        if text.contains('\0') {
            self.error.get_or_insert(WriterError::Nul);
        }
    }

    fn word_of(&mut self, number: usize) -> u32 {
        u32::try_from(number).unwrap_or_else(|_| {
            self.error.get_or_insert(WriterError::TooLarge);
            0
        })
    }

    /// Offset of a property's name in the strings block, where each name stands once. Trees have some thirty names.
    fn name_offset(&mut self, name: &str) -> u32 {
        let mut offset = 0;
        for other in self.strings.split(|byte| *byte == 0) {
            if other == name.as_bytes() {
                break;
            }
            offset += other.len() + 1;
        }
        // Behind the last NUL, `split` yields nothing more.
        if offset >= self.strings.len() {
            offset = self.strings.len();
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
        }
        self.word_of(offset)
    }

    /// Begins a node.
    pub(crate) fn begin_node(&mut self, name: &str) {
        self.check(name);
        self.append(BEGIN_NODE);
        self.structure.extend_from_slice(name.as_bytes());
        self.structure.push(0);
        self.align();
    }

    /// Ends the innermost node.
    pub(crate) fn end_node(&mut self) {
        self.append(END_NODE);
    }

    /// Writes a property of the innermost node, and returns its value's offset in the tree.
    pub(crate) fn property(&mut self, name: &str, value: &[u8]) -> usize {
        self.check(name);
        let length = self.word_of(value.len());
        let name = self.name_offset(name);
        for word in [PROPERTY, length, name] {
            self.append(word);
        }
        let offset = STRUCTURE + self.structure.len();
        self.structure.extend_from_slice(value);
        self.align();
        offset
    }

    /// Writes a property without a value.
    pub(crate) fn property_null(&mut self, name: &str) {
        self.property(name, &[]);
    }

    /// Writes a text.
    pub(crate) fn property_string(&mut self, name: &str, text: &str) {
        self.property_string_list(name, &[text]);
    }

    /// Writes several texts.
    pub(crate) fn property_string_list(&mut self, name: &str, texts: &[&str]) {
        let mut value = Vec::new();
        for text in texts {
            self.check(text);
            value.extend_from_slice(text.as_bytes());
            value.push(0);
        }
        self.property(name, &value);
    }

    /// Writes a number of 32 bits.
    pub(crate) fn property_u32(&mut self, name: &str, number: u32) {
        self.property(name, &number.to_be_bytes());
    }

    /// Writes a number of 64 bits.
    pub(crate) fn property_u64(&mut self, name: &str, number: u64) {
        self.property(name, &number.to_be_bytes());
    }

    /// Writes numbers of 32 bits.
    pub(crate) fn property_array_u32(&mut self, name: &str, numbers: &[u32]) {
        let value: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        self.property(name, &value);
    }

    /// Writes numbers of 64 bits.
    pub(crate) fn property_array_u64(&mut self, name: &str, numbers: &[u64]) {
        let value: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        self.property(name, &value);
    }

    /// Writes the handle by which other nodes name this one (§2.3.3). The caller gives each handle once.
    pub(crate) fn property_phandle(&mut self, handle: u32) {
        self.property_u32("phandle", handle);
    }

    /// The whole tree: header, reserved memory, structure, strings.
    ///
    /// # Errors
    /// The first that occurred.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, WriterError> {
        self.append(END);
        let strings = STRUCTURE + self.structure.len();
        let total = strings + self.strings.len();
        let header = [
            MAGIC,
            self.word_of(total),
            self.word_of(STRUCTURE),
            self.word_of(strings),
            HEADER as u32,
            VERSION,
            OLDEST_READER,
            // The processor that boots (§5.2).
            0,
            self.word_of(self.strings.len()),
            self.word_of(self.structure.len()),
        ];
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut tree = Vec::with_capacity(total);
        for word in header {
            tree.extend_from_slice(&word.to_be_bytes());
        }
        tree.resize(STRUCTURE, 0);
        tree.append(&mut self.structure);
        tree.append(&mut self.strings);
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use vm_fdt::FdtWriter;

    #[test]
    fn the_tree_is_as_another_writers() {
        let mut ours = TreeWriter::default();
        let mut theirs = FdtWriter::new().unwrap();
        ours.begin_node("");
        let root = theirs.begin_node("").unwrap();
        // One name is the end of another.
        for name in [
            "size-cells",
            "cells",
            "reg",
            "cells",
            "r",
            "size-cells",
            "s",
        ] {
            ours.property_u32(name, 7);
            theirs.property_u32(name, 7).unwrap();
        }
        ours.property_string("model", "a");
        theirs.property_string("model", "a").unwrap();
        ours.property_null("ranges");
        theirs.property_null("ranges").unwrap();
        for name in ["cpu@0", "cpu@11"] {
            ours.begin_node(name);
            let node = theirs.begin_node(name).unwrap();
            ours.property_string_list("isa", &["i", "", "zawrs"]);
            let list = ["i", "", "zawrs"].map(String::from).to_vec();
            theirs.property_string_list("isa", list).unwrap();
            ours.property_array_u32("interrupts", &[1, 2, 3]);
            theirs.property_array_u32("interrupts", &[1, 2, 3]).unwrap();
            ours.property_array_u64("reg", &[1 << 40, 4096]);
            theirs.property_array_u64("reg", &[1 << 40, 4096]).unwrap();
            ours.property_u64("end", u64::MAX);
            theirs.property_u64("end", u64::MAX).unwrap();
            ours.property("seed", &[1, 2, 3, 4, 5]);
            theirs.property("seed", &[1, 2, 3, 4, 5]).unwrap();
            let handle = name.len() as u32;
            ours.property_phandle(handle);
            theirs.property_phandle(handle).unwrap();
            ours.end_node();
            theirs.end_node(node).unwrap();
        }
        ours.end_node();
        theirs.end_node(root).unwrap();
        assert_eq!(ours.finish().unwrap(), theirs.finish().unwrap());
    }

    #[test]
    fn texts_with_a_nul_are_refused() {
        let write = |name: &str, text: &str| {
            let mut tree = TreeWriter::default();
            tree.begin_node("");
            tree.property_string(name, text);
            tree.end_node();
            tree.finish().map(|_| ())
        };
        assert_eq!(write("model", "a\0b"), Err(WriterError::Nul));
        assert_eq!(write("mo\0del", "a"), Err(WriterError::Nul));
        assert_eq!(write("model", "ab"), Ok(()));
    }
}
