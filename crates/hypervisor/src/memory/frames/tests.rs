//! Against a map from pages to their owners.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const MEBIBYTE: u64 = 1 << 20;
const BASE: u64 = 0x8000_0000;

fn region(base: u64, size: u64) -> HostRegion {
    HostRegion::new(HostPhysical::new(base), size).unwrap()
}

fn vm(number: u16) -> FrameOwner {
    FrameOwner::Vm(VmId::new(number).unwrap())
}

fn frames_of<const N: usize, const M: usize>(
    memory: [HostRegion; N],
    reserved: [HostRegion; M],
) -> Frames {
    // SAFETY: no code reaches the memory.
    unsafe { Frames::new(memory, reserved) }
}

fn board(mebibytes: u64) -> Frames {
    frames_of([region(BASE, mebibytes * MEBIBYTE)], [])
}

#[test]
fn frames_of_every_size_are_aligned() {
    let mut frames = frames_of([region(BASE, 4 << 30)], [region(BASE, 5 * PAGE_SIZE)]);
    for size in FrameSize::ALL {
        let frame = frames.give_frame(vm(0), size).unwrap();
        assert!(frame.base().is_aligned(size.bytes()), "{size:?}");
        assert_eq!(frames.owner_of(frame.base()), Some(vm(0)));
    }
    let all: u64 = FrameSize::ALL.iter().map(|size| size.bytes()).sum();
    assert_eq!(frames.bytes_of(vm(0)), all);
    assert_eq!(
        frames.give_frame(vm(0), FrameSize::Gigapage).map(|_| ()),
        Some(())
    );
    assert_eq!(
        frames.give_frame(vm(0), FrameSize::Gigapage).map(|_| ()),
        Some(())
    );
    assert_eq!(
        frames.give_frame(vm(0), FrameSize::Gigapage),
        None,
        "the first gibibyte is spoilt"
    );
}

#[test]
fn pages_of_two_vms_do_not_interleave() {
    let mut frames = board(4);
    let mut pages = |number| {
        frames
            .give_frame(vm(number), FrameSize::Page)
            .unwrap()
            .base()
            .raw()
            / SHEET
    };
    let (one, two) = (pages(1), pages(2));
    assert_ne!(one, two);
    assert_eq!(pages(1), one);
    assert_eq!(pages(2), two);
}

#[test]
fn freed_pages_merge_into_large_frame() {
    let mut frames = board(2);
    let whole = frames.clone();
    let pages: Vec<_> = std::iter::from_fn(|| frames.give_frame(vm(0), FrameSize::Page)).collect();
    assert_eq!(pages.len(), 512);
    assert_eq!(frames.give_frame(vm(1), FrameSize::Megapage), None);
    // Not in the order in which they were given.
    for page in pages
        .iter()
        .step_by(2)
        .chain(pages.iter().skip(1).step_by(2))
    {
        assert_eq!(frames.take_back(vm(0), page.region()), Ok(()));
    }
    assert_eq!(frames.free_regions(), whole.free_regions());
    assert!(frames.give_frame(vm(1), FrameSize::Megapage).is_some());
}

#[test]
fn nobody_gives_back_what_is_not_his() {
    let mut frames = board(8);
    let page = frames.give_frame(vm(0), FrameSize::Page).unwrap().region();
    let large = frames.give(vm(0), 3 * MEBIBYTE, 2 * MEBIBYTE).unwrap();
    let large = large.region();
    let before = frames.clone();
    let part = region(large.base().raw(), MEBIBYTE);
    let two = region(page.base().raw(), 2 * PAGE_SIZE);
    let odd = region(page.base().raw() + 1, PAGE_SIZE);
    for (owner, piece) in [
        (vm(1), page),
        (FrameOwner::Hypervisor, large),
        (vm(0), part),
        (vm(0), two),
        (vm(0), odd),
        (vm(0), region(page.base().raw(), 0)),
        (vm(0), region(0, PAGE_SIZE)),
    ] {
        assert_eq!(frames.take_back(owner, piece), Err(NotGiven(piece)));
    }
    assert_eq!(frames, before);
    assert_eq!(frames.take_back(vm(0), page), Ok(()));
    assert_eq!(frames.take_back(vm(0), page), Err(NotGiven(page)), "twice");
}

#[derive(Clone, Debug)]
enum Step {
    Give { owner: u16, pages: u64, power: u32 },
    TakeBack { pick: usize },
    TakeAll { owner: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    let pages = prop_oneof![3 => 1..80u64, 1 => Just(512)];
    prop_oneof![
        6 => (0..3u16, pages, 0..10u32).prop_map(|(owner, pages, power)| Step::Give { owner, pages, power }),
        4 => any::<usize>().prop_map(|pick| Step::TakeBack { pick }),
        1 => (0..3u16).prop_map(|owner| Step::TakeAll { owner }),
    ]
}

proptest! {
    /// No frame is given twice, each has one owner, all come back, and then all is in one piece.
    #[test]
    fn frames_come_and_go(steps in prop::collection::vec(step(), 0..120)) {
        let mut frames = board(8);
        let whole = frames.free_regions().to_vec();
        let mut held: Vec<(u16, HostRegion)> = Vec::new();
        for step in steps {
            match step {
                Step::Give { owner, pages, power } => {
                    let alignment = PAGE_SIZE << power;
                    if let Some(piece) = frames.give(vm(owner), pages * PAGE_SIZE, alignment) {
                        let piece = piece.region();
                        prop_assert!(piece.base().is_aligned(alignment));
                        prop_assert_eq!(piece.size(), pages * PAGE_SIZE);
                        prop_assert!(whole[0].covers(piece));
                        prop_assert!(held.iter().all(|(_, other)| !other.overlaps(piece)), "given twice");
                        prop_assert!(frames.free_regions().iter().all(|free| !free.overlaps(piece)));
                        held.push((owner, piece));
                    }
                }
                Step::TakeBack { pick } if !held.is_empty() => {
                    let (owner, piece) = held.swap_remove(pick % held.len());
                    prop_assert_eq!(frames.take_back(vm(owner), piece), Ok(()));
                    prop_assert_eq!(frames.owner_of(piece.base()), None);
                }
                Step::TakeBack { .. } => {}
                Step::TakeAll { owner } => {
                    held.retain(|(other, _)| *other != owner);
                    frames.take_back_all(vm(owner));
                    prop_assert_eq!(frames.bytes_of(vm(owner)), 0);
                }
            }
            for (owner, piece) in &held {
                prop_assert_eq!(frames.owner_of(piece.base()), Some(vm(*owner)));
                let last = HostPhysical::new(piece.end().raw() - 1);
                prop_assert_eq!(frames.owner_of(last), Some(vm(*owner)));
            }
            for owner in 0..3 {
                let own = held.iter().filter(|(other, _)| *other == owner);
                let bytes: u64 = own.map(|(_, piece)| piece.size()).sum();
                prop_assert_eq!(frames.bytes_of(vm(owner)), bytes);
            }
        }
        for owner in 0..3 {
            frames.take_back_all(vm(owner));
        }
        prop_assert_eq!(frames.free_regions(), &whole[..]);
    }
}
