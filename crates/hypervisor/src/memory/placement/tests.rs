//! Small boards and large ones.

use proptest::prelude::*;
use scheduler::VmId;

use super::*;
use crate::memory::address::HostPhysical;

fn region(base: u64, size: u64) -> HostRegion {
    HostRegion::new(HostPhysical::new(base), size).unwrap()
}

/// A board with `gibibytes` of RAM at 2 GiB, the first 6 MiB held.
fn board(gibibytes: u64) -> Frames {
    let memory = region(0x8000_0000, gibibytes << 30);
    // SAFETY: no code reaches the memory.
    unsafe { Frames::new([memory], [region(0x8000_0000, 6 << 20)]) }
}

/// VM n wants the n-th of these sizes.
fn place_all(frames: &mut Frames, sizes: &[u64]) -> Result<Vec<HostRegion>, PlacementError> {
    let owner = |index| FrameOwner::Vm(VmId::new(index as u16).unwrap());
    let wanted = sizes.iter().enumerate();
    let wanted: Vec<_> = wanted.map(|(index, size)| (owner(index), *size)).collect();
    let places = place(frames, &wanted)?;
    Ok(places.into_iter().map(OwnedRegion::region).collect())
}

#[test]
fn large_vms_align_and_small_fill_gaps() {
    let mut frames = board(4);
    let places = place_all(&mut frames, &[512 << 20, 2 << 30, 1 << 30]).unwrap();
    assert!(places[1].base().is_aligned(FrameSize::Gigapage.bytes()));
    assert!(places[2].base().is_aligned(FrameSize::Gigapage.bytes()));
    assert!(
        places[0].end().raw() <= 0xc000_0000,
        "the small one lies in the spoilt gibibyte"
    );
    assert_eq!(
        frames.free_bytes(),
        (4 << 30) - (6 << 20) - (512 << 20) - (3 << 30)
    );
}

#[test]
fn unaligned_placement_is_the_fallback() {
    let mut frames = board(2);
    let places = place_all(&mut frames, &[1500 << 20]).unwrap();
    assert_eq!(places, [region(0x8060_0000, 1500 << 20)]);
}

#[test]
fn unplaceable_vm_is_named_without_allocation() {
    let mut frames = board(1);
    let before = frames.clone();
    let error = place_all(&mut frames, &[256 << 20, 900 << 20]).unwrap_err();
    // The larger goes first; what is left then is 1024 - 6 - 900 = 118 MiB.
    assert_eq!(
        error,
        PlacementError::NoRoom {
            index: 0,
            size: 256 << 20,
            largest: 118 << 20
        }
    );
    assert_eq!(frames, before);
    let bad = place_all(&mut frames, &[3 << 20]);
    assert_eq!(
        bad,
        Err(PlacementError::BadSize {
            index: 0,
            size: 3 << 20
        })
    );
    assert_eq!(
        place_all(&mut frames, &[0]),
        Err(PlacementError::BadSize { index: 0, size: 0 })
    );
}

proptest! {
    #[test]
    fn places_are_apart_and_aligned(
        sizes in prop::collection::vec(1u64..1500, 0..8), gibibytes in 1u64..9,
    ) {
        let sizes: Vec<u64> = sizes.iter().map(|megapages| megapages * FrameSize::Megapage.bytes()).collect();
        let mut frames = board(gibibytes);
        let before = frames.free_bytes();
        let total: u64 = sizes.iter().sum();
        if let Ok(places) = place_all(&mut frames, &sizes) {
            for (index, place) in places.iter().enumerate() {
                prop_assert_eq!(place.size(), sizes[index]);
                prop_assert!(place.base().is_aligned(FrameSize::Megapage.bytes()));
                prop_assert!(place.base().raw() >= 0x8060_0000);
                prop_assert!(place.end().raw() <= 0x8000_0000 + (gibibytes << 30));
                prop_assert!(places[index + 1..].iter().all(|other| !other.overlaps(*place)));
            }
            prop_assert_eq!(frames.free_bytes(), before - total);
        } else {
            // With one VM only the size can be in the way.
            prop_assert!(sizes.len() > 1 || total > before);
        }
    }
}
