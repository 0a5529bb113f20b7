//! Tables in a map, walked by the specification's algorithm and compared with a plain list.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Words by address; tables are given out from 4 GiB up.
#[derive(Default)]
struct Memory {
    words: HashMap<u64, u64>,
    tables: BTreeMap<u64, u64>,
    next: u64,
    limit: Option<usize>,
}

impl TableMemory for Memory {
    fn read(&self, address: HostPhysical) -> u64 {
        self.check(address);
        self.words.get(&address.raw()).copied().unwrap_or(0)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        self.check(address);
        self.words.insert(address.raw(), value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        if self.limit.is_some_and(|limit| self.tables.len() >= limit) {
            return None;
        }
        let base = (4 * GIB + self.next).next_multiple_of(size);
        self.next = base + size - 4 * GIB;
        self.tables.insert(base, size);
        Some(HostPhysical::new(base))
    }
}

impl Memory {
    fn check(&self, address: HostPhysical) {
        let raw = address.raw();
        let inside = self
            .tables
            .range(..=raw)
            .next_back()
            .is_some_and(|(base, size)| raw < base + size);
        assert!(
            inside && raw.is_multiple_of(8),
            "{raw:#x} is no entry of a table"
        );
    }

    /// The walk of the privileged architecture, step by step, from `hgatp`.
    fn walk(&self, hgatp: u64, address: u64) -> Option<(u64, u64)> {
        let levels = match hgatp >> 60 {
            8 => 3,
            9 => 4,
            mode => panic!("mode {mode}"),
        };
        let mut table = (hgatp & ((1 << 44) - 1)) << 12;
        assert_eq!(table % (16 << 10), 0, "the root is aligned to its 16 KiB");
        for level in (0..levels).rev() {
            let width = if level == levels - 1 { 11 } else { 9 };
            let index = address >> (12 + 9 * level) & ((1 << width) - 1);
            let entry = self.read(HostPhysical::new(table + index * 8));
            if entry & 1 == 0 {
                return None;
            }
            let ppn = entry >> 10 & ((1 << 44) - 1);
            if entry & 0b1110 == 0 {
                table = ppn << 12;
                continue;
            }
            let size = 1 << (12 + 9 * level);
            assert_eq!((ppn << 12) % size, 0, "a misaligned superpage would fault");
            assert_eq!(entry & 0b1101_0001, 0b1101_0001, "D, A, U and V");
            assert_eq!(entry >> 54, 0, "reserved bits");
            assert!(
                entry & 0b0100 == 0 || entry & 0b0010 != 0,
                "writable, so readable"
            );
            return Some(((ppn << 12) + address % size, size));
        }
        None
    }
}

fn guest(base: u64, size: u64) -> GuestRegion {
    GuestRegion::new(GuestPhysical::new(base), size).unwrap()
}

fn host(raw: u64) -> HostPhysical {
    HostPhysical::new(raw)
}

#[test]
fn memory_is_mapped_in_the_largest_leaves() {
    let mut memory = Memory::default();
    let mut stage = GStage::new(Mode::Sv39x4, &mut memory).unwrap();
    // From 2 GiB - 4 MiB - 4 KiB, 2 GiB long: pages, megapages, a gigapage, megapages, pages.
    let base = 2 * GIB - 4 * MIB - 4096;
    stage
        .map(
            &mut memory,
            guest(base, 2 * GIB),
            host(base),
            Permissions::MEMORY,
        )
        .unwrap();
    let leaf = |address| memory.walk(stage.hgatp(0), address);
    assert_eq!(leaf(base), Some((base, 4096)));
    assert_eq!(leaf(base + 4096), Some((base + 4096, 2 * MIB)));
    assert_eq!(leaf(2 * GIB + 5), Some((2 * GIB + 5, GIB)));
    assert_eq!(leaf(3 * GIB), Some((3 * GIB, 2 * MIB)));
    assert_eq!(leaf(base + 2 * GIB - 1), Some((base + 2 * GIB - 1, 4096)));
    assert_eq!(leaf(base - 1), None);
    assert_eq!(leaf(base + 2 * GIB), None);
}

#[test]
fn unaligned_offset_makes_smaller_leaves() {
    let mut memory = Memory::default();
    let mut stage = GStage::new(Mode::Sv48x4, &mut memory).unwrap();
    let shifted = 2 * GIB + 2 * MIB;
    stage
        .map(
            &mut memory,
            guest(2 * GIB, GIB),
            host(shifted),
            Permissions::MEMORY,
        )
        .unwrap();
    assert_eq!(
        memory.walk(stage.hgatp(0), 2 * GIB + 7),
        Some((shifted + 7, 2 * MIB))
    );
}

#[test]
fn hgatp_names_mode_vmid_and_root() {
    let mut memory = Memory::default();
    for (mode, field) in [(Mode::Sv39x4, 8), (Mode::Sv48x4, 9)] {
        let stage = GStage::new(mode, &mut memory).unwrap();
        let root = stage.root.raw();
        assert_eq!(stage.hgatp(0x2345), field << 60 | 0x2345 << 44 | root >> 12);
        assert_eq!(stage.hgatp(0xffff) >> 58, field << 2, "a VMID has 14 bits");
    }
}

#[test]
fn the_reach_of_the_tables() {
    for (mode, bits) in [(Mode::Sv39x4, 41), (Mode::Sv48x4, 50)] {
        let mut memory = Memory::default();
        let mut stage = GStage::new(mode, &mut memory).unwrap();
        let last = (1 << bits) - 4096;
        let mut map = |base, size, to| {
            stage.map(
                &mut memory,
                guest(base, size),
                host(to),
                Permissions::DEVICE,
            )
        };
        assert_eq!(map(last, 4096, 0), Ok(()));
        assert_eq!(map(last, 8192, 0), Err(MapError::OutOfReach));
        assert_eq!(map(0, 4096, 1 << 56), Err(MapError::OutOfReach));
        assert_eq!(map(0, 4096, u64::MAX - 4095), Err(MapError::OutOfReach));
        assert_eq!(map(0, 4097, 0), Err(MapError::NotPages));
        assert_eq!(map(1, 4096, 0), Err(MapError::NotPages));
        assert_eq!(map(0, 4096, 1), Err(MapError::NotPages));
        assert_eq!(
            map(last, 4096, 0),
            Err(MapError::Mapped(GuestPhysical::new(last)))
        );
        assert_eq!(stage.translate(&memory, GuestPhysical::new(u64::MAX)), None);
    }
}

#[test]
fn page_in_large_leaf_can_be_remapped() {
    let mut memory = Memory::default();
    let mut stage = GStage::new(Mode::Sv39x4, &mut memory).unwrap();
    stage
        .map(
            &mut memory,
            guest(2 * GIB, GIB),
            host(2 * GIB),
            Permissions::MEMORY,
        )
        .unwrap();
    let page = GuestPhysical::new(2 * GIB + 5 * MIB);
    let before = stage.remap_page(&mut memory, page, host(0x2800_1000), Permissions::DEVICE);
    assert_eq!(before, Ok(host(2 * GIB + 5 * MIB)));
    let there = stage.translate(&memory, page).unwrap();
    assert_eq!((there.host, there.leaf_size), (host(0x2800_1000), 4096));
    assert_eq!(there.permissions, Permissions::DEVICE);
    for (probe, size) in [
        (0, 2 * MIB),
        (5 * MIB - 1, 4096),
        (5 * MIB + 4096, 4096),
        (6 * MIB, 2 * MIB),
    ] {
        let address = 2 * GIB + probe;
        assert_eq!(memory.walk(stage.hgatp(0), address), Some((address, size)));
    }
    stage.unmap(&mut memory, guest(2 * GIB, GIB)).unwrap();
    assert_eq!(memory.walk(stage.hgatp(0), page.raw()), None);
    assert_eq!(
        stage.unmap(&mut memory, guest(2 * GIB, 4096)),
        Err(MapError::NotMapped(GuestPhysical::new(2 * GIB)))
    );
    stage
        .map(
            &mut memory,
            guest(2 * GIB, GIB),
            host(GIB),
            Permissions::MEMORY,
        )
        .unwrap();
    assert_eq!(
        memory.walk(stage.hgatp(0), 2 * GIB).map(|(to, _)| to),
        Some(GIB)
    );
}

#[test]
fn page_remap_takes_no_more_memory() {
    let mut memory = Memory::default();
    let mut stage = GStage::new(Mode::Sv39x4, &mut memory).unwrap();
    let page = GuestPhysical::new(0x2800_0000);
    let places = [
        None,
        Some(0x2800_1000),
        Some(0x2804_2000),
        None,
        None,
        Some(0x2800_3000),
    ];
    for (round, place) in places.into_iter().enumerate() {
        stage
            .set_page(&mut memory, page, place.map(host), Permissions::DEVICE)
            .unwrap();
        assert_eq!(
            memory.walk(stage.hgatp(0), page.raw()),
            place.map(|to| (to, 4096))
        );
        if round == 1 {
            memory.limit = Some(memory.tables.len());
        }
    }
    let odd = GuestPhysical::new(0x2800_0001);
    let refused = stage.set_page(&mut memory, odd, None, Permissions::DEVICE);
    assert_eq!(refused, Err(MapError::NotPages));
}

#[test]
fn missing_table_memory_is_an_error() {
    for limit in 0..3 {
        let mut memory = Memory {
            limit: Some(limit),
            ..Memory::default()
        };
        let result = GStage::new(Mode::Sv39x4, &mut memory).and_then(|mut stage| {
            stage.map(&mut memory, guest(0, 4096), host(0), Permissions::DEVICE)
        });
        assert_eq!(result, Err(MapError::OutOfMemory));
    }
}

proptest! {
    /// Maps, unmaps and remaps at random against a list of pages.
    #[test]
    fn any_changes(
        steps in prop::collection::vec((0u8..3, 0u64..1200, 1u64..1200, 0u64..4), 1..25),
        four_levels in any::<bool>(),
    ) {
        let mode = if four_levels { Mode::Sv48x4 } else { Mode::Sv39x4 };
        let mut memory = Memory::default();
        let mut stage = GStage::new(mode, &mut memory).unwrap();
        // Pages around a gibibyte's boundary, so that two tables of each level take part.
        let first = GIB / 4096 - 600;
        let mut model: BTreeMap<u64, u64> = BTreeMap::new();
        for (kind, page, count, shift) in steps {
            let page = first + page;
            let target = page + 512 * 512 * shift + if shift == 3 { 1 } else { 0 };
            let region = guest(page * 4096, count * 4096);
            match kind {
                0 => {
                    let result = stage.map(&mut memory, region, host(target * 4096), Permissions::MEMORY);
                    for index in 0..count {
                        if model.contains_key(&(page + index)) {
                            prop_assert!(matches!(result, Err(MapError::Mapped(_))));
                            break;
                        }
                        model.insert(page + index, target + index);
                        if index == count - 1 { prop_assert_eq!(result, Ok(())); }
                    }
                }
                1 => {
                    let result = stage.unmap(&mut memory, region);
                    for index in 0..count {
                        if model.remove(&(page + index)).is_none() {
                            let at = GuestPhysical::new((page + index) * 4096);
                            prop_assert_eq!(result, Err(MapError::NotMapped(at)));
                            break;
                        }
                    }
                }
                _ => {
                    let at = GuestPhysical::new(page * 4096);
                    let result = stage.remap_page(&mut memory, at, host(target * 4096), Permissions::DEVICE);
                    match model.get_mut(&page) {
                        Some(place) => {
                            prop_assert_eq!(result, Ok(host(*place * 4096)));
                            *place = target;
                        }
                        None => prop_assert_eq!(result, Err(MapError::NotMapped(at))),
                    }
                }
            }
        }
        for page in first - 2..first + 2500 {
            let address = page * 4096 + 123;
            let want = model.get(&page).map(|place| place * 4096 + 123);
            let walked = memory.walk(stage.hgatp(7), address);
            prop_assert_eq!(walked.map(|(to, _)| to), want, "page {:#x}", page);
            let translated = stage.translate(&memory, GuestPhysical::new(address));
            prop_assert_eq!(translated.map(|to| (to.host.raw(), to.leaf_size)), walked);
        }
    }
}
