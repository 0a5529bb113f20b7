//! A flattened device tree, checked once and then read without a way to fail (Devicetree Specification v0.4, chapter 5).
//!
//! Crates that read trees either panic on damaged ones or refuse node names of more than 31 characters, which boards on sale have. So the walk
//! over the structure block is here: every offset and length is checked when a [`Tree`] is made, and nothing is followed twice.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Range;
use crate::cells::Cells;
use crate::structure::{Entry, Fault, WORD, entries, property_at, size_at, text, token, word};

const MAGIC: u32 = 0xd00d_feed;
/// The version that readers must understand (5.1).
const VERSION: u32 = 17;
const HEADER_BYTES: usize = 40;

/// Default number of cells of an address (2.3.5).
const ADDRESS_CELLS: u32 = 2;
/// Default number of cells of a size (2.3.5).
const SIZE_CELLS: u32 = 1;

/// Why bytes are no device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// The bytes end before the header or before the size that the header states.
    Short {
        /// Bytes that the tree should have.
        wanted: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The first four bytes are not those of a device tree.
    Magic(u32),
    /// A version that this reader does not know.
    Version(u32),
    /// Something in the structure block is wrong.
    Structure {
        /// Offset in the tree, in bytes.
        offset: usize,
        /// The fault.
        fault: Fault,
    },
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { wanted, found } => {
                write!(
                    f,
                    "the device tree has {found} bytes and should have {wanted}"
                )
            }
            Self::Magic(found) => write!(
                f,
                "not a flattened device tree: it begins with {found:#010x} instead of {MAGIC:#010x}"
            ),
            Self::Version(version) => write!(
                f,
                "the device tree has version {version}, which readers of version {VERSION} do not understand"
            ),
            Self::Structure { offset, fault } => {
                write!(f, "the device tree is damaged at byte {offset}: {fault}")
            }
        }
    }
}

/// A device tree whose structure has been checked.
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    entries: Vec<Entry<'a>>,
    strings: &'a [u8],
    reservations: &'a [u8],
    size: usize,
}

/// A node of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Node<'t, 'a> {
    tree: &'t Tree<'a>,
    index: usize,
}

impl<'a> Tree<'a> {
    /// The size that the header of a device tree states, in bytes.
    ///
    /// # Errors
    /// [`TreeError::Short`] or [`TreeError::Magic`].
    pub fn size_of(header: &[u8]) -> Result<usize, TreeError> {
        let short = TreeError::Short {
            wanted: HEADER_BYTES,
            found: header.len(),
        };
        let magic = word(header, 0).ok_or(short)?;
        if magic != MAGIC {
            return Err(TreeError::Magic(magic));
        }
        size_at(header, WORD).ok_or(short)
    }

    /// Checks the tree at the beginning of `bytes`.
    ///
    /// # Errors
    /// [`TreeError`], with the place.
    pub fn new(bytes: &'a [u8]) -> Result<Self, TreeError> {
        let size = Self::size_of(bytes)?.max(HEADER_BYTES);
        let whole = bytes.get(..size).ok_or(TreeError::Short {
            wanted: size,
            found: bytes.len(),
        })?;
        let field = |index: usize| size_at(whole, index * WORD).unwrap_or(0);
        let (version, compatible) = (field(5) as u32, field(6) as u32);
        if compatible > VERSION || version < VERSION {
            return Err(TreeError::Version(version));
        }
        let block = |offset: usize, length: usize| {
            let end = offset.checked_add(length);
            end.and_then(|end| whole.get(offset..end))
                .ok_or(TreeError::Structure {
                    offset,
                    fault: Fault::CutOff,
                })
        };
        let structure = block(field(2), field(9))?;
        let strings = block(field(3), field(8))?;
        let reservations = whole.get(field(4)..).ok_or(TreeError::Structure {
            offset: field(4),
            fault: Fault::CutOff,
        })?;
        let entries =
            entries(structure, strings).map_err(|(offset, fault)| TreeError::Structure {
                offset: field(2).saturating_add(offset),
                fault,
            })?;
        Ok(Self {
            entries,
            strings,
            reservations,
            size,
        })
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// All nodes, parents before their children, the root first.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_, 'a>> {
        (0..self.entries.len()).map(|index| Node { tree: self, index })
    }

