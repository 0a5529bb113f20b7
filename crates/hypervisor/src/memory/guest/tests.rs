use super::*;
use crate::lock::{Mutex, place};
use crate::memory::address::{HostRegion, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, FrameSize, Frames};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The host's memory: what was written, 0 elsewhere.
#[derive(Default)]
struct Host(RefCell<BTreeMap<u64, u8>>);

impl Host {
    fn get(&self, at: u64) -> u8 {
        self.0.borrow().get(&at).copied().unwrap_or(0)
    }

    fn bytes<const N: usize>(&self, at: HostPhysical) -> [u8; N] {
        core::array::from_fn(|offset| self.get(at.raw() + offset as u64))
    }
}

impl HostMemory for Host {
    fn byte(&self, at: OwnedRegion) -> u8 {
        self.get(at.base().raw())
    }

    fn set_byte(&self, at: OwnedRegion, value: u8) {
        self.0.borrow_mut().insert(at.base().raw(), value);
    }

    fn set_word(&self, at: OwnedRegion, value: u32) {
        assert!(at.fits(4));
        self.copy(at, &value.to_ne_bytes());
    }

    fn set_half(&self, at: OwnedRegion, value: u16) {
        assert!(at.fits(2));
        self.copy(at, &value.to_ne_bytes());
    }

    fn set_doubleword(&self, at: OwnedRegion, value: u64) {
        assert!(at.fits(8));
        self.copy(at, &value.to_ne_bytes());
    }

    fn doubleword(&self, at: OwnedRegion) -> u64 {
        assert!(at.fits(8));
        u64::from_ne_bytes(self.bytes(at.base()))
    }

    fn half(&self, at: OwnedRegion) -> u16 {
        assert!(at.fits(2));
        u16::from_ne_bytes(self.bytes(at.base()))
    }

    fn copy(&self, at: OwnedRegion, data: &[u8]) {
        for (offset, byte) in data.iter().enumerate() {
            self.set_byte(at.skip(offset as u64), *byte);
        }
    }

    fn zero(&self, at: OwnedRegion) {
        (0..at.size()).for_each(|offset| self.set_byte(at.skip(offset), 0));
    }
}

fn guest(raw: u64) -> GuestPhysical {
    GuestPhysical::new(raw)
}

fn region(base: u64, size: u64) -> GuestRegion {
    GuestRegion::new(guest(base), size).expect("a region")
}

/// Pages whose frames come on the first touch.
#[derive(Debug)]
struct OnFirstTouch {
    owner: FrameOwner,
    state: Mutex<(Frames, BTreeMap<u64, OwnedRegion>), { place::TABLE }>,
}

impl Pages for OnFirstTouch {
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion> {
        let mut guard = self.state.lock();
        let (frames, pages) = &mut *guard;
        let number = from.raw() / PAGE_SIZE;
        if let Entry::Vacant(place) = pages.entry(number) {
            place.insert(frames.give_frame(self.owner, FrameSize::Page)?);
        }
        let offset = from.raw() % PAGE_SIZE;
        Some(pages[&number].skip(offset))
    }

    fn mapped(&self) -> &[Piece] {
        &[]
    }
}

#[test]
fn pages_may_come_on_the_first_touch() {
    let board =
        HostRegion::new(HostPhysical::new(1 << 30), (3 * PAGE_SIZE) << 6).expect("a region");
    let owner = FrameOwner::Vm(scheduler::VmId::new(0).expect("a VM"));
    // SAFETY: the model of the memory checks each address.
    let frames = unsafe { Frames::new([board], []) };
    let state = Mutex::new((frames, BTreeMap::new()));
    let pages = Box::new(OnFirstTouch { owner, state });
    let memory = GuestMemory::of_pages(region(0x8000_0000, 1 << 30), pages);
    let host = Host::default();
    // From the end of one page into another: the later one is touched first.
    let _ = memory.in_one(guest(0x8000_5000), 1).expect("a frame");
    let text = b"over the edge";
    let bytes = memory.bytes(guest(0x8000_4ffa), 13).expect("the guest's");
    bytes.copy_from(text, &host);
    let back: Vec<u8> = bytes.iter(&host).collect();
    assert_eq!(back, text);
    let ranges = memory.ranges(region(0x8000_4ffa, 13)).expect("the guest's");
    let sizes: Vec<u64> = ranges.map(|range| range.size()).collect();
    assert_eq!(sizes, [6, 7], "two frames");
    // When there is no frame left there is no memory, and no other guest's either.
    let all = memory.ranges(memory.region()).expect("the guest's");
    assert_eq!(
        all.map(|range| range.size()).sum::<u64>(),
        (3 * PAGE_SIZE) << 6
    );
    assert_eq!(memory.in_one(guest(0xbfff_f000), 8), None);
}

/// Guest memory whose pages, from 0x8000_0000 on, lie in these frames.
fn scattered(frames: &[u64]) -> GuestMemory {
    let piece = |(index, frame): (usize, &u64)| Piece {
        guest: region(0x8000_0000 + index as u64 * PAGE_SIZE, PAGE_SIZE),
        host: OwnedRegion::for_test(frame * PAGE_SIZE, PAGE_SIZE),
    };
    GuestMemory::new(frames.iter().enumerate().map(piece).collect()).expect("pages in order")
}

