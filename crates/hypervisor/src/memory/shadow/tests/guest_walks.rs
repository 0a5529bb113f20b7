//! Causes of a fault by the guest's own tables.

use super::super::guest_walk::{GuestTables, Place, WalkResult, WalkSettings, leaf, walk};
use super::super::leaf::Entry;
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::walk::{self, Access, Features, Reader};
use core::cell::{Cell, RefCell};
use std::collections::HashMap;

const V: u64 = 1;
const R: u64 = 2;
const W: u64 = 4;
const X: u64 = 8;
const U: u64 = 16;
const A: u64 = 64;
const D: u64 = 128;
const N: u64 = 1 << 63;

const ROOT: u64 = 0x8000_0000;
const TABLE: u64 = 0x8000_1000;
const PAGES: u64 = 0x8000_2000;

/// Sv39 tables for the first GiB, and another hart that may change an entry before it is exchanged.
#[derive(Default)]
struct Guest {
    words: RefCell<HashMap<u64, u64>>,
    meddles: Cell<u32>,
}

impl GuestTables for Guest {
    fn read(&self, at: GuestPhysical) -> Option<u64> {
        self.words.borrow().get(&at.raw()).copied()
    }

    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> bool {
        let mut words = self.words.borrow_mut();
        let word = words.get_mut(&at.raw()).unwrap();
        if self.meddles.get() > 0 {
            self.meddles.set(self.meddles.get() - 1);
            *word ^= 1 << 8;
        }
        if *word != old {
            return false;
        }
        *word = new;
        true
    }
}

fn guest(entry: u64) -> Guest {
    let guest = Guest::default();
    let entries = [
        (ROOT, TABLE >> 2 | V),
        (TABLE, PAGES >> 2 | V),
        (PAGES + 8, entry),
        (TABLE + 8, entry),
    ];
    guest.words.borrow_mut().extend(entries);
    guest
}

const MANNER: WalkSettings = WalkSettings {
    satp: 8 << 60 | ROOT >> 12,
    features: Features::ALL,
    sets_marks: false,
};
const KERNEL: Reader = Reader {
    user: false,
    reads_user_pages: false,
    reads_code: false,
};
const PROGRAM: Reader = Reader {
    user: true,
    ..KERNEL
};

/// Outcome of an access to 0x1008, whose page has these bits and lies at 0x8040_0000.
fn at(bits: u64, access: Access, reader: Reader) -> WalkResult {
    walk(
        MANNER,
        0x1008,
        (access, reader),
        &guest(0x8040_0000 >> 2 | bits),
    )
}

fn allowed(result: WalkResult) -> bool {
    matches!(result, WalkResult::Allowed(_))
}

#[test]
fn rights_are_the_guests() {
    let all = V | R | W | X | A | D;
    for access in [Access::Fetch, Access::Load, Access::Store] {
        assert!(allowed(at(all, access, KERNEL)));
        assert!(allowed(at(all | U, access, PROGRAM)));
        assert_eq!(at(all, access, PROGRAM), WalkResult::PageFault);
        assert_eq!(at(all | U, access, KERNEL), WalkResult::PageFault);
        assert_eq!(at(all & !V, access, KERNEL), WalkResult::PageFault);
        let sum = Reader {
            reads_user_pages: true,
            ..KERNEL
        };
        assert_eq!(allowed(at(all | U, access, sum)), access != Access::Fetch);
    }
    assert_eq!(
        at(V | R | A | D, Access::Store, KERNEL),
        WalkResult::PageFault
    );
    assert_eq!(
        at(V | R | A | D, Access::Fetch, KERNEL),
        WalkResult::PageFault
    );
    let code = V | X | A;
    assert_eq!(at(code, Access::Load, KERNEL), WalkResult::PageFault);
    assert!(allowed(at(
        code,
        Access::Load,
        Reader {
            reads_code: true,
            ..KERNEL
        }
    )));
    assert!(allowed(at(code, Access::Fetch, KERNEL)));
    assert_eq!(
        at(V | W | X | A | D, Access::Load, KERNEL),
        WalkResult::PageFault,
        "reserved"
    );
}

#[test]
fn accessed_dirty_bits_follow_guest_hart() {
    let entry = 0x8040_0000 >> 2 | V | R | W;
    for (access, marks) in [(Access::Load, A), (Access::Store, A | D)] {
        assert_eq!(
            walk(MANNER, 0x1000, (access, KERNEL), &guest(entry)),
            WalkResult::PageFault
        );
        let settings = WalkSettings {
            sets_marks: true,
            ..MANNER
        };
        let guest = guest(entry);
        let WalkResult::Allowed(leaf) = walk(settings, 0x1000, (access, KERNEL), &guest) else {
            panic!("not allowed");
        };
        assert_eq!(leaf.entry, entry | marks);
        assert_eq!(guest.words.borrow()[&(PAGES + 8)], entry | marks);
    }
    // A page that is accessed but not dirty is read without a change.
    let accessed = entry | A;
    assert!(allowed(walk(
        MANNER,
        0x1000,
        (Access::Load, KERNEL),
        &guest(accessed)
    )));
    assert_eq!(
        walk(MANNER, 0x1000, (Access::Store, KERNEL), &guest(accessed)),
        WalkResult::PageFault
    );
}

#[test]
fn concurrent_change_is_kept_and_ends() {
    let settings = WalkSettings {
        sets_marks: true,
        ..MANNER
    };
    let entry = 0x8040_0000 >> 2 | V | R | W;
    let once = guest(entry);
    once.meddles.set(1);
    assert!(allowed(walk(
        settings,
        0x1000,
        (Access::Store, KERNEL),
        &once
    )));
    assert_eq!(once.words.borrow()[&(PAGES + 8)], entry | 1 << 8 | A | D);
    let always = guest(entry);
    always.meddles.set(1000);
    assert_eq!(
        walk(settings, 0x1000, (Access::Store, KERNEL), &always),
        WalkResult::Again
    );
}

