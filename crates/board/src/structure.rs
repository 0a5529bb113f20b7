//! The structure block of a flattened device tree (Devicetree Specification, 5.4), walked once.

use alloc::vec::Vec;
use core::fmt;

/// Bytes of a token, and the alignment of everything in the block.
pub(crate) const WORD: usize = 4;

/// Tokens of the structure block (5.4.1).
pub(crate) mod token {
    pub const BEGIN_NODE: u32 = 1;
    pub const END_NODE: u32 = 2;
    pub const PROPERTY: u32 = 3;
    pub const NOP: u32 = 4;
    pub const END: u32 = 9;
}

/// Nodes below one another, at most. Trees of boards have fewer than ten.
const MAX_DEPTH: usize = 64;

/// Faults of a structure block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A token, name or value reaches beyond the end.
    CutOff,
    /// A token that does not exist.
    Token(u32),
    /// A name that has no end or is no text.
    Name,
    /// An end of a node that nobody began, or no end.
    Nesting,
    /// Too many nodes below one another.
    Depth,
    /// A property outside all nodes, or after a node's children.
    StrayProperty,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => write!(f, "it is cut off"),
            Self::Token(token) => write!(f, "{token:#x} is no token"),
            Self::Name => write!(f, "a name has no end or is no text"),
            Self::Nesting => write!(f, "beginnings and ends of nodes do not match"),
            Self::Depth => write!(f, "nodes are nested more than {MAX_DEPTH} deep"),
            Self::StrayProperty => write!(f, "a property stands outside the head of a node"),
        }
    }
}

/// A node's name, place and properties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub name: &'a str,
    /// Index of the parent; the root's is its own.
    pub parent: usize,
    /// Properties, as the structure block has them.
    pub properties: &'a [u8],
}

pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset.checked_add(WORD)?;
    let bytes = bytes.get(offset..end)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

pub(crate) fn size_at(bytes: &[u8], offset: usize) -> Option<usize> {
    word(bytes, offset).map(|word| word as usize)
}

/// Text up to the next zero byte.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(bytes.get(..end)?).ok()
}

/// A property at the beginning of `bytes`: the offset of its name, its value, and the bytes that it takes.
pub(crate) fn property_at(bytes: &[u8]) -> Option<(usize, &[u8], usize)> {
    let length = size_at(bytes, WORD)?;
    let name = size_at(bytes, 2 * WORD)?;
    let end = (3 * WORD).checked_add(length)?;
    let value = bytes.get(3 * WORD..end)?;
    Some((name, value, end.checked_next_multiple_of(WORD)?))
}

/// The nodes of a structure block, or the offset of a fault.
pub(crate) fn entries<'a>(
    structure: &'a [u8],
    strings: &[u8],
) -> Result<Vec<Entry<'a>>, (usize, Fault)> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    // Indices of the nodes that have begun and not ended.
    let mut open: Vec<usize> = Vec::new();
    let mut offset = 0;
    loop {
        let at = |fault| (offset, fault);
        let here = word(structure, offset).ok_or(at(Fault::CutOff))?;
        let after = structure.get(offset + WORD..).ok_or(at(Fault::CutOff))?;
        match here {
            token::BEGIN_NODE => {
                let name = text(after).ok_or(at(Fault::Name))?;
                if open.len() >= MAX_DEPTH {
                    return Err(at(Fault::Depth));
                }
                if open.is_empty() && !entries.is_empty() {
                    return Err(at(Fault::Nesting));
                }
                let head = offset + WORD + (name.len() + 1).next_multiple_of(WORD);
                let end = head_end(structure, strings, head)?;
                let index = entries.len();
                entries.push(Entry {
                    name,
                    parent: open.last().copied().unwrap_or(index),
                    properties: structure.get(head..end).ok_or(at(Fault::CutOff))?,
                });
                open.push(index);
                offset = end;
            }
            token::END_NODE => {
                open.pop().ok_or(at(Fault::Nesting))?;
                offset += WORD;
            }
            token::NOP => offset += WORD,
            token::END if open.is_empty() && !entries.is_empty() => return Ok(entries),
            token::END => return Err(at(Fault::Nesting)),
            token::PROPERTY => return Err(at(Fault::StrayProperty)),
            other => return Err(at(Fault::Token(other))),
        }
    }
}

/// The end of the properties that begin at `offset`.
fn head_end(structure: &[u8], strings: &[u8], mut offset: usize) -> Result<usize, (usize, Fault)> {
    loop {
        match word(structure, offset) {
            Some(token::NOP) => offset += WORD,
            Some(token::PROPERTY) => {
                let (name, _, length) = structure
                    .get(offset..)
                    .and_then(property_at)
                    .ok_or((offset, Fault::CutOff))?;
                strings
                    .get(name..)
                    .and_then(text)
                    .ok_or((offset, Fault::Name))?;
                offset += length;
            }
            Some(_) => return Ok(offset),
            None => return Err((offset, Fault::CutOff)),
        }
    }
}