    /// Enabled nodes that are compatible with `name`.
    pub fn compatible<'t>(&'t self, name: &str) -> impl Iterator<Item = Node<'t, 'a>> {
        self.nodes()
            .filter(move |node| node.is_compatible(name) && node.is_enabled())
    }

    /// The node at a [place](Node::place).
    pub(crate) fn at(&self, place: usize) -> Option<Node<'_, 'a>> {
        (place < self.entries.len()).then_some(Node {
            tree: self,
            index: place,
        })
    }

    /// The node at `path`, such as `/soc/serial@10000000`, or that an alias names. Anything after a colon is left out, as
    /// `stdout-path` has it.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Node<'_, 'a>> {
        let path = path.split(':').next().unwrap_or(path);
        if let Some(rest) = path.strip_prefix('/') {
            let root = self.nodes().next()?;
            let mut parts = rest.split('/').filter(|part| !part.is_empty());
            return parts.try_fold(root, |node, part| node.child(part));
        }
        let aliased = self.find("/aliases")?.text(path)?;
        // An alias names a path, never another alias.
        aliased.starts_with('/').then(|| self.find(aliased))?
    }

    /// The node with this phandle.
    #[must_use]
    pub fn by_phandle(&self, phandle: u32) -> Option<Node<'_, 'a>> {
        self.nodes()
            .find(|node| node.word("phandle") == Some(phandle))
    }

    /// Memory that is reserved by the tree's own block (5.3).
    pub fn reservations(&self) -> impl Iterator<Item = Range> {
        let pairs = self.reservations.as_chunks::<16>().0.iter();
        let ranges = pairs.map(|pair| {
            let pair = u128::from_be_bytes(*pair);
            Range {
                start: (pair >> 64) as u64,
                size: pair as u64,
            }
        });
        ranges.take_while(|range| *range != Range { start: 0, size: 0 })
    }
}

impl<'t, 'a> Node<'t, 'a> {
    fn entry(self) -> Option<&'t Entry<'a>> {
        self.tree.entries.get(self.index)
    }

