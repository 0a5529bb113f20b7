//! Page tables: good ones for the code, all kinds for the data.
//!
//! Code, handlers and the tables themselves are mapped to where they lie. Data pages are mapped at
//! random addresses by leaves of every level; half of the leaves have a flaw.

use super::setting::{Mode, Slot};
use crate::layout::{self, PAGE};
use crate::random::Random;

const V: u64 = 1;
const R: u64 = 2;
const W: u64 = 4;
const X: u64 = 8;
const U: u64 = 16;
const G: u64 = 32;
const A: u64 = 64;
const D: u64 = 128;
const N: u64 = 1 << 63;
/// The low bits of page numbers in a contiguous range, and what they are in its leaves.
const CONTIGUOUS_PAGES: u64 = 15;
const CONTIGUOUS: u64 = 8;

/// How many views of data each stage has.
const VIEWS: usize = 6;

/// A translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translation {
    /// By satp.
    Host,
    /// By vsatp.
    Virtual,
    /// By hgatp.
    Guest,
}

/// A leaf that a program may change.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Translation that the leaf belongs to.
    pub translation: Translation,
    /// The physical address of the entry; where its table is mapped, it is mapped to the same.
    pub place: u64,
    /// An address that it translates.
    pub view: u64,
    /// The ASID, or the VMID.
    pub space: u64,
    /// True if it is or was global: a fence of one address space does not reach it.
    pub global: bool,
    /// Values that may be written.
    pub values: Vec<u64>,
}

/// The stages, their modes and the addresses that lead to data.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// satp.
    pub satp: u64,
    /// vsatp.
    pub vsatp: u64,
    /// hgatp.
    pub hgatp: u64,
    /// Addresses of data for HS- and U-mode.
    pub views: Vec<u64>,
    /// Addresses of data for VS- and VU-mode.
    pub virtual_views: Vec<u64>,
    /// Leaves that may be changed.
    pub leaves: Vec<Leaf>,
    /// Flaws put into leaves.
    flaws: Vec<String>,
}

/// An entry that points to what lies at a physical address.
const fn entry(physical: u64, flags: u64) -> u64 {
    physical >> 12 << 10 | flags
}

/// log2 of the bytes that a leaf at a level maps.
const fn shift_of(level: u32) -> u32 {
    12 + 9 * level
}

/// The entry, unless it maps more pages than the one that it names: those are another program's.
const fn one_page(entry: u64) -> u64 {
    if entry & N != 0 && entry >> 10 & CONTIGUOUS_PAGES == CONTIGUOUS {
        entry & !N
    } else {
        entry
    }
}

/// One stage's tables.
struct Stage {
    translation: Translation,
    /// The ASID or VMID.
    space: u64,
    /// 3 to 5.
    levels: u32,
    /// Offset in the slot of the root.
    root: u64,
    /// Bits of an index into the root.
    root_bits: u32,
    /// Offsets of the tables of levels 2 and 3 that are not the root.
    upper: [u64; 2],
    /// Offsets of the tables of levels 1 and 0: for code, and for data.
    code: [u64; 2],
    data: [u64; 2],
}

impl Stage {
    fn first(translation: Translation, levels: u32, tables: u64, space: u64) -> Self {
        let page = |number: u64| tables + number * PAGE;
        Self {
            translation,
            space,
            levels,
            root: page(5 - u64::from(levels)),
            root_bits: 9,
            upper: [page(2), page(1)],
            code: [page(3), page(4)],
            data: [page(5), page(6)],
        }
    }

    const fn guest(levels: u32, space: u64) -> Self {
        let tables = layout::GUEST_TABLES;
        Self {
            translation: Translation::Guest,
            space,
            levels,
            root: layout::GUEST_ROOT,
            root_bits: 11,
            upper: [tables + PAGE, tables],
            code: [tables + 2 * PAGE, tables + 3 * PAGE],
            data: [tables + 4 * PAGE, tables + 5 * PAGE],
        }
    }

