//! A guest and its hypervisor on memory that holds another's bytes at first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::Mutex as HostMutex;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::lock::Mutex;
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::gstage::{GStage, Mode, ROOT_SIZE};
use crate::memory::guest::GuestMemory;

const RAM: u64 = 0x8000_0000;
const HOST: u64 = 0x4_0000_0000;
const LEAVES: u64 = 3;
/// Another's byte.
const SECRET: u8 = 0x5e;

/// Tables by address, and the guest's memory as one byte a page.
#[derive(Debug, Default)]
struct Computer {
    words: HashMap<u64, u64>,
    next: u64,
    pages: Vec<u8>,
    /// Pages that were zeroed in this run.
    zeroed: HashSet<u64>,
}

impl TableMemory for Computer {
    fn read(&self, address: HostPhysical) -> u64 {
        self.words.get(&address.raw()).copied().unwrap_or(0)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        self.words.insert(address.raw(), value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        let base = self.next.next_multiple_of(size);
        self.next = base + size;
        Some(HostPhysical::new(base))
    }
}

#[derive(Debug, Clone)]
struct Store(Arc<HostMutex<Computer>>);

impl Store {
    fn page(&self, offset: u64) -> u8 {
        self.0.lock().unwrap().pages[(offset / PAGE_SIZE) as usize]
    }

    fn write(&self, offset: u64, byte: u8) {
        self.0.lock().unwrap().pages[(offset / PAGE_SIZE) as usize] = byte;
    }

    fn zeroed(&self) -> usize {
        self.0.lock().unwrap().zeroed.len()
    }
}

/// Tables that stand: nothing is allocated.
struct Standing<'a>(&'a mut Computer);

impl TableMemory for Standing<'_> {
    fn read(&self, address: HostPhysical) -> u64 {
        self.0.read(address)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        self.0.write(address, value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        panic!("{size} bytes are allocated after assembly")
    }
}

impl ZeroStore for Store {
    fn with_tables<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T {
        with(&mut Standing(&mut self.0.lock().unwrap()))
    }

    fn zero(&self, part: OwnedRegion) {
        assert!(part.size() <= PART, "more than one part at a time");
        let mut computer = self.0.lock().unwrap();
        let offset = part.base().raw() - HOST;
        let pages = offset / PAGE_SIZE..(offset + part.size()) / PAGE_SIZE;
        for page in pages.clone() {
            assert!(computer.zeroed.insert(page), "a page is zeroed twice");
        }
        computer.pages[pages.start as usize..pages.end as usize].fill(0);
    }
}

fn guest(mode: Mode) -> (GuestMemory, SharedTable, Store) {
    let mut computer = Computer {
        next: ROOT_SIZE,
        pages: vec![SECRET; (LEAVES * LEAF / PAGE_SIZE) as usize],
        ..Computer::default()
    };
    let region = GuestRegion::new(GuestPhysical::new(RAM), LEAVES * LEAF).unwrap();
    let mut table = GStage::new(mode, &mut computer).unwrap();
    table.reserve(&mut computer, region).unwrap();
    assert_eq!(table.translate(&computer, region.base()), None);
    let table: SharedTable = Arc::new(Mutex::new(table));
    let store = Store(Arc::new(HostMutex::new(computer)));
    let piece = Piece {
        guest: region,
        host: OwnedRegion::for_test(HOST, LEAVES * LEAF),
    };
    let pages = ZeroedOnTouch::new(piece, Arc::clone(&table), store.clone()).unwrap();
    (GuestMemory::of_pages(region, Box::new(pages)), table, store)
}

/// Pages of a part and of a leaf.
const PART_PAGES: usize = (PART / PAGE_SIZE) as usize;
const LEAF_PAGES: usize = (LEAF / PAGE_SIZE) as usize;