    /// Name with the unit address, such as `serial@10000000`; the root's is empty.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.entry().map_or("", |entry| entry.name)
    }

    /// The node above; the root has none.
    #[must_use]
    pub fn parent(self) -> Option<Self> {
        let parent = self.entry()?.parent;
        (parent != self.index).then_some(Self {
            tree: self.tree,
            index: parent,
        })
    }

    /// Number of the node in its tree.
    pub(crate) const fn place(self) -> usize {
        self.index
    }

    /// The node's tree.
    pub(crate) const fn tree(self) -> &'t Tree<'a> {
        self.tree
    }

    /// Tests whether the node is `other` or lies below it.
    pub(crate) fn is_in(self, other: Node<'_, '_>) -> bool {
        self.index == other.index || self.parent().is_some_and(|parent| parent.is_in(other))
    }

    /// The node and all below it, parents before their children.
    pub(crate) fn subtree(self) -> impl Iterator<Item = Self> {
        self.tree.nodes().filter(move |node| node.is_in(self))
    }

    /// The nodes below, one level.
    pub fn children(self) -> impl Iterator<Item = Self> {
        let all = self.tree.nodes();
        all.filter(move |node| {
            node.parent()
                .is_some_and(|parent| parent.index == self.index)
        })
    }

    /// The child with this name. A name without a unit address finds the first that has one.
    fn child(self, name: &str) -> Option<Self> {
        let bare = |node: &Self| node.name().split('@').next() == Some(name);
        let mut children = self.children();
        children
            .find(|node| node.name() == name)
            .or_else(|| self.children().find(bare))
    }

    /// Path from the root, such as `/soc/serial@10000000`.
    #[must_use]
    pub fn path(self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut node = self;
        while let Some(parent) = node.parent() {
            names.push(node.name());
            node = parent;
        }
        if names.is_empty() {
            return String::from("/");
        }
        let mut path = String::new();
        for name in names.into_iter().rev() {
            path.push('/');
            path.push_str(name);
        }
        path
    }

    /// Value of a property, in bytes.
    #[must_use]
    pub fn property(self, name: &str) -> Option<&'a [u8]> {
        let mut properties = self.properties();
        let found = properties.find(|(own, _)| *own == name);
        found.map(|(_, value)| value)
    }

    /// All properties, each a name and a value.
    pub(crate) fn properties(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let mut bytes = self.entry().map_or(&[][..], |entry| entry.properties);
        let strings = self.tree.strings;
        core::iter::from_fn(move || {
            loop {
                if word(bytes, 0)? != token::PROPERTY {
                    bytes = bytes.get(WORD..)?;
                    continue;
                }
                let (at, value, end) = property_at(bytes)?;
                bytes = bytes.get(end..)?;
                return Some((strings.get(at..).and_then(text)?, value));
            }
        })
    }

    /// Tests whether the node has a property, empty ones included.
    #[must_use]
    pub fn has(self, name: &str) -> bool {
        self.property(name).is_some()
    }

    /// Cells of a property; none where it is absent.
    pub fn cells(self, name: &str) -> impl Iterator<Item = u32> + 'a {
        let value = self.property(name).unwrap_or_default();
        let words = value.as_chunks::<WORD>().0.iter();
        words.map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// The first cell of a property.
    #[must_use]
    pub fn word(self, name: &str) -> Option<u32> {
        self.cells(name).next()
    }

    /// A number of one or two cells.
    #[must_use]
    pub fn number(self, name: &str) -> Option<u64> {
        let value = self.property(name)?;
        match value.len() {
            4 => Some(u64::from(u32::from_be_bytes(value.try_into().ok()?))),
            8 => Some(u64::from_be_bytes(value.try_into().ok()?)),
            _ => None,
        }
    }

    /// Strings of a property; none where it is absent.
    pub fn texts(self, name: &str) -> impl Iterator<Item = &'a str> {
        let value = self.property(name).unwrap_or_default();
        let parts = value.split(|byte| *byte == 0);
        parts.filter_map(|part| {
            core::str::from_utf8(part)
                .ok()
                .filter(|text| !text.is_empty())
        })
    }

    /// The first string of a property.
    #[must_use]
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.texts(name).next()
    }

    /// Tests whether the node is compatible with `name`.
    #[must_use]
    pub fn is_compatible(self, name: &str) -> bool {
        self.texts("compatible").any(|entry| entry == name)
    }

    /// Tests whether the node and all above it may be used (2.3.4).
    #[must_use]
    pub fn is_enabled(self) -> bool {
        let own = self
            .text("status")
            .is_none_or(|status| matches!(status, "okay" | "ok"));
        own && self.parent().is_none_or(Self::is_enabled)
    }

    /// The node that takes this one's interrupts: named by it or by one above it (2.4.1).
    #[must_use]
    pub fn interrupt_parent(self) -> Option<Self> {
        if let Some(phandle) = self.word("interrupt-parent") {
            return self.tree.by_phandle(phandle);
        }
        let parent = self.parent()?;
        if parent.has("interrupt-controller") || parent.has("interrupt-map") {
            return Some(parent);
        }
        parent.interrupt_parent()
    }

    /// Phandles of the regulators that the node names: the properties whose names end in `-supply`.
    pub fn supplies(self) -> Vec<u32> {
        let supplies = self
            .properties()
            .filter(|(name, _)| name.ends_with("-supply"));
        supplies.filter_map(|(_, value)| word(value, 0)).collect()
    }

    /// The node's interrupts: the property, the node that takes the interrupt, and the cells of the interrupt there (2.4.1).
    pub(crate) fn interrupts(self) -> Vec<(&'static str, Option<Self>, Vec<u32>)> {
        const EXTENDED: &str = "interrupts-extended";
        let is_extended = self.has(EXTENDED);
        let name = if is_extended { EXTENDED } else { "interrupts" };
        let mut cells = self.cells(name).peekable();
        let mut found = Vec::new();
        while cells.peek().is_some() {
            let parent = match is_extended {
                true => cells.next().and_then(|handle| self.tree.by_phandle(handle)),
                false => self.interrupt_parent(),
            };
            let length = parent.and_then(|parent| parent.word("#interrupt-cells"));
            // A parent that is not there takes one cell, so that the end is reached.
            let length = length.unwrap_or(1).max(1) as usize;
            found.push((name, parent, cells.by_ref().take(length).collect()));
        }
        found
    }

    pub(crate) fn address_cells(self) -> u32 {
        self.word("#address-cells").unwrap_or(ADDRESS_CELLS)
    }

    pub(crate) fn size_cells(self) -> u32 {
        self.word("#size-cells").unwrap_or(SIZE_CELLS)
    }

    /// Ranges of `reg` as the harts address them: translated by the `ranges` of the buses above (2.3.6, 2.3.8). None where a bus on the way has
    /// no `ranges`, and none for addresses or sizes of more than 64 bits.
    #[must_use]
    pub fn registers(self) -> Vec<Range> {
        let Some(bus) = self.parent() else {
            return Vec::new();
        };
        let mut cells = Cells::new(self.property("reg").unwrap_or_default());
        let mut found = Vec::new();
        while let Some((address, size)) = cells.pair(bus.address_cells(), bus.size_cells()) {
            if let (Some(start), Some(size)) = (address, size)
                && let Some(start) = bus.translate(start)
            {
                found.push(Range { start, size });
            }
        }
        found
    }

    /// Number of ranges in `reg`, those included that no hart reaches.
    pub(crate) fn register_entries(self) -> usize {
        let Some(bus) = self.parent() else {
            return 0;
        };
        let mut cells = Cells::new(self.property("reg").unwrap_or_default());
        let pairs = core::iter::from_fn(|| cells.pair(bus.address_cells(), bus.size_cells()));
        pairs.count()
    }

    /// An address on this node's bus, as the harts address it.
    pub(crate) fn translate(self, address: u64) -> Option<u64> {
        let Some(parent) = self.parent() else {
            return Some(address);
        };
        let map = self.property("ranges")?;
        if map.is_empty() {
            return parent.translate(address);
        }
        let mut cells = Cells::new(map);
        loop {
            let child = cells.number(self.address_cells())?;
            let (above, size) = cells.pair(parent.address_cells(), self.size_cells())?;
            let (Some(child), Some(above), Some(size)) = (child, above, size) else {
                continue;
            };
            if let Some(offset) = address.checked_sub(child)
                && offset < size
            {
                return parent.translate(above.checked_add(offset)?);
            }
        }
    }
}
