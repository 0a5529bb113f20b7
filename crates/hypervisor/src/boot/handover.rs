//! Memory and image that a firmware with services, such as EFI, hands over beside the device tree.

use spin::Once;

use board::{Board, Range};

/// Ranges that can be kept from the hypervisor. EFI's memory maps have some tens of entries.
pub const MAX_RANGES: usize = 128;

static HANDOVER: Once<Handover> = Once::new();

/// The system image, and the memory that stays the firmware's.
#[derive(Clone, Debug)]
pub struct Handover {
    pub image: Range,
    kept: [Range; MAX_RANGES],
    count: usize,
}

impl Handover {
    /// Handover without kept ranges.
    #[must_use]
    pub const fn new(image: Range) -> Self {
        Self {
            image,
            kept: [Range { start: 0, size: 0 }; MAX_RANGES],
            count: 0,
        }
    }

    /// Reserves `range` for the firmware. A range that begins at the end of the last one is merged with it.
    ///
    /// # Errors
    /// [`Full`].
    pub fn keep(&mut self, range: Range) -> Result<(), Full> {
        if let Some(last) = self.kept[..self.count].last_mut()
            && last.end() == range.start
        {
            last.size = last.size.saturating_add(range.size);
            return Ok(());
        }
        *self.kept.get_mut(self.count).ok_or(Full)? = range;
        self.count += 1;
        Ok(())
    }

    /// Ranges that nothing else may be placed in.
    #[must_use]
    pub fn kept(&self) -> &[Range] {
        &self.kept[..self.count]
    }
}

/// More than [`MAX_RANGES`] are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Stores `handover` for the hypervisor's start.
pub fn leave(handover: Handover) {
    HANDOVER.call_once(|| handover);
}

/// Returns true if the firmware named its own memory, so that nothing need be guessed.
#[must_use]
pub fn is_complete() -> bool {
    HANDOVER.is_completed()
}

/// Adds the firmware's image and ranges to the board.
#[must_use]
pub fn complete(board: Board) -> Board {
    match HANDOVER.get() {
        Some(handover) => with(board, handover),
        None => board,
    }
}

fn with(mut board: Board, handover: &Handover) -> Board {
    board.initrd = Some(handover.image);
    board.reserved.push(handover.image);
    board.reserved.extend(handover.kept());
    board
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, size: u64) -> Range {
        Range { start, size }
    }

    #[test]
    fn adjacent_ranges_merge_and_excess_is_refused() {
        let mut handover = Handover::new(range(0, 0));
        handover.keep(range(0x1000, 0x1000)).unwrap();
        handover.keep(range(0x2000, 0x3000)).unwrap();
        assert_eq!(handover.kept(), [range(0x1000, 0x4000)]);
        for index in 1..MAX_RANGES as u64 {
            handover.keep(range(index << 20, 0x1000)).unwrap();
        }
        assert_eq!(handover.keep(range(1 << 40, 1)), Err(Full));
        assert_eq!(handover.kept().len(), MAX_RANGES);
    }
}
