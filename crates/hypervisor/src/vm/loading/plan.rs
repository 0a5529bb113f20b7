//! Pieces in which a guest's memory is filled: pure, so that loading can be interrupted and continued anywhere.

use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::sort::sort_by_key;
use crate::vm::image::Layout;

/// Contents of a piece of a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Zeros, so that no earlier contents remain.
    Zeros,
    Kernel,
    Initrd,
    DeviceTree,
}

/// Bytes of the parts' files. A kernel takes more memory than its file has bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    pub kernel: u64,
    pub initrd: u64,
    pub device_tree: u64,
}

/// A piece that is filled in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub to: GuestPhysical,
    pub length: u64,
    pub source: Source,
    /// Offset in its source.
    pub offset: u64,
}

/// Parts of a layout, and the gaps before and behind them.
const PARTS: usize = 3;
const PIECES: usize = 2 * PARTS + 1;

/// Memory that is still to be filled.
#[derive(Clone, Debug)]
pub struct Plan {
    pieces: [Piece; PIECES],
    /// Number of the pieces that are filled.
    filled: usize,
}

impl Plan {
    /// Plan that fills the parts of `layout`, and with `zeros` the rest of `memory`.
    #[must_use]
    pub fn new(memory: GuestRegion, layout: &Layout, lengths: Lengths, zeros: bool) -> Self {
        let part = |region: GuestRegion, length: u64, source| Piece {
            to: region.base(),
            length: length.min(region.size()),
            source,
            offset: 0,
        };
        // Without an initrd there is a piece of no bytes at the beginning.
        let initrd = layout
            .initrd
            .map_or((memory, 0), |region| (region, lengths.initrd));
        let mut parts = [
            part(layout.kernel, lengths.kernel, Source::Kernel),
            part(initrd.0, initrd.1, Source::Initrd),
            part(layout.device_tree, lengths.device_tree, Source::DeviceTree),
        ];
        sort_by_key(&mut parts, |piece| piece.to.raw());
        let mut from = memory.base().raw();
        let ends = parts.map(|piece| (piece.to.raw(), piece.length));
        let mut ends = ends.into_iter().chain([(memory.end().raw(), 0)]);
        let gaps: [Piece; PARTS + 1] = core::array::from_fn(|_| {
            let (start, length) = ends.next().unwrap_or((from, 0));
            let gap = Piece {
                to: GuestPhysical::new(from),
                length: if zeros { start.saturating_sub(from) } else { 0 },
                source: Source::Zeros,
                offset: 0,
            };
            // A part of no bytes may lie where another one begins.
            from = from.max(start.saturating_add(length));
            gap
        });
        let mut pieces = parts.into_iter().chain(gaps);
        let nothing = Piece {
            to: memory.base(),
            length: 0,
            source: Source::Zeros,
            offset: 0,
        };
        Self {
            pieces: core::array::from_fn(|_| pieces.next().unwrap_or(nothing)),
            filled: 0,
        }
    }

    /// Next piece, of at most so many bytes for its source; `None` when all is filled.
    pub fn next(&mut self, limit: impl Fn(Source) -> u64) -> Option<Piece> {
        while self.pieces.get(self.filled)?.length == 0 {
            self.filled += 1;
        }
        let part = self.pieces.get_mut(self.filled)?;
        let piece = Piece {
            length: part.length.min(limit(part.source).max(1)),
            ..*part
        };
        part.to = part.to.checked_add(piece.length).unwrap_or(part.to);
        part.length -= piece.length;
        part.offset += piece.length;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 0x8000_0000;
    const PAGE: u64 = 4096;

    fn region(page: u64, length: u64) -> GuestRegion {
        GuestRegion::new(GuestPhysical::new(BASE + page * PAGE), length).unwrap()
    }

    #[test]
    fn planning_allocates_nothing() {
        let layout = Layout {
            kernel: region(1, PAGE),
            initrd: None,
            device_tree: region(12, PAGE),
        };
        let lengths = Lengths {
            kernel: PAGE,
            initrd: 0,
            device_tree: PAGE,
        };
        let count = crate::heap::allocations(|| {
            let mut plan = Plan::new(region(0, 16 * PAGE), &layout, lengths, true);
            assert_eq!(core::iter::from_fn(|| plan.next(|_| PAGE)).count(), 16);
        });
        assert_eq!(count, 0);
    }

    proptest! {
        /// Every byte of the parts is written once, from its place in the file; with zeros every other byte is zeroed
        /// once, and without nothing else is touched.
        #[test]
        fn every_byte_is_filled_once(
            kernel in 1..3 * PAGE, behind in 0..PAGE, initrd in prop::option::of(1..3 * PAGE),
            tree in 1..2 * PAGE, limit in 1..2 * PAGE, zeros: bool, first in 0..2_u64,
        ) {
            let memory = region(0, 16 * PAGE);
            let layout = Layout {
                kernel: region(first, kernel + behind),
                initrd: initrd.map(|length| region(6, length)),
                device_tree: region(12, tree),
            };
            let lengths = Lengths { kernel, initrd: initrd.unwrap_or(0), device_tree: tree };
            let mut plan = Plan::new(memory, &layout, lengths, zeros);
            let mut written = vec![None; memory.size() as usize];
            while let Some(piece) = plan.next(|_| limit) {
                prop_assert!(piece.length <= limit);
                for byte in 0..piece.length {
                    let place = &mut written[(piece.to.raw() - BASE + byte) as usize];
                    prop_assert_eq!(*place, None);
                    *place = Some((piece.source, piece.offset + byte));
                }
            }
            for (at, found) in written.into_iter().enumerate() {
                let at = at as u64;
                let within = |page: u64, length: u64| at.checked_sub(page * PAGE).filter(|at| *at < length);
                let part = within(first, kernel).map(|at| (Source::Kernel, at))
                    .or(within(6, lengths.initrd).map(|at| (Source::Initrd, at)))
                    .or(within(12, tree).map(|at| (Source::DeviceTree, at)));
                match part {
                    Some(_) => prop_assert_eq!(found, part),
                    None if zeros => prop_assert_eq!(found.map(|(source, _)| source), Some(Source::Zeros)),
                    None => prop_assert_eq!(found, None),
                }
            }
        }
    }
}
