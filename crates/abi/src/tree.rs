//! Flattened device trees, read without trust (Devicetree Specification 0.4, chapter 5).
//!
//! [`Tree::tokens`] yields the structure block in order: nodes that begin and end, and properties.
//! Nothing is copied, every offset and length is checked, and the nesting is proved to balance.

use core::fmt;

/// `FDT_BEGIN_NODE` and its companions, section 5.4.1.
mod token {
    pub const BEGIN_NODE: u32 = 1;
    pub const END_NODE: u32 = 2;
    pub const PROPERTY: u32 = 3;
    pub const NOP: u32 = 4;
    pub const END: u32 = 9;
}

/// First four bytes, section 5.2.
const MAGIC: u32 = 0xd00d_feed;
/// The version that this reader understands; a newer one says in its header that it may be read as this.
const VERSION: u32 = 17;
/// Depth to which nodes may nest.
pub const MAX_DEPTH: usize = 32;

/// Reason why a device tree cannot be read. Offsets are bytes from the blob's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeError {
    /// The blob is shorter than its header, or than its header says.
    Truncated,
    /// The blob does not start with the magic number.
    BadMagic,
    /// The blob's version cannot be read as version 17.
    BadVersion,
    /// The header's structure or strings block is not inside the blob.
    BadBlock,
    /// The structure block breaks its grammar.
    BadStructure {
        /// Offset of the defect.
        offset: usize,
    },
    /// A name is not UTF-8 or has no NUL.
    BadName {
        /// Offset of the token that has the name.
        offset: usize,
    },
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the device tree is cut short"),
            Self::BadMagic => write!(f, "this is no device tree (wrong magic number)"),
            Self::BadVersion => write!(f, "the device tree's version is not 17 or compatible"),
            Self::BadBlock => write!(f, "a block of the device tree lies outside of it"),
            Self::BadStructure { offset } => {
                write!(f, "the device tree's structure is broken at byte {offset}")
            }
            Self::BadName { offset } => {
                write!(f, "the device tree has a bad name at byte {offset}")
            }
        }
    }
}

impl core::error::Error for TreeError {}

/// A step of the walk over a device tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A node begins; the root's name is empty.
    Begin(&'a str),
    /// A property of the innermost node that has begun.
    Property(Property<'a>),
    /// The innermost node ends.
    End,
}

/// A property: a name and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property<'a> {
    /// The name.
    pub name: &'a str,
    /// The value, uninterpreted.
    pub value: &'a [u8],
}

impl<'a> Property<'a> {
    /// The value as one big-endian number of 32 bits.
    pub fn number(&self) -> Option<u32> {
        Some(u32::from_be_bytes(self.value.try_into().ok()?))
    }

    /// The value as one big-endian number of 64 bits.
    pub fn long_number(&self) -> Option<u64> {
        Some(u64::from_be_bytes(self.value.try_into().ok()?))
    }

    /// The value as a row of numbers of 32 bits.
    pub fn numbers(&self) -> Option<impl Iterator<Item = u32> + use<'a>> {
        let (cells, rest) = self.value.as_chunks::<4>();
        rest.is_empty()
            .then(|| cells.iter().map(|cell| u32::from_be_bytes(*cell)))
    }

    /// The value as one string, without its NUL.
    pub fn text(&self) -> Option<&'a str> {
        match self.value.split_last() {
            Some((0, text)) if !text.contains(&0) => core::str::from_utf8(text).ok(),
            _ => None,
        }
    }
}

/// A device tree whose header is good.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    blob: &'a [u8],
    structure: Block,
    strings: &'a [u8],
}

/// Place of the structure block in the blob.
#[derive(Debug, Clone, Copy)]
struct Block {
    start: usize,
    end: usize,
}

impl<'a> Tree<'a> {
    /// Checks the header of `blob`; bytes after the tree's own length are ignored.
    ///
    /// # Errors
    /// The header is not one, or names blocks that are not there.
    pub fn new(blob: &'a [u8]) -> Result<Self, TreeError> {
        let field = |index: usize| cell(blob, index * 4).ok_or(TreeError::Truncated);
        if field(0)? != MAGIC {
            return Err(TreeError::BadMagic);
        }
        let total = field(1)? as usize;
        let (structure_start, strings_start) = (field(2)? as usize, field(3)? as usize);
        let (version, compatible) = (field(5)?, field(6)?);
        let (strings_length, structure_length) = (field(8)? as usize, field(9)? as usize);
        if version < VERSION || compatible > VERSION {
            return Err(TreeError::BadVersion);
        }
        let blob = blob.get(..total).ok_or(TreeError::Truncated)?;
        let block = |start: usize, length: usize| {
            let end = start.checked_add(length).ok_or(TreeError::BadBlock)?;
            blob.get(start..end).ok_or(TreeError::BadBlock)?;
            Ok(Block { start, end })
        };
        let structure = block(structure_start, structure_length)?;
        let strings = block(strings_start, strings_length)?;
        let strings = blob
            .get(strings.start..strings.end)
            .ok_or(TreeError::BadBlock)?;
        Ok(Self {
            blob,
            structure,
            strings,
        })
    }

    /// The tree's own length in bytes.
    pub fn length(&self) -> usize {
        self.blob.len()
    }

    /// The walk over the structure block. After an error there is nothing more.
    pub fn tokens(&self) -> Tokens<'a> {
        Tokens {
            tree: *self,
            offset: self.structure.start,
            depth: 0,
            state: State::BeforeRoot,
        }
    }
}

/// State of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeRoot,
    /// Properties may come.
    InProperties,
    /// A child has ended: in a node, properties stand before children (section 5.4.2).
    AfterChild,
    AfterRoot,
    Done,
}

