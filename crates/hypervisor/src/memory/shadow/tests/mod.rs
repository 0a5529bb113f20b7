use super::leaf::Leaf;
use super::*;
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use riscv::page_table::{READ, WRITE};
use std::collections::HashMap;
use std::vec::Vec;

mod guest_walks;
mod random;

/// Base of the frames of the tables.
const BASE: u64 = 0x9000_0000;

/// The memory of the tables; what was never cleared is no table.
#[derive(Default)]
pub struct Memory {
    words: HashMap<u64, u64>,
    cleared: HashMap<u64, ()>,
}

impl TableMemory for Memory {
    fn read(&self, at: HostPhysical) -> u64 {
        let at = at.raw();
        assert!(
            self.cleared.contains_key(&(at & !0xfff)),
            "{at:#x} is no table"
        );
        self.words.get(&at).copied().unwrap_or(0)
    }

    fn write(&mut self, at: HostPhysical, value: u64) {
        self.words.insert(at.raw(), value);
    }

    fn clear(&mut self, at: HostPhysical) {
        for index in 0..512 {
            self.words.remove(&(at.raw() + 8 * index));
        }
        self.cleared.insert(at.raw(), ());
    }
}

pub fn tables(frames: u64) -> ShadowTables {
    let region = HostRegion::new(HostPhysical::new(BASE), frames * PAGE_SIZE).unwrap();
    ShadowTables::new(region)
}

pub fn satp(mode: u64, asid: u64, root: u64) -> u64 {
    mode << 60 | asid << 44 | root
}

const RIGHTS: u64 = READ | WRITE;

/// A page of the guest's, which is one here.
fn page(address: u64, host: u64) -> Leaf {
    Leaf {
        address,
        host: HostPhysical::new(host),
        level: 0,
        whole: 0,
        rights: RIGHTS,
        moves: None,
    }
}

fn host_of((bits, level): (u64, u32), address: u64) -> u64 {
    (bits >> 10 & ((1 << 44) - 1)) << 12 | address & (size(level) - 1)
}

fn found(tables: &ShadowTables, memory: &Memory, address: u64) -> Option<u64> {
    let entry = tables.find(address, memory)?;
    Some(host_of(entry, address))
}

fn pages(first: u64, count: u64, asid: Option<u16>) -> Operands {
    Operands {
        pages: Some((first, count)),
        asid,
    }
}

#[test]
fn leaf_is_found_until_fenced() {
    for (mode, address) in [
        (8, 0x40_0000_0000 - 0x1000),
        (9, 1 << 46),
        (10, u64::MAX << 55),
    ] {
        let (mut tables, mut memory) = (tables(64), Memory::default());
        assert!(tables.enter(satp(mode, 1, 5), &mut memory).is_nothing());
        assert_eq!(found(&tables, &memory, address), None);
        let dropped = tables.fill(&page(address + 8, 0x8000_3008), &mut memory);
        assert_eq!(dropped.pages().collect::<Vec<_>>(), [(0, address + 8)]);
        assert_eq!(found(&tables, &memory, address + 16), Some(0x8000_3010));
        assert_eq!(found(&tables, &memory, address ^ 0x1000), None);
        assert!(
            tables
                .forget(pages(address, 1, Some(2)), &mut memory)
                .is_nothing()
        );
        assert!(
            tables
                .forget(pages(address ^ 0x1000, 1, None), &mut memory)
                .is_nothing()
        );
        assert_eq!(found(&tables, &memory, address), Some(0x8000_3000));
        let dropped = tables.forget(pages(address, 1, Some(1)), &mut memory);
        assert_eq!(dropped.pages().collect::<Vec<_>>(), [(0, address)]);
        assert_eq!(found(&tables, &memory, address), None);
    }
}