    const fn name(&self) -> &'static str {
        match self.translation {
            Translation::Host => "satp",
            Translation::Virtual => "vsatp",
            Translation::Guest => "G-stage",
        }
    }

    /// The offset of the table of a level from 2 to the root's.
    const fn table(&self, level: u32) -> u64 {
        if level + 1 == self.levels {
            self.root
        } else if level == 2 {
            self.upper[0]
        } else {
            self.upper[1]
        }
    }

    /// Puts pointers from the root to the table of level 1, by the indices of an address.
    fn lead(&self, slot: &mut Slot, address: u64, to: u64) {
        let base = slot.base;
        for level in 2..self.levels {
            let bits = if level + 1 == self.levels {
                self.root_bits
            } else {
                9
            };
            let index = address >> (12 + 9 * level) & ((1 << bits) - 1);
            let next = if level == 2 {
                to
            } else {
                self.table(level - 1)
            };
            slot.put_word(self.table(level) + 8 * index, entry(base + next, V));
        }
    }

    /// Maps a page of the slot to itself.
    fn map_same(&self, slot: &mut Slot, offset: u64, flags: u64) {
        let base = slot.base;
        let physical = base + offset;
        let index = |level: u32| physical >> (12 + 9 * level) & 0x1ff;
        self.lead(slot, physical, self.code[0]);
        slot.put_word(self.code[0] + 8 * index(1), entry(base + self.code[1], V));
        slot.put_word(
            self.code[1] + 8 * index(0),
            one_page(entry(physical, flags | V | A | D)),
        );
    }

    /// Sign-extends, for a first stage.
    const fn canonical(&self, address: u64) -> u64 {
        if self.root_bits != 9 {
            return address;
        }
        let unused = 64 - (12 + 9 * self.levels);
        ((address << unused).cast_signed() >> unused).cast_unsigned()
    }
}

impl Tables {
    /// Puts tables into the slot.
    pub fn new(slot: &mut Slot, mode: Mode, random: &mut Random) -> Self {
        let mut tables = Self::default();
        let asid = random.below(0x1_0000);
        let vmid = random.below(0x4000);
        let base = slot.base;
        let pages: Vec<u64> = (0..layout::DATA_PAGES)
            .map(|page| base + layout::DATA + page * PAGE)
            .collect();

        let user = if mode.is_virtual() || mode == Mode::Machine {
            random.chance(50)
        } else {
            mode.is_user()
        };
        let levels = random.pick(&[0, 3, 3, 4, 5]);
        if levels == 0 {
            tables.views = pages.clone();
        } else {
            let stage = Stage::first(Translation::Host, levels, layout::FIRST_TABLES, asid);
            map_code(&stage, slot, user, random);
            let own = if user { U } else { 0 };
            if random.chance(70) {
                for table in data_tables() {
                    stage.map_same(slot, table, R | W | own);
                }
            }
            tables.views = tables.map_data(&stage, slot, &pages, random);
            tables.satp = atp(levels, asid, base + stage.root);
        }

        // The G-stage, then VS-mode's tables in the guest's memory.
        let guest_levels = random.pick(&[0, 3, 3, 4, 5]);
        let virtual_tables = layout::FIRST_TABLES + layout::FIRST_TABLE_PAGES * PAGE;
        let guest_pages = if guest_levels == 0 {
            pages
        } else {
            let stage = Stage::guest(guest_levels, vmid);
            map_code(&stage, slot, true, random);
            for page in 0..layout::FIRST_TABLE_PAGES {
                let mut flags = R | W | U;
                // Only the tables of the data may be hard to reach.
                if page >= 5 && random.chance(20) {
                    flags = tables.spoil(&stage, R | W | U | V | A | D, 0, random);
                    stage.map_same(slot, virtual_tables + page * PAGE, R | W | U);
                    let at = slot.base + virtual_tables + page * PAGE;
                    let place = stage.code[1] + 8 * (at >> 12 & 0x1ff);
                    slot.put_word(place, one_page(entry(at, 0) | flags));
                    continue;
                }
                flags |= if random.chance(20) { X } else { 0 };
                stage.map_same(slot, virtual_tables + page * PAGE, flags);
            }
            tables.hgatp = atp(guest_levels, 0, base + stage.root) | vmid << 44;
            tables.map_data(&stage, slot, &pages, random)
        };
        let user = if mode.is_virtual() {
            mode.is_user()
        } else {
            random.chance(50)
        };
        let levels = random.pick(&[0, 3, 3, 4, 5]);
        if levels == 0 {
            tables.virtual_views = guest_pages;
        } else {
            let stage = Stage::first(Translation::Virtual, levels, virtual_tables, asid);
            map_code(&stage, slot, user, random);
            let own = if user { U } else { 0 };
            if random.chance(70) {
                for table in stage.data {
                    stage.map_same(slot, table, R | W | own);
                }
            }
            tables.virtual_views = tables.map_data(&stage, slot, &guest_pages, random);
            tables.vsatp = atp(levels, asid, base + stage.root);
        }
        tables
    }