#[test]
fn identical_and_shifted_memory_is_one_range() {
    for shift in [0, 0x4000_0000] {
        let memory = GuestMemory::in_one_piece(
            region(0x8000_0000, 0x20_0000),
            OwnedRegion::for_test(0x8000_0000 + shift, 0x20_0000),
        )
        .expect("a piece");
        let ranges: Vec<_> = memory
            .ranges(region(0x8000_1ff8, 0x3000))
            .expect("the guest's")
            .collect();
        assert_eq!(ranges, [OwnedRegion::for_test(0x8000_1ff8 + shift, 0x3000)]);
        assert!(memory.ranges(region(0x801f_fff8, 16)).is_none());
        assert!(memory.in_one(guest(0x7fff_ffff), 1).is_none());
        assert!(!memory.holds(guest(0x8020_0000)));
    }
}

#[test]
fn scattered_pages_keep_byte_order() {
    let memory = scattered(&[7, 3, 9]);
    let host = Host::default();
    let bytes = memory
        .bytes(guest(0x8000_0ffe), 0x1004)
        .expect("the guest's");
    let data: Vec<u8> = (0..0x1004_u32).map(|index| index as u8).collect();
    bytes.copy_from(&data, &host);
    assert_eq!(host.get(7 * PAGE_SIZE + 0xfff), 1);
    assert_eq!(host.get(3 * PAGE_SIZE), 2);
    assert_eq!(host.get(9 * PAGE_SIZE), 2, "4098 is 2 again");
    assert!(bytes.iter(&host).eq(data));
    bytes.write(2, 0xee, &host);
    bytes.write(0x1004, 0xdd, &host);
    let rest = memory.bytes(guest(0x8000_1ffe), 4).expect("the guest's");
    rest.zero(&host);
    assert!(rest.iter(&host).eq([0; 4]));
    assert_eq!(host.get(3 * PAGE_SIZE), 0xee);
    assert_eq!(host.get(9 * PAGE_SIZE + 2), 0, "outside");
}

#[test]
fn word_stores_require_alignment_and_bounds() {
    let memory = scattered(&[7, 3]);
    let host = Host::default();
    let bytes = memory.bytes(guest(0x8000_0ffc), 8).expect("the guest's");
    bytes.write_word(0, 0x1234_5678, &host);
    bytes.write_word(2, 0xffff_ffff, &host);
    bytes.write_word(8, 0xffff_ffff, &host);
    bytes.write_word(4, 0x9abc_def0, &host);
    assert_eq!(host.0.borrow().len(), 8);
    assert_eq!(memory.doubleword(guest(0x8000_0ffc), &host), None);
    assert_eq!(
        memory.doubleword(guest(0x8000_1000), &host),
        Some(0x9abc_def0)
    );
    assert_eq!(memory.doubleword(guest(0x8000_2000), &host), None);
}

#[test]
fn pieces_with_gaps_are_refused() {
    let piece = |base, size| Piece {
        guest: region(base, size),
        host: OwnedRegion::for_test(0, size),
    };
    let new = |pieces: &[Piece]| GuestMemory::new(pieces.to_vec()).err();
    assert_eq!(new(&[]), Some(BadPieces::Empty));
    assert_eq!(new(&[piece(0, 0)]), Some(BadPieces::Empty));
    let gap = [piece(0, 0x1000), piece(0x2000, 0x1000)];
    assert_eq!(new(&gap), Some(BadPieces::NotInOrder(guest(0x2000))));
    let overlap = [piece(0, 0x1000), piece(0, 0x1000)];
    assert_eq!(new(&overlap), Some(BadPieces::NotInOrder(guest(0))));
    let longer = Piece {
        guest: region(0, 0x1000),
        host: OwnedRegion::for_test(0, 0x2000),
    };
    assert_eq!(new(&[longer]), Some(BadPieces::OutOfReach(guest(0))));
    for odd in [piece(0, 0x1008), piece(8, 0x1000)] {
        assert_eq!(new(&[odd]), Some(BadPieces::NotPages(odd.guest.base())));
    }
}

proptest! {
    #[test]
    fn ranges_cover_bytes_once_in_order(
        frames in proptest::sample::subsequence((1u64..40).collect::<Vec<_>>(), 1..12).prop_shuffle(),
        from in 0u64..13 * PAGE_SIZE,
        size in 0u64..13 * PAGE_SIZE,
    ) {
        let memory = scattered(&frames);
        let asked = region(0x8000_0000 + from, size);
        let inside = from + size <= frames.len() as u64 * PAGE_SIZE;
        let ranges = memory.ranges(asked);
        prop_assert_eq!(ranges.is_some(), inside);
        if let Some(ranges) = ranges {
            let bytes: Vec<u64> = ranges
                .flat_map(|range| range.base().raw()..range.region().end().raw())
                .collect();
            let expected = (from..from + size)
                .map(|at| frames[(at / PAGE_SIZE) as usize] * PAGE_SIZE + at % PAGE_SIZE);
            prop_assert!(bytes.into_iter().eq(expected));
        }
    }

    #[test]
    fn no_address_is_a_fault(raw in any::<u64>(), size in any::<u64>()) {
        let memory = scattered(&[5, 6]);
        let host = Host::default();
        let _ = memory.in_one(guest(raw), size);
        let _ = memory.doubleword(guest(raw), &host);
        if let Some(bytes) = memory.bytes(guest(raw), size) {
            bytes.write(raw, 1, &host);
            bytes.write_word(size, 1, &host);
        }
    }
}
