//! The computer's memory beside what firmware, hypervisor and system image take, and whether VMs of given sizes fit into it.

use abi::system::MEMORY_GRANULE;
use quantity::Bytes;
use std::ops::Range;

/// Where the board's memory begins.
const MEMORY_BASE: u64 = 0x8000_0000;
/// Bytes that the firmware and the hypervisor take at its beginning; generous.
const HYPERVISOR_END: u64 = MEMORY_BASE + (16 << 20);
/// Bytes that the board's device tree takes at its end; generous.
const TREE_SIZE: u64 = 4 << 20;

/// The pieces of a computer's memory that are left for VMs, beside firmware, hypervisor, device tree and a
/// system image of `image` bytes. QEMU puts the image half way into the memory, but not more than 512 MiB behind
/// the hypervisor's beginning, so the memory falls into two pieces.
pub fn free_memory(memory: Bytes, image: u64) -> [Range<u64>; 2] {
    let end = MEMORY_BASE.saturating_add(memory.0);
    let kernel = MEMORY_BASE + (2 << 20);
    let image_start = kernel + (memory.0 / 2).min(512 << 20);
    let image_end = image_start.saturating_add(image);
    let low = HYPERVISOR_END..image_start.max(HYPERVISOR_END);
    let high_end = end.saturating_sub(TREE_SIZE);
    [low, image_end.min(high_end)..high_end]
}

/// Puts VMs of these sizes into the free pieces, the largest first, each in one piece that begins at a
/// multiple of the G-stage's megapage. Returns the first size that finds no room.
pub fn place(mut free: Vec<Range<u64>>, sizes: &[Bytes]) -> Result<(), Bytes> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    for size in sizes.into_iter().rev() {
        let start = |piece: &Range<u64>| piece.start.next_multiple_of(MEMORY_GRANULE);
        let fits = |piece: &&mut Range<u64>| start(piece).saturating_add(size.0) <= piece.end;
        let piece = free.iter_mut().find(fits).ok_or(size)?;
        piece.start = start(piece) + size.0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_need_a_large_enough_piece() {
        let mib = |size: u64| Bytes(size << 20);
        let fits = |memory, sizes: &[u64]| {
            let sizes: Vec<Bytes> = sizes.iter().map(|size| mib(*size)).collect();
            place(free_memory(mib(memory), 44 << 20).to_vec(), &sizes)
        };
        assert_eq!(fits(2048, &[512, 512]), Ok(()));
        // The sum would fit, but the image lies in the middle.
        assert_eq!(fits(1024, &[512]), Err(mib(512)));
        assert_eq!(fits(1024, &[400, 400]), Ok(()));
        assert_eq!(fits(2048, &[512, 512, 512]), Err(mib(512)));
        assert_eq!(fits(64, &[64]), Err(mib(64)));
    }
}
