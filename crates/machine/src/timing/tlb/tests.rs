//! Tests of TLBs.

use super::*;

const HOST: Space = Space {
    virtualized: false,
    paged: true,
    asid: 1,
    vmid: 0,
};

fn guest(asid: u16, vmid: u16) -> Space {
    Space {
        virtualized: true,
        paged: true,
        asid,
        vmid,
    }
}

fn tlb(large: u16, any_size: bool) -> Tlb {
    Tlb::new(TlbProfile {
        entries: 4,
        ways: 4,
        large,
        any_size,
        replacement: ReplacementPolicy::Fifo,
    })
}

/// Adds an entry, where nothing depends on its use.
fn insert(tlb: &mut Tlb, page: u64, entry: Entry) -> (usize, Option<Entry>) {
    tlb.insert(page, entry, |_, _| {})
}

#[test]
fn entries_serve_their_space_unless_global() {
    let mut tlb = tlb(0, false);
    insert(&mut tlb, 7, Entry::new(7, 12, false, guest(3, 5)));
    assert!(tlb.look_up(7, guest(3, 5)).is_some());
    for space in [
        guest(4, 5),
        guest(3, 6),
        HOST,
        Space {
            paged: false,
            ..guest(3, 5)
        },
    ] {
        assert!(tlb.look_up(7, space).is_none(), "{space:?}");
    }
    insert(&mut tlb, 8, Entry::new(8, 12, true, guest(3, 5)));
    assert!(tlb.look_up(8, guest(4, 5)).is_some());
    assert!(tlb.look_up(8, guest(3, 6)).is_none());
}

#[test]
fn large_pages_take_one_entry_or_many() {
    for (mut tlb, reaches) in [
        (tlb(1, false), true),
        (tlb(0, true), true),
        (tlb(0, false), false),
    ] {
        insert(&mut tlb, 0x203, Entry::new(0x203, 21, false, HOST));
        assert!(tlb.look_up(0x203, HOST).is_some());
        assert_eq!(tlb.look_up(0x3ff, HOST).is_some(), reaches);
        assert!(tlb.look_up(0x400, HOST).is_none());
    }
}

#[test]
fn empty_places_are_taken_before_the_oldest() {
    let mut tlb = tlb(0, false);
    for page in 0..4 {
        let entry = Entry::new(page, 12, false, HOST);
        assert_eq!(insert(&mut tlb, page, entry).1, None);
    }
    let (slot, evicted) = insert(&mut tlb, 4, Entry::new(4, 12, false, HOST));
    assert_eq!((slot, tlb.serves(4, HOST)), (0, Some(0)));
    assert_eq!(evicted.map(|entry| entry.page), Some(0));
    let mut removed = Vec::new();
    assert_eq!(tlb.serves(2, HOST), Some(2));
    tlb.remove_if(
        |entry| entry.covers(2),
        |slot, entry| removed.push((slot, entry.page)),
    );
    assert_eq!(removed, [(2, 2)]);
    assert_eq!(tlb.serves(2, HOST), None);
    let entry = Entry::new(5, 12, false, HOST);
    assert_eq!(insert(&mut tlb, 5, entry), (2, None));
}

#[test]
fn used_entries_stay_by_lru() {
    let mut tlb = Tlb::new(TlbProfile {
        entries: 2,
        ways: 2,
        large: 2,
        any_size: false,
        replacement: ReplacementPolicy::Lru,
    });
    for page in [0x203, 0x403] {
        insert(&mut tlb, page, Entry::new(page, 21, false, HOST));
    }
    let slot = tlb.serves(0x3ff, HOST).expect("there");
    let mut demoted = Vec::new();
    tlb.touch(slot, |slot, entry| demoted.push((slot, entry.page)));
    assert_eq!(demoted, [(3, 0x400)]);
    let (slot, evicted) = insert(&mut tlb, 0x603, Entry::new(0x603, 21, false, HOST));
    assert_eq!((slot, evicted.map(|entry| entry.page)), (3, Some(0x400)));
}

#[test]
fn spaces_have_different_numbers() {
    let spaces = [
        HOST,
        guest(1, 0),
        guest(1, 1),
        guest(2, 1),
        Space::default(),
    ];
    for (index, one) in spaces.iter().enumerate() {
        for other in &spaces[..index] {
            assert_ne!(one.number(), other.number());
        }
    }
    assert_eq!(Space::default().number(), 0);
}

#[test]
fn ambiguous_pages_keep_their_first_slot() {
    let mut tlb = Tlb::new(TlbProfile {
        entries: 4,
        ways: 4,
        large: 0,
        any_size: true,
        replacement: ReplacementPolicy::Plru,
    });
    insert(&mut tlb, 1, Entry::new(1, 12, false, HOST));
    insert(&mut tlb, 0x203, Entry::new(0x203, 21, false, HOST));
    assert_eq!(tlb.serves(0x203, HOST), Some(1));
    tlb.remove_if(|entry| entry.page == 1, |_, _| {});
    // The page alone, in the place before that of the large one.
    insert(&mut tlb, 0x203, Entry::new(0x203, 12, false, HOST));
    let neighbour = 0x203 + HINTS as u64;
    for _ in 0..2 {
        assert_eq!(tlb.serves(0x203, HOST), Some(0));
        assert_eq!(tlb.serves(neighbour, HOST), Some(1));
    }
}