#[test]
fn spaces_are_kept_by_their_satp() {
    let (mut tables, mut memory) = (tables(64), Memory::default());
    let (one, two) = (satp(8, 1, 5), satp(8, 2, 5));
    tables.enter(one, &mut memory);
    tables.fill(&page(0x1000, 0x8000_0000), &mut memory);
    tables.enter(two, &mut memory);
    assert_eq!(found(&tables, &memory, 0x1000), None);
    tables.fill(&page(0x1000, 0x8000_5000), &mut memory);
    assert!(tables.enter(one, &mut memory).is_nothing());
    assert_eq!(found(&tables, &memory, 0x1000), Some(0x8000_0000));
    // A fence for an ASID reaches the space that is not the present one.
    let dropped = tables.forget(
        Operands {
            pages: None,
            asid: Some(2),
        },
        &mut memory,
    );
    assert_eq!(dropped.spaces().collect::<Vec<_>>(), [1]);
    assert_eq!(found(&tables, &memory, 0x1000), Some(0x8000_0000));
    tables.enter(two, &mut memory);
    assert_eq!(found(&tables, &memory, 0x1000), None);
    tables.enter(0, &mut memory);
    assert_eq!(tables.present(), None);
}

#[test]
fn least_recently_used_space_is_evicted() {
    let (mut tables, mut memory) = (tables(8 * SPACES as u64), Memory::default());
    assert!(tables.numbers().is_empty());
    for root in 0..SPACES as u64 {
        assert!(tables.enter(satp(8, 0, root), &mut memory).is_nothing());
        tables.fill(&page(0x1000, 0x8000_0000 + root * 0x1000), &mut memory);
        assert_eq!(tables.numbers(), 0..root as usize + 1);
    }
    tables.enter(satp(8, 0, 0), &mut memory);
    let dropped = tables.enter(satp(8, 0, 99), &mut memory);
    assert_eq!(
        dropped.spaces().collect::<Vec<_>>(),
        [1],
        "whoever had the number is dropped"
    );
    assert_eq!(found(&tables, &memory, 0x1000), None);
    tables.enter(satp(8, 0, 0), &mut memory);
    assert_eq!(found(&tables, &memory, 0x1000), Some(0x8000_0000));
}

#[test]
fn address_fence_drops_all_leaf_pieces() {
    let (mut tables, mut memory) = (tables(64), Memory::default());
    tables.enter(satp(8, 0, 1), &mut memory);
    let piece = |address, host, whole| Leaf {
        whole,
        ..page(address, host)
    };
    // A leaf of 2 MiB whose pages are scattered, and one of the guest's own pages beside it.
    tables.fill(&piece(0x20_0000, 0x8000_0000, 1), &mut memory);
    tables.fill(&piece(0x20_5000, 0x8100_0000, 1), &mut memory);
    tables.fill(&page(0x40_0000, 0x8200_0000), &mut memory);
    // The fence names an address of which there is no leaf here.
    let dropped = tables.forget(pages(0x2f_f000, 1, None), &mut memory);
    assert_eq!(dropped.spaces().collect::<Vec<_>>(), [0]);
    assert_eq!(found(&tables, &memory, 0x20_0000), None);
    assert_eq!(found(&tables, &memory, 0x20_5000), None);
    assert_eq!(found(&tables, &memory, 0x40_0000), Some(0x8200_0000));
    // One of 1 GiB: everything below its entry goes, and its tables are free again.
    let left = tables.pool.left();
    tables.fill(&piece(0x4000_0000, 0x8000_0000, 2), &mut memory);
    tables.fill(&piece(0x7fff_f000, 0x8100_0000, 2), &mut memory);
    assert_eq!(tables.pool.left(), left - 3);
    tables.forget(pages(0x5000_0000, 1, None), &mut memory);
    assert_eq!(found(&tables, &memory, 0x4000_0000), None);
    assert_eq!(found(&tables, &memory, 0x7fff_f000), None);
    assert_eq!(tables.pool.left(), left);
}

#[test]
fn large_leaves_and_tables_replace_each_other() {
    let (mut tables, mut memory) = (tables(64), Memory::default());
    tables.enter(satp(8, 0, 1), &mut memory);
    tables.fill(&page(0x20_3000, 0x8000_0000), &mut memory);
    let large = Leaf {
        level: 1,
        whole: 1,
        ..page(0x20_4008, 0x8020_4008)
    };
    let dropped = tables.fill(&large, &mut memory);
    assert_eq!(dropped.spaces().collect::<Vec<_>>(), [0]);
    assert_eq!(found(&tables, &memory, 0x20_3000), Some(0x8020_3000));
    assert_eq!(found(&tables, &memory, 0x3f_fff8), Some(0x803f_fff8));
    let dropped = tables.fill(&page(0x20_3000, 0x8000_0000), &mut memory);
    assert_eq!(dropped.spaces().collect::<Vec<_>>(), [0]);
    assert_eq!(found(&tables, &memory, 0x20_3000), Some(0x8000_0000));
    assert_eq!(found(&tables, &memory, 0x20_4000), None);
}