#[test]
fn tables_outside_memory_cause_access_fault() {
    let lost = WalkSettings {
        satp: 8 << 60 | 0x1234,
        ..MANNER
    };
    assert_eq!(
        walk(lost, 0x1000, (Access::Load, KERNEL), &guest(0)),
        WalkResult::AccessFault
    );
    assert_eq!(
        walk(MANNER, 1 << 45, (Access::Load, KERNEL), &guest(0)),
        WalkResult::PageFault
    );
}

#[test]
fn unsupported_optional_bits_are_reserved() {
    let entry = 0x8040_0000 >> 2 | V | R | A;
    let contiguous = (0x8040_0000 >> 2 | 8 << 10) | V | R | A | N;
    for (bits, contiguous_is_there, types_are_there, expected) in [
        (contiguous, true, false, true),
        (contiguous, false, true, false),
        (entry | 1 << 61, false, true, true),
        (entry | 1 << 61, true, false, false),
        (entry | 3 << 61, true, true, false),
    ] {
        let features = Features {
            contiguous: contiguous_is_there,
            memory_types: types_are_there,
        };
        let settings = WalkSettings { features, ..MANNER };
        let look = walk(settings, 0x1000, (Access::Load, KERNEL), &guest(bits));
        assert_eq!(allowed(look), expected, "{bits:#x}");
    }
}

fn place(size: u64, rights: u64) -> Place {
    Place {
        host: HostPhysical::new(0xa040_1008),
        size,
        rights,
        moves: false,
    }
}

fn guests(entry: u64, level: u32, contiguous: bool) -> walk::Leaf {
    walk::Leaf {
        entry,
        at: GuestPhysical::new(PAGES + 8),
        level,
        contiguous,
        to: GuestPhysical::new(0x8040_1008),
    }
}

#[test]
fn leaf_rights_intersect_and_stores_need_dirty() {
    let entry = V | R | W | X | U | A | 1 << 61;
    let clean = leaf(
        0x1008,
        (Access::Load, PROGRAM),
        &guests(entry, 0, false),
        place(4096, R | W | X),
    )
    .unwrap();
    assert_eq!(clean.rights, R | X | U | 1 << 61);
    let dirty = guests(entry | D, 0, false);
    let device = leaf(0x1008, (Access::Store, PROGRAM), &dirty, place(4096, R | W)).unwrap();
    assert_eq!(device.rights, R | W | U | 1 << 61);
    assert_eq!(
        leaf(0x1008, (Access::Fetch, PROGRAM), &dirty, place(4096, R | W)),
        None
    );
    assert_eq!(
        leaf(0x1008, (Access::Store, PROGRAM), &dirty, place(4096, R)),
        None
    );
    let read_only = leaf(0x1008, (Access::Load, PROGRAM), &dirty, place(4096, R)).unwrap();
    assert_eq!(read_only.rights, R | U | 1 << 61);
}

#[test]
fn leaf_size_is_the_smaller_one() {
    let entry = V | R | W | A | D;
    let size_of = |guest: u32, place_size| {
        let found = leaf(
            0x1008,
            (Access::Load, KERNEL),
            &guests(entry, guest, false),
            place(place_size, R | W),
        );
        let found = found.unwrap();
        (found.level, found.whole)
    };
    assert_eq!(size_of(0, 1 << 30), (0, 0));
    assert_eq!(size_of(1, 1 << 30), (1, 1));
    assert_eq!(size_of(1, 4096), (0, 1));
    assert_eq!(size_of(2, 1 << 21), (1, 2));
    assert_eq!(size_of(2, 1 << 39), (2, 2));
    let sixteen = leaf(
        0x1008,
        (Access::Load, KERNEL),
        &guests(entry, 0, true),
        place(1 << 30, R),
    )
    .unwrap();
    assert_eq!((sixteen.level, sixteen.whole), (0, 1));
}

/// Any pair of stages: the leaf that is made is valid, and lets the access through that it was made for.
#[test]
fn made_leaf_is_valid_for_the_hart() {
    let rights = |bits: u64| bits & (R | W | X);
    for (entry, most) in (0..8).flat_map(|entry| (0..8).map(move |most| (entry << 1, most << 1))) {
        if entry == 0 || entry & (R | W) == W {
            continue;
        }
        for reader in [
            KERNEL,
            Reader {
                reads_code: true,
                ..KERNEL
            },
        ] {
            for access in [Access::Fetch, Access::Load, Access::Store] {
                let guest = guests(V | entry | A | D, 1, false);
                if !reader.may(access, guest.entry) {
                    continue;
                }
                let made = leaf(0x1008, (access, reader), &guest, place(1 << 21, most));
                let Some(made) = made else {
                    let both = entry & most;
                    let needed = match access {
                        Access::Fetch => X,
                        Access::Load if reader.reads_code => R | X,
                        Access::Load => R,
                        Access::Store => W,
                    };
                    assert!(both & needed == 0 || both & (R | W) == W);
                    continue;
                };
                let bits = made.bits();
                assert_eq!(Entry::of(bits), Entry::Leaf, "{entry:#x} {most:#x}");
                assert_ne!(bits & (R | W), W, "reserved");
                assert!(reader.may(access, bits));
                assert_eq!(rights(bits) & !(entry & most), 0, "more than both allow");
            }
        }
    }
}
