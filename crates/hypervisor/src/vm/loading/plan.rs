//! In which pieces a guest's memory is filled: pure, so that loading can be left off and gone on with anywhere.

use alloc::vec::Vec;

use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::vm::image::Layout;

/// What is put into a piece of a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Zeros: whatever was there before is nobody's business.
    Zeros,
    Kernel,
    Initrd,
    DeviceTree,
}

/// How long the parts' files are. A kernel takes more memory than its file has bytes.
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
    /// Where it begins in its source.
    pub offset: u64,
}

/// What is still to be filled.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// From the last to the first.
    left: Vec<Piece>,
}

impl Plan {
    /// Fills the parts of `layout`, and with `zeros` everything else of `memory`.
    #[must_use]
    pub fn new(memory: GuestRegion, layout: &Layout, lengths: Lengths, zeros: bool) -> Self {
        let part = |region: GuestRegion, length: u64, source| Piece {
            to: region.base(),
            length: length.min(region.size()),
            source,
            offset: 0,
        };
        let initrd = layout
            .initrd
            .map(|region| part(region, lengths.initrd, Source::Initrd));
        let parts = [
            Some(part(layout.kernel, lengths.kernel, Source::Kernel)),
            initrd,
            Some(part(
                layout.device_tree,
                lengths.device_tree,
                Source::DeviceTree,
            )),
        ];
        let mut left: Vec<Piece> = parts.into_iter().flatten().collect();
        left.sort_unstable_by_key(|piece| piece.to.raw());
        if zeros {
            let mut gaps = Vec::new();
            let mut from = memory.base().raw();
            let ends = left.iter().map(|piece| (piece.to.raw(), piece.length));
            for (start, length) in ends.chain([(memory.end().raw(), 0)]) {
                gaps.push(Piece {
                    to: GuestPhysical::new(from),
                    length: start.saturating_sub(from),
                    source: Source::Zeros,
                    offset: 0,
                });
                from = start.saturating_add(length);
            }
            left.extend(gaps);
        }
        left.retain(|piece| piece.length > 0);
        left.reverse();
        Self { left }
    }

    /// The next piece, of at most so many bytes for its source; nothing when all is filled.
    pub fn next(&mut self, limit: impl Fn(Source) -> u64) -> Option<Piece> {
        let part = self.left.last_mut()?;
        let limit = limit(part.source);
        let piece = Piece {
            length: part.length.min(limit.max(1)),
            ..*part
        };
        if piece.length == part.length {
            self.left.pop();
        } else {
            part.to = part.to.checked_add(piece.length).unwrap_or(part.to);
            part.length -= piece.length;
            part.offset += piece.length;
        }
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

    proptest! {
        /// Every byte of the parts is written once, from its place in the file; with zeros every other byte is zeroed
        /// once, and without nothing else is touched.
        #[test]
        fn every_byte_is_filled_once(
            kernel in 1..3 * PAGE, behind in 0..PAGE, initrd in prop::option::of(1..3 * PAGE),
            tree in 1..2 * PAGE, limit in 1..2 * PAGE, zeros: bool,
        ) {
            let memory = region(0, 16 * PAGE);
            let layout = Layout {
                kernel: region(1, kernel + behind),
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
                let part = within(1, kernel).map(|at| (Source::Kernel, at))
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