#[test]
fn leaves_to_moved_page_are_dropped_everywhere() {
    let (mut tables, mut memory) = (tables(64), Memory::default());
    let file = |address, page_of| Leaf {
        moves: Some(page_of),
        ..page(address, 0x2800_0000)
    };
    for root in 1..3 {
        tables.enter(satp(8, 0, root), &mut memory);
        tables.fill(&file(0x1000, 0x100_0000), &mut memory);
        tables.fill(&file(0x2000, 0x100_1000), &mut memory);
    }
    let moved = [GuestPhysical::new(0x100_1000)];
    let dropped = tables.forget_moved(Some(moved.into_iter()), &mut memory);
    assert_eq!(dropped.pages().count(), 2);
    for root in 1..3 {
        tables.enter(satp(8, 0, root), &mut memory);
        assert_eq!(found(&tables, &memory, 0x2000), None);
        assert_eq!(found(&tables, &memory, 0x1000), Some(0x2800_0000));
    }
    tables.forget_moved(None::<core::iter::Empty<GuestPhysical>>, &mut memory);
    assert_eq!(found(&tables, &memory, 0x1000), None);
    // However many there are, none is forgotten to be forgotten.
    let many = 3 * MAX_MOVING_LEAVES as u64;
    for number in 0..many {
        tables.fill(&file(number << 12, 0x100_0000), &mut memory);
    }
    tables.forget_moved(None::<core::iter::Empty<GuestPhysical>>, &mut memory);
    for number in 0..many {
        assert_eq!(found(&tables, &memory, number << 12), None);
    }
}

#[test]
fn the_fewest_frames_do() {
    for mode in 8..=10 {
        let (mut tables, mut memory) = (tables(ShadowTables::FEWEST), Memory::default());
        tables.enter(satp(mode, 0, 1), &mut memory);
        for number in 0..64u64 {
            let address = number.wrapping_mul(0x1234_5678_9000) & 0x3f_ffff_f000;
            tables.fill(&page(address, 0x8000_0000), &mut memory);
            assert_eq!(found(&tables, &memory, address), Some(0x8000_0000));
        }
        tables.clear();
        assert_eq!(tables.pool.left() as u64, ShadowTables::FEWEST);
    }
}

#[test]
fn many_dropped_pages_become_one_space() {
    let mut dropped = Dropped::default();
    for number in 0..8 {
        dropped.add_page(3, number << 12);
    }
    assert_eq!((dropped.spaces().count(), dropped.pages().count()), (0, 8));
    let mut both = Dropped::default();
    both.add_page(2, 0x5000);
    both.add(dropped);
    assert_eq!(both.spaces().collect::<Vec<_>>(), [3]);
    assert_eq!(both.pages().collect::<Vec<_>>(), [(2, 0x5000)]);
}

/// A leaf of 512 GiB whose pieces are pages: all of the frames may be tables below it.
#[test]
fn huge_leaf_fence_empties_and_keeps_root() {
    let (mut tables, mut memory) = (tables(64), Memory::default());
    tables.enter(satp(9, 1, 5), &mut memory);
    let root = tables.present().unwrap();
    for gibibyte in 0..8 {
        let address = gibibyte << 30;
        let piece = Leaf {
            whole: 3,
            ..page(address, 0x1_0000_0000 + address)
        };
        tables.fill(&piece, &mut memory);
    }
    let dropped = tables.forget(pages(5 << 30, 1, None), &mut memory);
    assert_eq!(dropped.spaces().collect::<Vec<_>>(), [0]);
    assert_eq!(tables.present(), Some(root));
    assert_eq!(found(&tables, &memory, 0), None);
    assert_eq!(tables.pool.left(), 63);
}
