//! Against a set of page numbers.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PAGES: u64 = 64;

fn pages(base: u64, count: u64) -> HostRegion {
    HostRegion::new(HostPhysical::new(base * PAGE_SIZE), count * PAGE_SIZE).unwrap()
}

fn bytes(base: u64, size: u64) -> HostRegion {
    HostRegion::new(HostPhysical::new(base), size).unwrap()
}

/// The free pages by number.
fn numbers(allocator: &FreeRegions) -> BTreeSet<u64> {
    allocator
        .free_regions()
        .iter()
        .flat_map(|region| region.base().raw() / PAGE_SIZE..region.end().raw() / PAGE_SIZE)
        .collect()
}

#[test]
fn a_board_less_what_is_held() {
    // QEMU's map: firmware at the bottom, our image at 2 MiB, the initrd and the tree at the top.
    let memory = bytes(0x8000_0000, 1 << 30);
    let reserved = [
        bytes(0x8000_0000, 0x6_0000),
        bytes(0x8020_0000, 300_000),
        bytes(0xbf00_0123, 777),
        bytes(0xbfe0_0000, 0x20_0000),
    ];
    let allocator = FreeRegions::new([memory], reserved);
    assert_eq!(
        allocator.free_regions(),
        [
            bytes(0x8006_0000, 0x1a_0000),
            bytes(0x8024_a000, 0xbf00_0000 - 0x8024_a000),
            bytes(0xbf00_1000, 0xbfe0_0000 - 0xbf00_1000),
        ]
    );
    assert!(
        reserved
            .iter()
            .all(|held| !numbers(&allocator).contains(&(held.base().raw() >> 12)))
    );
}

#[test]
fn the_smallest_region_that_fits_is_used() {
    let mut allocator = FreeRegions::new([pages(0, 40), pages(50, 4)], []);
    assert_eq!(allocator.allocate(PAGE_SIZE, PAGE_SIZE), Some(pages(50, 1)));
    assert_eq!(
        allocator.allocate(16 << 10, 16 << 10),
        Some(pages(0, 4)),
        "alignment"
    );
    assert_eq!(allocator.allocate(37 * PAGE_SIZE, 1), None);
    assert_eq!(allocator.allocate(0, PAGE_SIZE), None);
    assert_eq!(allocator.allocate(u64::MAX, PAGE_SIZE), None);
    assert_eq!(allocator.allocate(PAGE_SIZE, 3), None, "not a power of two");
}

#[test]
fn what_is_given_back_twice_is_refused() {
    let mut allocator = FreeRegions::new([pages(0, 8)], []);
    let block = allocator.allocate(2 * PAGE_SIZE, PAGE_SIZE).unwrap();
    assert_eq!(allocator.release(block), Ok(()));
    assert_eq!(allocator.release(block), Err(NotInUse(block)));
    assert_eq!(allocator.free_regions(), [pages(0, 8)], "joined again");
    assert_eq!(
        allocator.release(bytes(0x1_0001, 4096)),
        Err(NotInUse(bytes(0x1_0001, 4096)))
    );
}

proptest! {
    #[test]
    fn construction(
        memory in prop::collection::vec((0u64..PAGES * 4096, 0u64..20 * 4096), 0..6),
        reserved in prop::collection::vec((0u64..PAGES * 4096, 0u64..9000), 0..6),
    ) {
        let regions = |list: &[(u64, u64)]| -> Vec<HostRegion> {
            list.iter().map(|&(base, size)| bytes(base, size)).collect()
        };
        let (memory, reserved) = (regions(&memory), regions(&reserved));
        let allocator = FreeRegions::new(memory.clone(), reserved.clone());
        let free = numbers(&allocator);
        for number in 0..2 * PAGES {
            let page = pages(number, 1);
            let whole = memory.iter().any(|region| region.covers(page));
            let held = reserved.iter().any(|region| region.overlaps(page));
            prop_assert_eq!(free.contains(&number), whole && !held, "page {}", number);
        }
        for pair in allocator.free_regions().windows(2) {
            prop_assert!(pair[0].end() < pair[1].base(), "sorted, apart and joined");
        }
    }

    #[test]
    fn blocks_come_and_go(
        steps in prop::collection::vec((any::<bool>(), 1u64..12, 0u32..4, any::<usize>()), 0..100),
    ) {
        let mut allocator = FreeRegions::new([pages(1, 30), pages(40, 24)], [pages(7, 2)]);
        let all = numbers(&allocator);
        let mut held: Vec<HostRegion> = Vec::new();
        for (allocate, count, power, pick) in steps {
            if allocate {
                let alignment = PAGE_SIZE << power;
                let free = numbers(&allocator);
                let possible = (0..PAGES).step_by(1 << power)
                    .any(|base| (base..base + count).all(|page| free.contains(&page)));
                let block = allocator.allocate(count * PAGE_SIZE, alignment);
                prop_assert_eq!(block.is_some(), possible, "found if and only if there is one");
                if let Some(block) = block {
                    prop_assert!(block.base().is_aligned(alignment));
                    prop_assert_eq!(block.size(), count * PAGE_SIZE);
                    held.push(block);
                }
            } else if !held.is_empty() {
                let block = held.swap_remove(pick % held.len());
                prop_assert_eq!(allocator.release(block), Ok(()));
            }
            // Free and held together are all there is, each page once.
            let mut seen = numbers(&allocator);
            for block in &held {
                for number in block.base().raw() / PAGE_SIZE..block.end().raw() / PAGE_SIZE {
                    prop_assert!(seen.insert(number));
                }
            }
            prop_assert_eq!(&seen, &all);
        }
    }

    #[test]
    fn any_region_can_be_reserved(base in any::<u64>(), size in any::<u64>()) {
        if let Some(region) = HostRegion::new(HostPhysical::new(base), size) {
            let mut allocator = FreeRegions::new([pages(0, PAGES)], [region]);
            let _ = allocator.release(region);
        }
    }
}
