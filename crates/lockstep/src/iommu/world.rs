//! Random contexts and tables in memory.

use riscv::iommu::{capabilities, control};
use riscv::page_table::{ACCESSED, CONTIGUOUS, DIRTY, EXECUTE, READ, USER, VALID, WRITE};

use super::side::MEMORY;
use crate::random::Random;

/// Where tables begin; queues are below.
const TABLES: u64 = 0x1_0000;
/// Where pages of data begin.
const DATA: u64 = 0x30_0000;
/// Guest physical page numbers of interrupt files, with the last two bits free.
pub const FILES: u64 = 0x100;
/// Everything that a page may be.
const FULL: u64 = VALID | READ | WRITE | EXECUTE | USER | ACCESSED | DIRTY;

/// An entry that maps a page of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    /// Address of the entry.
    pub at: u64,
    /// Address that it translates.
    pub address: u64,
    /// Device whose space it is.
    pub device: usize,
    /// True if it is one of a second stage.
    pub is_second: bool,
    /// True if a table of the first stage lies in the page.
    pub is_table: bool,
    /// PSCID of the first stage.
    pub process: u32,
}

/// A device.
#[derive(Debug, Clone, Copy, Default)]
pub struct Device {
    /// Its id.
    pub id: u32,
    /// True if a first stage translates, or a process directory says which.
    pub has_first: bool,
    /// `iohgatp`.
    pub second: u64,
    /// Processes of its directory, or 0.
    pub processes: u32,
}

impl Device {
    /// GSCID, if its second stage translates.
    #[must_use]
    pub const fn guest(&self) -> Option<u64> {
        match self.second >> 60 {
            0 => None,
            _ => Some(self.second >> 44 & 0xffff),
        }
    }
}

/// Tables, and what is known of them.
#[derive(Debug)]
pub struct World {
    /// `capabilities` of the IOMMU.
    pub capabilities: u64,
    /// `ddtp`.
    pub ddtp: u64,
    /// All of memory.
    pub memory: Vec<u8>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Entries that map pages.
    pub leaves: Vec<Leaf>,
    /// Doublewords of any table.
    pub words: Vec<u64>,
    next: u64,
}