    /// Maps views of pages and gives their addresses.
    fn map_data(
        &mut self,
        stage: &Stage,
        slot: &mut Slot,
        pages: &[u64],
        random: &mut Random,
    ) -> Vec<u64> {
        let base = slot.base;
        // Where the tables of the data hang: not where the code's do.
        // Nor where an address, taken for a physical one, is a device of another board.
        let top = stage.levels - 1;
        let mut high = (32 + random.below((1 << stage.root_bits) - 32)) << shift_of(top);
        for level in 2..top {
            high |= (8 + random.below(500)) << shift_of(level);
        }
        let middle = 8 + random.below(500);
        stage.lead(slot, high, stage.data[0]);
        slot.put_word(stage.data[0] + 8 * middle, entry(base + stage.data[1], V));
        let last = 4 + random.below(490);
        let mut views = Vec::new();
        for view in 0..VIEWS as u64 {
            let page = random.pick(pages);
            let level = match random.below(10) {
                0 | 1 => 1,
                2 => 2,
                3 => 3 + u32::from(random.chance(30)),
                _ => 0,
            };
            let level = if level > top { 0 } else { level };
            let mut leaf = self.leaf(stage, page, level, random);
            let inside = page & ((1 << shift_of(level)) - 1);
            // Views of the last level lie side by side, so that accesses cross from one to another.
            let (place, address) = match level {
                0 => {
                    let index = last + view;
                    let same = |page: &&u64| (**page >> 12 ^ index) & CONTIGUOUS_PAGES == 0;
                    if let Some(&page) = pages.iter().find(same)
                        && random.chance(50)
                    {
                        leaf = self.contiguous(stage, page, random);
                    }
                    (stage.data[1] + 8 * index, high | middle << 21 | index << 12)
                }
                1 => {
                    let index = (middle + 1 + view) & 0x1ff;
                    (stage.data[0] + 8 * index, high | index << 21 | inside)
                }
                _ => {
                    let shift = shift_of(level);
                    let bits = if level == top { stage.root_bits } else { 9 };
                    let above = high >> shift >> bits << bits << shift;
                    let index = (high >> shift & ((1 << bits) - 1)) + 1 + view;
                    if index >> bits != 0 {
                        continue;
                    }
                    let address = above | index << shift | inside;
                    (stage.table(level) + 8 * index, address)
                }
            };
            slot.put_word(place, leaf);
            views.push(stage.canonical(address));
            if level < 2 {
                let mut values = Vec::new();
                for _ in 0..4 {
                    let page = if level == 0 { random.pick(pages) } else { page };
                    values.push(self.leaf(stage, page, level, random) & !G);
                }
                self.leaves.push(Leaf {
                    translation: stage.translation,
                    place: slot.base + place,
                    view: stage.canonical(address) & !7,
                    space: stage.space,
                    global: leaf & G != 0,
                    values,
                });
            }
        }
        if random.chance(30) {
            // An address that is not one.
            let wild = views.first().copied().unwrap_or(0) ^ 1 << (20 + random.below(44));
            // As an address in the largest page it must not be a device's either.
            let leads_to = |address| {
                layout::DEVICES
                    .iter()
                    .any(|devices| devices.contains(&address))
            };
            if !leads_to(wild) && !leads_to(wild & ((1 << 39) - 1)) {
                views.push(wild);
            }
        }
        if views.is_empty() {
            views.push(stage.canonical(high | middle << 21));
        }
        views
    }

