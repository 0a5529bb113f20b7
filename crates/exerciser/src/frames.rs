//! Memory that nobody uses yet, given out in 4 KiB frames and never taken back.

use crate::arch::boot;
use crate::arch::memory;
use crate::arch::sync::Lock;

/// Bytes in a frame.
pub const FRAME: u64 = 4096;

/// The free run of memory: next byte to give out, and its end.
static FREE: Lock<(u64, u64)> = Lock::new((0, 0));

/// Takes the longest run of `memory` that holds none of the image and of the `used` ranges.
pub fn open(memory: (u64, u64), used: &[(u64, u64)]) {
    let image = boot::image();
    let blocks = || {
        used.iter()
            .copied()
            .chain([image])
            .filter(|(start, end)| end > start)
    };
    let mut best = (0, 0);
    // A free run starts at the memory's start or at a block's end, and ends at the next block or the end.
    for start in blocks().map(|(_, end)| end).chain([memory.0]) {
        if start < memory.0 || start >= memory.1 || blocks().any(|(s, e)| s <= start && start < e) {
            continue;
        }
        let end = blocks()
            .map(|(s, _)| s)
            .filter(|&s| s >= start)
            .min()
            .unwrap_or(memory.1)
            .min(memory.1);
        let run = (start.next_multiple_of(FRAME), end / FRAME * FRAME);
        if run.1.saturating_sub(run.0) > best.1 - best.0 {
            best = run;
        }
    }
    *FREE.lock() = best;
}

/// Bytes that are left.
pub fn left() -> u64 {
    let free = FREE.lock();
    free.1 - free.0
}

/// Takes `count` frames in a row, zeroed; `None` when there are not so many.
pub fn take(count: u64) -> Option<u64> {
    let start = take_aligned(count, FRAME)?;
    for word in 0..count * FRAME / 8 {
        memory::store(start + 8 * word, 0);
    }
    Some(start)
}

/// Takes `count` frames in a row at a multiple of `alignment`, as they are.
pub fn take_aligned(count: u64, alignment: u64) -> Option<u64> {
    let mut free = FREE.lock();
    let start = free.0.checked_next_multiple_of(alignment)?;
    let end = start.checked_add(count.checked_mul(FRAME)?)?;
    if end > free.1 {
        return None;
    }
    free.0 = end;
    Some(start)
}
