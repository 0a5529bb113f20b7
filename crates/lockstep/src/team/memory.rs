//! Memory that harts share: cells, results, code that changes, two stages of page tables and data behind
//! them.

use crate::assembler::{C_RET, addi};
use crate::layout::{PAGE, SLOTS};
use crate::random::Random;

/// Cells that harts count in, each in a cache line of its own.
pub const CELLS: u64 = SLOTS;
/// Bytes from one cell to the next.
pub const CELL: u64 = 64;
/// A page for each hart's results.
pub const RESULTS: u64 = SLOTS + PAGE;
/// The cell at which harts meet.
pub const MEETING: u64 = SLOTS + 5 * PAGE;
/// Functions of 16 bytes that are changed.
pub const FUNCTIONS: u64 = SLOTS + 6 * PAGE;
/// VS-stage tables: root, level 1, level 0.
const VIRTUAL: u64 = SLOTS + 8 * PAGE;
/// The G-stage's root of four pages.
const GUEST_ROOT: u64 = SLOTS + 16 * PAGE;
/// The G-stage's tables of levels 1 and 0.
const GUEST: u64 = SLOTS + 20 * PAGE;
/// Pages behind the tables.
pub const DATA: u64 = SLOTS + 24 * PAGE;
/// How many.
pub const DATA_PAGES: u64 = 4;
const END: u64 = DATA + DATA_PAGES * PAGE;

/// The virtual address of the first page.
pub const VIEW: u64 = 0x4000_0000;

const V: u64 = 1;
/// R, W, U, A and D.
const LEAF: u64 = 0xd7;
const MODE: u64 = 8 << 60;

const fn entry(physical: u64, flags: u64) -> u64 {
    physical >> 12 << 10 | flags
}

/// vsatp and hgatp.
pub const ROOTS: [u64; 2] = [MODE | VIRTUAL >> 12, MODE | 1 << 44 | GUEST_ROOT >> 12];

/// Memory from [`SLOTS`].
#[derive(Debug)]
pub struct Memory {
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Memory {
    /// Random cells and data, and tables that map each page.
    pub fn new(random: &mut Random) -> Self {
        let mut memory = Self {
            bytes: vec![0; (END - SLOTS) as usize],
        };
        for cell in 0..PAGE / CELL {
            memory.put(CELLS + cell * CELL, random.value());
        }
        for word in 0..DATA_PAGES * PAGE / 8 {
            memory.put(DATA + 8 * word, random.bits());
        }
        memory.put(VIRTUAL + 8 * (VIEW >> 30), entry(VIRTUAL + PAGE, V));
        memory.put(VIRTUAL + PAGE, entry(VIRTUAL + 2 * PAGE, V));
        for page in 0..DATA_PAGES {
            memory.put(virtual_leaf(page), leaf(page));
        }
        memory.put(GUEST_ROOT + 8 * (SLOTS >> 30), entry(GUEST, V));
        memory.put(GUEST, entry(GUEST + PAGE, V));
        for page in (VIRTUAL..VIRTUAL + 3 * PAGE)
            .chain(DATA..END)
            .step_by(PAGE as usize)
        {
            memory.put(guest_leaf(page), entry(page, LEAF));
        }
        memory
    }

    fn put(&mut self, address: u64, value: u64) {
        let start = (address - SLOTS) as usize;
        self.bytes[start..start + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Puts a function: an ADDI to a0, and a return.
    pub fn put_function(&mut self, number: u64, immediate: i32) {
        let word = u64::from(addi(10, 10, immediate)) | u64::from(C_RET) << 32;
        self.put(FUNCTIONS + 16 * number, word);
    }
}

/// The address of the VS-stage leaf of a page of [`VIEW`].
pub const fn virtual_leaf(page: u64) -> u64 {
    VIRTUAL + 2 * PAGE + 8 * page
}

/// The address of the G-stage leaf of a guest page.
pub const fn guest_leaf(address: u64) -> u64 {
    GUEST + PAGE + 8 * (address >> 12 & 0x1ff)
}

/// A leaf of either stage that leads to a data page.
pub const fn leaf(page: u64) -> u64 {
    entry(DATA + page * PAGE, LEAF)
}