/// The walk over a device tree.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    tree: Tree<'a>,
    offset: usize,
    depth: usize,
    state: State,
}

impl<'a> Tokens<'a> {
    fn step(&mut self) -> Result<Option<Token<'a>>, TreeError> {
        loop {
            let offset = self.offset;
            let broken = TreeError::BadStructure { offset };
            let kind = self.take_cell().ok_or(broken)?;
            match (kind, self.state) {
                (token::NOP, _) => {}
                (
                    token::BEGIN_NODE,
                    State::BeforeRoot | State::InProperties | State::AfterChild,
                ) => {
                    if self.depth >= MAX_DEPTH {
                        return Err(broken);
                    }
                    let name = self.take_name(offset)?;
                    self.depth += 1;
                    self.state = State::InProperties;
                    return Ok(Some(Token::Begin(name)));
                }
                (token::PROPERTY, State::InProperties) => {
                    let length = self.take_cell().ok_or(broken)? as usize;
                    let name = self.take_cell().ok_or(broken)? as usize;
                    let value = self.take(length).ok_or(broken)?;
                    let name = self.tree.strings.get(name..).and_then(until_nul);
                    let name = name.ok_or(TreeError::BadName { offset })?;
                    return Ok(Some(Token::Property(Property { name, value })));
                }
                (token::END_NODE, State::InProperties | State::AfterChild) => {
                    self.depth = self.depth.checked_sub(1).ok_or(broken)?;
                    self.state = if self.depth == 0 {
                        State::AfterRoot
                    } else {
                        State::AfterChild
                    };
                    return Ok(Some(Token::End));
                }
                (token::END, State::AfterRoot) => return Ok(None),
                _ => return Err(broken),
            }
        }
    }

    /// The next `length` bytes; the walk then stands at the next multiple of four.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(length)?;
        if end > self.tree.structure.end {
            return None;
        }
        let bytes = self.tree.blob.get(self.offset..end)?;
        // The structure block starts at a multiple of four (section 5.6), so the blob's offsets do.
        self.offset = end.checked_next_multiple_of(4)?;
        Some(bytes)
    }

    fn take_cell(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn take_name(&mut self, token: usize) -> Result<&'a str, TreeError> {
        let rest = self.tree.blob.get(self.offset..self.tree.structure.end);
        let name = rest
            .and_then(until_nul)
            .ok_or(TreeError::BadName { offset: token })?;
        self.take(name.len() + 1)
            .ok_or(TreeError::BadStructure { offset: token })?;
        Ok(name)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<Token<'a>, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let item = self.step().transpose();
        if !matches!(item, Some(Ok(_))) {
            self.state = State::Done;
        }
        item
    }
}

/// The bytes before the first NUL, as text.
fn until_nul(bytes: &[u8]) -> Option<&str> {
    let length = bytes.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(bytes.get(..length)?).ok()
}

/// The big-endian number of 32 bits at `offset`.
fn cell(bytes: &[u8], offset: usize) -> Option<u32> {
    let cell = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes(cell.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn sample() -> Vec<u8> {
        let mut writer = vm_fdt::FdtWriter::new().unwrap();
        let root = writer.begin_node("").unwrap();
        writer.property_string("compatible", "a,b").unwrap();
        let child = writer.begin_node("child@1").unwrap();
        writer.property_u32("number", 7).unwrap();
        writer.property_u64("long", 1 << 40).unwrap();
        writer.property_array_u32("row", &[1, 2, 3]).unwrap();
        writer.end_node(child).unwrap();
        writer.end_node(root).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn a_tree_is_read_in_order() {
        let blob = sample();
        let tokens: Result<Vec<_>, _> = Tree::new(&blob).unwrap().tokens().collect();
        let tokens = tokens.unwrap();
        let property = |index: usize| match tokens[index] {
            Token::Property(property) => property,
            other => panic!("{other:?} is no property"),
        };
        assert_eq!(tokens[0], Token::Begin(""));
        assert_eq!(
            (property(1).name, property(1).text()),
            ("compatible", Some("a,b"))
        );
        assert_eq!(tokens[2], Token::Begin("child@1"));
        assert_eq!(
            (property(3).name, property(3).number()),
            ("number", Some(7))
        );
        assert_eq!(
            (property(4).name, property(4).long_number()),
            ("long", Some(1 << 40))
        );
        assert_eq!(
            property(5).numbers().unwrap().collect::<Vec<_>>(),
            vec![1, 2, 3]
        );
        assert_eq!(property(5).number(), None);
        assert_eq!(&tokens[6..], [Token::End, Token::End]);
    }

    proptest! {
        #[test]
        fn a_tree_cut_short_is_an_error(cut in any::<prop::sample::Index>()) {
            let blob = sample();
            prop_assert_eq!(Tree::new(&blob[..cut.index(blob.len())]).err(), Some(TreeError::Truncated));
        }

        #[test]
        fn garbage_never_panics_and_always_ends(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..16),
        ) {
            let mut blob = sample();
            for (position, byte) in changes {
                let position = position.index(blob.len());
                blob[position] = byte;
            }
            if let Ok(tree) = Tree::new(&blob) {
                // Every token is at least four bytes long.
                prop_assert!(tree.tokens().count() <= blob.len() / 4);
                let mut depth = 0;
                for token in tree.tokens().flatten() {
                    match token {
                        Token::Begin(_) => depth += 1,
                        Token::End => depth -= 1,
                        Token::Property(_) => prop_assert!(depth > 0),
                    }
                    prop_assert!((0..=MAX_DEPTH as i32).contains(&depth));
                }
            }
        }
    }
}
