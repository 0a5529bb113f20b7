//! EFI's memory map: the memory that stays the firmware's after its boot services have ended.

use core::mem::offset_of;

use uefi_raw::table::boot::{MemoryDescriptor, MemoryType};

use crate::boot::handover::{Full, Handover};
use board::Range;

/// A page of EFI, in bytes (UEFI, section 7.2).
pub const PAGE: u64 = 4096;

/// Returns true if memory of this type is free once the boot services have ended (UEFI, section 7.2, "Memory Type Usage after
/// ExitBootServices").
fn becomes_free(kind: MemoryType) -> bool {
    matches!(
        kind,
        MemoryType::LOADER_CODE
            | MemoryType::LOADER_DATA
            | MemoryType::BOOT_SERVICES_CODE
            | MemoryType::BOOT_SERVICES_DATA
            | MemoryType::CONVENTIONAL
    )
}

/// Reserves in `handover` all of `map` that does not become free. Each descriptor takes `size` bytes, of which the first are those
/// that are known.
///
/// # Errors
/// There are more ranges than can be kept.
pub fn keep(handover: &mut Handover, map: &[u8], size: usize) -> Result<(), Full> {
    for descriptor in map.chunks_exact(size.max(size_of::<MemoryDescriptor>())) {
        let word = |at: usize| {
            let bytes = descriptor.get(at..).and_then(<[u8]>::first_chunk);
            u64::from_le_bytes(bytes.copied().unwrap_or_default())
        };
        // The type is a half of its word; what lies behind it is padding.
        let kind = word(offset_of!(MemoryDescriptor, ty)) as u32;
        if !becomes_free(MemoryType(kind)) {
            let pages = word(offset_of!(MemoryDescriptor, page_count));
            handover.keep(Range {
                start: word(offset_of!(MemoryDescriptor, phys_start)),
                size: pages.saturating_mul(PAGE),
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map whose descriptors take 48 bytes, as firmwares have them: type, start, pages.
    fn map(entries: &[(u32, u64, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, start, pages) in entries {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(0xdead_beef_u32.to_le_bytes());
            for word in [*start, 0, *pages, 0xf, 0x5555] {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    #[test]
    fn what_is_not_free_afterwards_is_kept() {
        let empty = Range { start: 0, size: 0 };
        let mut handover = Handover::new(empty);
        // The numbers of the types, and which of them are free, from UEFI, tables 7.6 and 7.10.
        let free = [1, 2, 3, 4, 7];
        let entries: Vec<_> = (0..=15)
            .map(|kind| (kind, u64::from(kind) << 24, 16))
            .collect();
        keep(&mut handover, &map(&entries), 48).unwrap();
        let kept: Vec<_> = handover
            .kept()
            .iter()
            .map(|range| range.start >> 24)
            .collect();
        let expected: Vec<_> = (0..=15).filter(|kind| !free.contains(kind)).collect();
        assert_eq!(kept, expected);
        assert!(handover.kept().iter().all(|range| range.size == 16 << 12));
    }

    #[test]
    fn a_map_that_lies_does_no_harm() {
        let mut handover = Handover::new(Range { start: 0, size: 0 });
        keep(&mut handover, &map(&[(0, u64::MAX, u64::MAX)]), 48).unwrap();
        keep(&mut handover, &map(&[(0, 0, 1)])[..30], 48).unwrap();
        keep(&mut handover, &map(&[(7, 0, 1)]), 0).unwrap();
        assert_eq!(handover.kept().len(), 1);
        let many: Vec<_> = (0..1000).map(|index| (0, index << 20, 1)).collect();
        assert_eq!(keep(&mut handover, &map(&many), 48), Err(Full));
    }
}