    /// A leaf that leads to a page, in half of the cases with a flaw.
    fn leaf(&mut self, stage: &Stage, page: u64, level: u32, random: &mut Random) -> u64 {
        let mut flags = R | W | V | A | D;
        flags |= if random.chance(40) { X } else { 0 };
        flags |= if random.chance(30) { G } else { 0 };
        let guest = stage.translation == Translation::Guest;
        flags |= if guest || random.chance(50) { U } else { 0 };
        if random.chance(50) {
            flags = self.spoil(stage, flags, level, random);
        }
        // Bits above the page number may be set by the flaw; it may also spoil the number.
        let physical = page & !((1 << shift_of(level)) - 1);
        one_page(entry(physical, 0) | flags)
    }

    /// A leaf of a contiguous range, in which an address with the page's own low bits leads to it.
    fn contiguous(&mut self, stage: &Stage, page: u64, random: &mut Random) -> u64 {
        let first = page & !(CONTIGUOUS_PAGES << 12);
        let leaf = self.leaf(stage, first, 0, random);
        leaf | N | CONTIGUOUS << 10
    }

    /// Gives a leaf's flags a flaw, and notes it.
    fn spoil(&mut self, stage: &Stage, flags: u64, level: u32, random: &mut Random) -> u64 {
        let (name, spoiled) = match random.below(16) {
            0 => ("V clear", flags & !V),
            1 => ("R and W clear", flags & !(R | W)),
            2 => ("W clear", flags & !W),
            3 => ("W without R", flags & !R | W),
            4 => ("execute only", flags & !(R | W) | X),
            5 => ("U turned", flags ^ U),
            6 => ("A and D clear", flags & !(A | D)),
            7 => ("D clear", flags & !D),
            8 => ("A clear", flags & !A),
            9 => ("reserved bit", flags | 1 << (54 + random.below(7))),
            10 => ("N", flags | N),
            11 => ("PBMT", flags | (1 + random.below(3)) << 61),
            12 if level > 0 => ("misaligned", flags | 1 << 10),
            12 => ("pointer at the last level", flags & !(R | W | X)),
            13 => ("D clear, W clear", flags & !(D | W)),
            14 => ("read only, A clear", flags & !(A | W | D)),
            _ => ("X turned", flags ^ X),
        };
        self.flaws
            .push(format!("{} level {level}: {name}", stage.name()));
        spoiled
    }

    /// Tests whether a leaf has a flaw of this name.
    pub fn has_flaw(&self, name: &str) -> bool {
        self.flaws.iter().any(|flaw| flaw.ends_with(name))
    }

    /// Description of the set-up for people.
    pub fn describe(&self) -> String {
        format!(
            "satp mode {}, vsatp mode {}, hgatp mode {} ({})",
            self.satp >> 60,
            self.vsatp >> 60,
            self.hgatp >> 60,
            self.flaws.join("; ")
        )
    }
}

/// A satp, vsatp or hgatp.
const fn atp(levels: u32, asid: u64, root: u64) -> u64 {
    let mode = levels as u64 + 5;
    mode << 60 | asid << 44 | root >> 12
}

/// The tables of all stages whose entries lead to data.
fn data_tables() -> [u64; 6] {
    let virtual_tables = layout::FIRST_TABLES + layout::FIRST_TABLE_PAGES * PAGE;
    let first = Stage::first(Translation::Host, 3, layout::FIRST_TABLES, 0).data;
    let second = Stage::first(Translation::Virtual, 3, virtual_tables, 0).data;
    let guest = Stage::guest(3, 0).data;
    [first[0], first[1], second[0], second[1], guest[0], guest[1]]
}

/// Code for the program's mode, handlers for supervisors, and the page of returns.
fn map_code(stage: &Stage, slot: &mut Slot, user: bool, random: &mut Random) {
    let guest = stage.root_bits == 11;
    let own = if user || guest { U } else { 0 };
    let handlers = if guest { U } else { 0 };
    // Code that may be written can change itself.
    let write = if random.chance(70) { W } else { 0 };
    stage.map_same(slot, layout::CODE, R | X | write | own);
    stage.map_same(slot, layout::HANDLERS, R | X | handlers);
    stage.map_same(slot, layout::LANDING, R | X | own);
}
