//! Walks over tables that are put into memory by hand.

use super::{View, WalkTrace, walk};
use crate::base::{Access, Cause, Mode, Privilege};
use crate::csr::Csrs;
use crate::memory::{PhysicalMemory, Ram};
use crate::translation::Masking;

const BASE: u64 = 0x8000_0000;
/// V, R, W, X, A and D.
const LEAF: u64 = 0xcf;
const USER: u64 = 0x10;
const CONTIGUOUS: u64 = 1 << 63;

struct Bench {
    csrs: Csrs,
    memory: PhysicalMemory,
}

impl Bench {
    fn new() -> Self {
        let ram = Ram::new(BASE, 4 << 20).expect("four megabytes");
        let mut csrs = Csrs::new();
        // Protection permits everything.
        csrs.pmp.set_address(0, u64::MAX);
        csrs.pmp.set_configuration(0, 0x1f);
        Self {
            csrs,
            memory: PhysicalMemory::new(ram),
        }
    }

    fn put(&mut self, table: u64, index: u64, entry: u64) {
        let stored = self.memory.store_scalar(table + 8 * index, entry, 0);
        assert!(stored.is_some());
    }

    /// Tables from a root to a leaf at level 0, a page apart, with the index 1 at every level.
    fn chain(&mut self, root: u64, levels: u64, leaf: u64) {
        let mut table = root;
        for _ in 1..levels {
            let next = (table + 0x4000) & !0x3fff;
            self.put(table, 1, next >> 2 | 1);
            table = next;
        }
        self.put(table, 1, leaf);
    }

    fn load(&mut self, virtualized: bool, address: u64) -> Result<u64, Cause> {
        let view = View {
            mode: Mode::new(Privilege::Supervisor, virtualized),
            sum: false,
            mxr: false,
            guest_mxr: false,
            execute_for_read: false,
            shadow_stack: false,
            masking: Masking::None,
        };
        let mut trace = WalkTrace::default();
        let (csrs, memory) = (&self.csrs, &mut self.memory);
        walk(csrs, memory, &mut trace, view, Access::Load, address)
            .map(|mapping| mapping.physical)
            .map_err(|exception| exception.cause)
    }
}

/// The address with the index 1 at each of so many levels, in a page.
fn ones(levels: u64, inside: u64) -> u64 {
    (0..levels).map(|level| 1 << (12 + 9 * level)).sum::<u64>() | inside
}

fn atp(mode: u64, root: u64) -> u64 {
    mode << 60 | root >> 12
}

#[test]
fn five_levels_lead_to_a_page() {
    let mut bench = Bench::new();
    bench.chain(BASE, 5, (BASE + 0x12_3000) >> 2 | LEAF);
    bench.csrs.satp = atp(10, BASE);
    assert_eq!(bench.load(false, ones(5, 0x45)), Ok(BASE + 0x12_3045));
    // Bits 63 to 57 are those of bit 56.
    for bit in 57..64 {
        let address = ones(5, 0) | 1 << bit;
        assert_eq!(bench.load(false, address), Err(Cause::LoadPage), "{bit}");
    }
    // Four levels of the same tables end before the page.
    bench.csrs.satp = atp(9, BASE);
    assert_eq!(bench.load(false, ones(4, 0)), Err(Cause::LoadPage));
}

#[test]
fn a_page_of_256_tebibytes_is_one() {
    let mut bench = Bench::new();
    bench.put(BASE, 0, LEAF);
    bench.put(BASE, 1, 1 << 45 | LEAF);
    bench.csrs.satp = atp(10, BASE);
    let address = 0xabcd_1234_5678;
    assert_eq!(bench.load(false, address), Ok(address));
    // The second page begins at 2^47, which is not a multiple of 2^48.
    assert_eq!(bench.load(false, 1 << 48), Err(Cause::LoadPage));
}

#[test]
fn sv57x4_translates_59_bits() {
    let mut bench = Bench::new();
    bench.chain(BASE, 5, (BASE + 0x12_3000) >> 2 | LEAF | USER);
    // The same below the last of the root's 2,048 entries.
    let next = (BASE + 0x4000) >> 2 | 1;
    bench.put(BASE, 2047, next);
    bench.csrs.hgatp = atp(10, BASE);
    assert_eq!(bench.load(true, ones(5, 8)), Ok(BASE + 0x12_3008));
    let last = 2047 << 48 | ones(4, 8);
    assert_eq!(bench.load(true, last), Ok(BASE + 0x12_3008));
    assert_eq!(bench.load(true, last | 1 << 59), Err(Cause::LoadGuestPage));
}

#[test]
fn contiguous_ranges_take_four_address_bits() {
    for virtualized in [false, true] {
        let mut bench = Bench::new();
        let leaf = LEAF | if virtualized { USER } else { 0 };
        let entry = (BASE + 0x12_8000) >> 2 | leaf | CONTIGUOUS;
        bench.chain(BASE, 3, entry);
        if virtualized {
            bench.csrs.hgatp = atp(8, BASE);
        } else {
            bench.csrs.satp = atp(8, BASE);
        }
        // The entry of page 1 in the range maps page 1 of the range.
        let fault = if virtualized {
            Cause::LoadGuestPage
        } else {
            Cause::LoadPage
        };
        let table = BASE + 0x8000;
        assert_eq!(bench.load(virtualized, ones(3, 0xc)), Ok(BASE + 0x12_100c));
        // "Page table entry encodings when pte.N=1": all other sizes are reserved.
        for low in [0, 1, 2, 4, 9, 12, 15] {
            let entry = (BASE + 0x12_0000 + (low << 12)) >> 2 | leaf | CONTIGUOUS;
            bench.put(table, 1, entry);
            assert_eq!(bench.load(virtualized, ones(3, 0)), Err(fault), "{low}");
        }
        // Larger pages and pointers have no N.
        bench.put(BASE, 2, leaf | CONTIGUOUS | 8 << 28);
        assert_eq!(bench.load(virtualized, 2 << 30), Err(fault));
        bench.put(BASE, 1, (BASE + 0x4000) >> 2 | 1 | CONTIGUOUS);
        assert_eq!(bench.load(virtualized, ones(3, 0)), Err(fault));
    }
}