impl World {
    /// A world of three devices.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        let mut world = Self {
            capabilities: random_capabilities(random),
            ddtp: 0,
            memory: vec![0; MEMORY],
            devices: Vec::new(),
            leaves: Vec::new(),
            words: Vec::new(),
            next: TABLES,
        };
        let levels = random.below(3);
        let root = world.page(1);
        world.ddtp = root >> 2 | (levels + 2);
        for number in 0..3 {
            world.device(number, root, levels as u32, random);
        }
        world
    }

    fn has(&self, bit: u64) -> bool {
        self.capabilities & bit != 0
    }

    /// Fresh pages, aligned to their number.
    fn page(&mut self, number: u64) -> u64 {
        let bytes = number * 4096;
        let page = self.next.next_multiple_of(bytes);
        self.next = page + bytes;
        assert!(self.next < DATA, "too many tables");
        page
    }

    /// The doubleword at an address.
    #[must_use]
    pub fn load(&self, at: u64) -> u64 {
        let bytes = self.memory[at as usize..][..8].try_into();
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// Sets a doubleword.
    pub fn store(&mut self, at: u64, value: u64) {
        self.memory[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }

    fn put(&mut self, at: u64, value: u64) {
        self.store(at, value);
        self.words.push(at);
    }

    fn device(&mut self, number: usize, root: u64, levels: u32, random: &mut Random) {
        let extended = self.has(capabilities::MSI_FLAT);
        let (low, size) = if extended { (6, 64) } else { (7, 32) };
        // Devices differ in their last index.
        let bits = low + 9 * levels;
        let id = random.bits() & ((1 << bits.min(24)) - 1) & !3 | number as u64;
        let mut table = root;
        for level in (1..=levels).rev() {
            let index = id >> (low + 9 * (level - 1)) & 0x1ff;
            let at = table + index * 8;
            if self.load(at) & VALID == 0 {
                let next = self.page(1);
                self.put(at, next >> 2 | VALID);
            }
            table = self.load(at) >> 10 << 12;
        }
        let context = table + (id & ((1 << low) - 1)) * size;
        let guest = number as u64 + 1;
        let capabilities = self.capabilities;
        let mode = |shift: u64, random: &mut Random| random_mode(capabilities, shift, random);
        let mut device = Device {
            id: id as u32,
            ..Device::default()
        };
        let mode_of_second = mode(capabilities::GUEST_MODE_SHIFT, random);
        if mode_of_second != 0 {
            let root = self.page(4);
            device.second = mode_of_second << 60 | guest << 44 | root >> 12;
        }
        let mut controls = VALID;
        if self.has(capabilities::AMO_HWAD) {
            controls |= random.bits() & (control::UPDATE | control::GUEST_UPDATE);
        }
        let pscid = guest << 4;
        let first = if random.chance(30) {
            controls |= control::PROCESSES | random.bits() & control::DEFAULT_PROCESS;
            device.processes = 3;
            self.processes(number, &device, pscid, random)
        } else {
            let mode = mode(capabilities::MODE_SHIFT, random);
            self.first_stage((number, pscid as u32), &device, mode, random)
        };
        device.has_first = first != 0;
        for _ in 0..14 {
            let physical = DATA + random.below(64) * 4096;
            let address = random_guest(device.second >> 60, random);
            self.map_second(number, &device, (address, physical), false, random);
        }
        self.put(context, controls);
        self.put(context + 8, device.second);
        self.put(context + 16, pscid << 12);
        self.put(context + 24, first);
        if extended && mode_of_second != 0 && random.chance(70) {
            let table = self.page(1);
            self.put(context + 32, 1 << 60 | table >> 12);
            self.put(context + 40, 3);
            self.put(context + 48, FILES);
            for file in 0..4 {
                self.message(table + file * 16, random);
            }
        }
        self.devices.push(device);
    }

    /// An entry of an MSI page table.
    fn message(&mut self, at: u64, random: &mut Random) {
        let page = DATA + random.below(64) * 4096;
        match random.below(8) {
            0..=3 => {
                self.put(at, page >> 2 | 7);
                self.put(at + 8, 0);
            }
            4..=6 => {
                self.put(at, page >> 9 << 7 | 3);
                let notice = DATA + random.below(64) * 4096;
                let identity = random.bits() & (0x3ff | 1 << 60);
                self.put(at + 8, notice >> 2 | identity);
            }
            _ => {
                let value = random.value();
                self.put(at, value);
            }
        }
    }

    /// A process directory; returns `fsc`.
    fn processes(
        &mut self,
        number: usize,
        device: &Device,
        pscid: u64,
        random: &mut Random,
    ) -> u64 {
        let levels = random.below(3);
        let root = self.table(number, device, random);
        for process in 0..u64::from(device.processes) {
            let mut table = root;
            for _ in 0..levels {
                if self.load(table) & VALID == 0 {
                    let next = self.table(number, device, random);
                    self.put(table, next >> 2 | VALID);
                }
                table = self.load(table) >> 10 << 12;
            }
            let mode = random_mode(self.capabilities, capabilities::MODE_SHIFT, random);
            let own = pscid + process + 1;
            let first = self.first_stage((number, own as u32), device, mode, random);
            let rights = random.bits() & 6;
            self.put(table + process * 16, own << 12 | rights | VALID);
            self.put(table + process * 16 + 8, first);
        }
        (levels + 1) << 60 | root >> 12
    }

    /// A page for a table of the first stage, which the second stage maps at the same address.
    fn table(&mut self, number: usize, device: &Device, random: &mut Random) -> u64 {
        let page = self.page(1);
        self.map_second(number, device, (page, page), true, random);
        page
    }

    /// Tables of the first stage; returns `iosatp`.
    fn first_stage(
        &mut self,
        (number, process): (usize, u32),
        device: &Device,
        mode: u64,
        random: &mut Random,
    ) -> u64 {
        if mode == 0 {
            return 0;
        }
        let root = self.table(number, device, random);
        for _ in 0..5 {
            let guest = match random.below(4) {
                0 => (FILES + random.below(5)) << 12,
                _ => random_guest(device.second >> 60, random),
            };
            let guest = if device.second >> 60 == 0 {
                DATA + random.below(64) * 4096
            } else {
                guest
            };
            let width = 12 + 9 * (mode - 5);
            let address = ((random_address(random) << (64 - width)) as i64 >> (64 - width)) as u64;
            let top = mode as u32 - 6;
            let (mut table, mut level) = (root, top);
            let last = random_level(random, top);
            loop {
                let at = table + (address >> (12 + 9 * level) & 0x1ff) * 8;
                let entry = self.load(at);
                if level > last && (entry == 0 || entry & (READ | EXECUTE) == 0) {
                    if entry == 0 {
                        let next = self.table(number, device, random);
                        let global = if random.chance(10) { 1 << 5 } else { 0 };
                        self.put(at, next >> 2 | VALID | global);
                    }
                    table = (self.load(at) >> 10 & ((1 << 44) - 1)) << 12;
                    if table >= self.next {
                        break;
                    }
                    level -= 1;
                    continue;
                }
                if entry == 0 {
                    let entry = random_leaf(guest, level, random);
                    self.put(at, entry);
                    self.leaves.push(Leaf {
                        at,
                        address,
                        device: number,
                        is_second: false,
                        is_table: false,
                        process,
                    });
                }
                break;
            }
        }
        mode << 60 | root >> 12
    }

    /// Maps a page of the second stage.
    fn map_second(
        &mut self,
        number: usize,
        device: &Device,
        (address, physical): (u64, u64),
        is_table: bool,
        random: &mut Random,
    ) {
        let mode = device.second >> 60;
        if mode == 0 {
            return;
        }
        let top = mode as u32 - 6;
        let (mut table, mut level) = ((device.second & ((1 << 44) - 1)) << 12, top);
        let last = if is_table {
            0
        } else {
            random_level(random, top)
        };
        loop {
            let mask = if level == top { 0x7ff } else { 0x1ff };
            let at = table + (address >> (12 + 9 * level) & mask) * 8;
            let entry = self.load(at);
            if level > last && (entry == 0 || entry & (READ | EXECUTE) == 0) {
                if entry == 0 {
                    let next = self.page(1);
                    self.put(at, next >> 2 | VALID);
                }
                table = (self.load(at) >> 10 & ((1 << 44) - 1)) << 12;
                if table >= self.next {
                    return;
                }
                level -= 1;
                continue;
            }
            if entry == 0 {
                let entry = match is_table && random.chance(90) {
                    true => physical >> 2 | FULL,
                    false => random_leaf(physical, level, random),
                };
                self.put(at, entry);
                self.leaves.push(Leaf {
                    at,
                    address,
                    device: number,
                    is_second: true,
                    is_table,
                    process: 0,
                });
            }
            return;
        }
    }
}

/// A mode of page tables, mostly one that there is.
fn random_mode(capabilities: u64, shift: u64, random: &mut Random) -> u64 {
    let mode = random.pick(&[0, 8, 8, 9, 9, 10, 10]);
    let is_there = capabilities >> (mode + shift) & 1 != 0;
    match mode == 0 || is_there || random.chance(5) {
        true => mode,
        false => 8,
    }
}

/// Mostly the lowest level.
fn random_level(random: &mut Random, top: u32) -> u32 {
    match random.chance(80) {
        true => 0,
        false => random.below(u64::from(top) + 1) as u32,
    }
}

fn random_capabilities(random: &mut Random) -> u64 {
    let messages = capabilities::MSI_FLAT | capabilities::MSI_MRIF;
    let some = messages | capabilities::AMO_HWAD | capabilities::SVPBMT;
    let mut chosen = random.bits() & some;
    if chosen & capabilities::MSI_FLAT == 0 {
        chosen &= !capabilities::MSI_MRIF;
    }
    // The narrower modes come with the wider.
    let modes = || random_modes(&mut random.clone());
    capabilities::VERSION
        | modes() << (8 + capabilities::MODE_SHIFT)
        | modes() << (8 + capabilities::GUEST_MODE_SHIFT)
        | chosen
        | capabilities::IGS_BOTH
        | 56 << capabilities::PAS_SHIFT
        | (capabilities::PD8 * 7)
}

fn random_modes(random: &mut Random) -> u64 {
    random.pick(&[7, 7, 7, 3, 1])
}

/// An address that a device may use.
pub fn random_address(random: &mut Random) -> u64 {
    let pages = [
        0,
        1,
        2,
        3,
        0x200,
        0x201,
        0x4_0000,
        0x7ff_ffff,
        1 << 26,
        1 << 35,
    ];
    let page = random.pick(&pages) + random.below(3);
    (page << 12) | (random.below(1024) * 4)
}

/// A guest physical address.
pub fn random_guest(mode: u64, random: &mut Random) -> u64 {
    let pages = [0x3_0000, 0x3_0000, 0x3_0200, 1 << 28, FILES];
    let page: u64 = random.pick(&pages) + random.below(2);
    match mode {
        0 => DATA + random.below(64) * 4096,
        _ => page << 12,
    }
}

/// An entry that maps a page, mostly sound.
fn random_leaf(address: u64, level: u32, random: &mut Random) -> u64 {
    let mut number = address >> 12;
    if !random.chance(2) {
        number &= !((1 << (9 * level)) - 1);
    }
    let mut entry = FULL;
    if random.chance(20) {
        entry = random.bits() & 0xff | VALID;
    }
    if random.chance(6) {
        entry |= random.bits() & 3 << 61;
    }
    if random.chance(6) {
        entry |= CONTIGUOUS;
        if random.chance(70) {
            number = number & !0xf | 8;
        }
    }
    number << 10 | entry
}
