//! Small boards and large ones.

use proptest::prelude::*;

use super::*;
use crate::memory::address::HostPhysical;

fn region(base: u64, size: u64) -> HostRegion {
    HostRegion::new(HostPhysical::new(base), size).unwrap()
}

/// A board with `gibibytes` of RAM at 2 GiB, the first 6 MiB held.
fn board(gibibytes: u64) -> FrameAllocator {
    let memory = region(0x8000_0000, gibibytes << 30);
    FrameAllocator::new([memory], [region(0x8000_0000, 6 << 20)])
}

#[test]
fn large_vms_begin_on_a_gibibyte_and_small_ones_use_the_rest() {
    let mut allocator = board(4);
    let places = place(&mut allocator, &[512 << 20, 2 << 30, 1 << 30]).unwrap();
    assert!(places[1].base().is_aligned(GIGAPAGE));
    assert!(places[2].base().is_aligned(GIGAPAGE));
    assert!(
        places[0].end().raw() <= 0xc000_0000,
        "the small one lies in the spoilt gibibyte"
    );
    assert_eq!(
        allocator.free_bytes(),
        (4 << 30) - (6 << 20) - (512 << 20) - (3 << 30)
    );
}

#[test]
fn without_an_aligned_place_any_place_will_do() {
    let mut allocator = board(2);
    let places = place(&mut allocator, &[1500 << 20]).unwrap();
    assert_eq!(places, [region(0x8060_0000, 1500 << 20)]);
}

#[test]
fn what_does_not_fit_is_named_and_nothing_is_taken() {
    let mut allocator = board(1);
    let before = allocator.clone();
    let error = place(&mut allocator, &[256 << 20, 900 << 20]).unwrap_err();
    // The larger goes first; what is left then is 1024 - 6 - 900 = 118 MiB.
    assert_eq!(
        error,
        PlacementError::NoRoom {
            index: 0,
            size: 256 << 20,
            largest: 118 << 20
        }
    );
    assert_eq!(allocator, before);
    let bad = place(&mut allocator, &[3 << 20]);
    assert_eq!(
        bad,
        Err(PlacementError::BadSize {
            index: 0,
            size: 3 << 20
        })
    );
    assert_eq!(
        place(&mut allocator, &[0]),
        Err(PlacementError::BadSize { index: 0, size: 0 })
    );
}

proptest! {
    #[test]
    fn places_are_apart_and_aligned(
        sizes in prop::collection::vec(1u64..1500, 0..8), gibibytes in 1u64..9,
    ) {
        let sizes: Vec<u64> = sizes.iter().map(|megapages| megapages * MEGAPAGE).collect();
        let mut allocator = board(gibibytes);
        let before = allocator.free_bytes();
        let total: u64 = sizes.iter().sum();
        if let Ok(places) = place(&mut allocator, &sizes) {
            for (index, place) in places.iter().enumerate() {
                prop_assert_eq!(place.size(), sizes[index]);
                prop_assert!(place.base().is_aligned(MEGAPAGE));
                prop_assert!(place.base().raw() >= 0x8060_0000);
                prop_assert!(place.end().raw() <= 0x8000_0000 + (gibibytes << 30));
                prop_assert!(places[index + 1..].iter().all(|other| !other.overlaps(*place)));
            }
            prop_assert_eq!(allocator.free_bytes(), before - total);
        } else {
            // With one VM only the size can be in the way.
            prop_assert!(sizes.len() > 1 || total > before);
        }
    }
}