#[test]
fn leaf_is_mapped_after_its_last_part() {
    let (memory, table, store) = guest(Mode::Sv39x4);
    assert!(memory.is_mapped_on_touch() && !memory.is_demand_paged());
    let at = GuestPhysical::new(RAM + LEAF + 5 * PART + 8);
    // The hypervisor's own access zeroes one page, and reaches no further.
    let there = memory.in_one(at, PAGE_SIZE - 8).unwrap();
    assert_eq!(
        (there.base().raw(), store.zeroed()),
        (HOST + at.raw() - RAM, 1)
    );
    assert_eq!(memory.in_one(at, PAGE_SIZE), None);
    store.write(LEAF + 5 * PART, 7);
    let mut touches = 1;
    while memory.touch(at) == Touch::Begun {
        // One of them finds a page that is the guest's own.
        let own = usize::from(touches <= 5);
        assert_eq!(
            store.zeroed(),
            touches * PART_PAGES + own,
            "one part a touch"
        );
        let translated = store.with_tables(|tables| table.lock().translate(tables, at));
        assert_eq!(translated, None);
        touches += 1;
    }
    assert_eq!(touches * PART_PAGES, LEAF_PAGES);
    let mapped = store.with_tables(|tables| table.lock().translate(tables, at));
    let mapped = mapped.unwrap();
    assert_eq!((mapped.host, mapped.leaf_size), (there.base(), LEAF));
    assert_eq!(store.page(LEAF + 5 * PART), 7, "what was written stays");
    assert_eq!(memory.touch(at), Touch::Present);
    assert_eq!(store.zeroed(), LEAF_PAGES);
    // All of the leaf is in one piece now, and the next one is not part of it.
    let base = GuestPhysical::new(RAM + LEAF);
    assert!(memory.in_one(base, LEAF).is_some() && memory.in_one(base, LEAF + 1).is_none());
    let outside = GuestPhysical::new(RAM + LEAVES * LEAF);
    assert_eq!(memory.touch(outside), Touch::NoFrame);
    assert_eq!(memory.in_one(outside, 1), None);
}

#[test]
fn memory_is_made_of_leaves() {
    let (_, table, store) = guest(Mode::Sv48x4);
    for (base, host, size) in [
        (RAM + PAGE_SIZE, HOST, LEAF),
        (RAM, HOST + PAGE_SIZE, LEAF),
        (RAM, HOST, LEAF + PAGE_SIZE),
    ] {
        let piece = Piece {
            guest: GuestRegion::new(GuestPhysical::new(base), size).unwrap(),
            host: OwnedRegion::for_test(host, size),
        };
        let made = ZeroedOnTouch::new(piece, Arc::clone(&table), store.clone());
        assert!(made.is_none());
    }
}

proptest! {
    /// No byte of another is ever seen, nor one of the guest's own former run, and no byte of the guest's is lost.
    #[test]
    fn nothing_of_others_is_seen(steps in prop::collection::vec((0..40u8, 0..LEAVES * LEAF / PAGE_SIZE, any::<u8>()), 1..400)) {
        let (memory, table, store) = guest(Mode::Sv39x4);
        let mut written: HashMap<u64, u8> = HashMap::new();
        for (step, page, byte) in steps {
            let (offset, at) = (page * PAGE_SIZE, GuestPhysical::new(RAM + page * PAGE_SIZE));
            let before = store.zeroed();
            // One step in forty is a start.
            let step = match step {
                39 => 3,
                other => other % 3,
            };
            match step {
                3 => {
                    let mut from = Some(0);
                    while let Some(offset) = from {
                        from = memory.pages().forget(offset);
                    }
                    store.0.lock().unwrap().zeroed.clear();
                    written.clear();
                }
                // A vCPU reads and writes where it finds a translation; otherwise it faults.
                0 => {
                    let translated = store.with_tables(|tables| table.lock().translate(tables, at));
                    match translated {
                        Some(there) => {
                            prop_assert_eq!(there.host.raw(), HOST + offset);
                            prop_assert_eq!(store.page(offset), written.get(&offset).copied().unwrap_or(0));
                            store.write(offset, byte);
                            written.insert(offset, byte);
                        }
                        None => prop_assert_ne!(memory.touch(at), Touch::NoFrame),
                    }
                }
                // The hypervisor, or a device that it gives the address to, reaches all that it is told of.
                _ => {
                    let there = memory.in_one(at, PAGE_SIZE).unwrap();
                    prop_assert_eq!(there.base().raw(), HOST + offset);
                    prop_assert_eq!(store.page(offset), written.get(&offset).copied().unwrap_or(0));
                    if step == 2 {
                        store.write(offset, byte);
                        written.insert(offset, byte);
                    }
                }
            }
            prop_assert!(store.zeroed() <= before + PART_PAGES, "more than a part at a time");
        }
        // All pages that can be reached without a fault are the guest's own.
        for page in 0..LEAVES * LEAF / PAGE_SIZE {
            let (offset, at) = (page * PAGE_SIZE, GuestPhysical::new(RAM + page * PAGE_SIZE));
            if store.with_tables(|tables| table.lock().translate(tables, at)).is_some() {
                prop_assert_eq!(store.page(offset), written.get(&offset).copied().unwrap_or(0));
            }
        }
    }
}
