use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex as HostMutex;

use proptest::prelude::*;
use scheduler::VmId;

use super::*;
use crate::memory::frames::pool::PagePool;
use crate::memory::frames::pool::tests::pool;
use crate::memory::gstage::Mode;
use crate::memory::guest::GuestMemory;
use crate::memory::placement::reservation;
use crate::memory::reclaim::{self, MAX_PAGES_A_STEP};

const FIRST_VM: VmId = VmId::new(0).unwrap();
const GIB: u64 = 1 << 30;
const RAM: u64 = 2 * GIB;
/// A page that is mapped for good, below the memory.
const DEVICE: u64 = 0x2800_0000;

/// Words and tables of a computer with few pages.
#[derive(Debug, Default)]
struct Computer {
    words: HashMap<u64, u64>,
    /// Memory allocated and not given back: the size by the address.
    given: BTreeMap<u64, u64>,
    next: u64,
    left: u64,
}

impl TableMemory for Computer {
    fn read(&self, address: HostPhysical) -> u64 {
        let inside = self.given.range(..=address.raw()).next_back();
        assert!(
            inside.is_some_and(|(base, size)| address.raw() < base + size),
            "{address:?} is no table that stands"
        );
        self.words.get(&address.raw()).copied().unwrap_or(0)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        let _ = self.read(address);
        self.words.insert(address.raw(), value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        self.left = self.left.checked_sub(size / PAGE_SIZE)?;
        // Never the same address twice, and never two pages behind each other.
        let base = (8 * GIB + self.next).next_multiple_of(size);
        self.next = base - 8 * GIB + size + PAGE_SIZE;
        self.given.insert(base, size);
        Some(HostPhysical::new(base))
    }
}

/// Memory allocated for the guest, apart from the permanent part.
#[derive(Debug, Clone)]
struct Shared(std::sync::Arc<HostMutex<(Computer, Vec<u64>)>>);

impl PageStore for Shared {
    fn with_tables<T>(&self, with: impl FnOnce(&dyn TableMemory) -> T) -> T {
        with(&self.0.lock().unwrap().0)
    }

    fn with_tables_mut<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T {
        let mut guard = self.0.lock().unwrap();
        let (computer, own) = &mut *guard;
        let before = computer.given.clone();
        let result = with(computer);
        let new = computer
            .given
            .keys()
            .filter(|base| !before.contains_key(base));
        own.extend(new);
        result
    }

    fn free(&self, frame: HostRegion) {
        let mut guard = self.0.lock().unwrap();
        let (computer, own) = &mut *guard;
        let base = frame.base().raw();
        own.retain(|given| *given != base);
        assert_eq!(computer.given.remove(&base), Some(PAGE_SIZE));
        computer.left += 1;
    }

    fn bytes(&self) -> u64 {
        let guard = self.0.lock().unwrap();
        let (computer, own) = &*guard;
        own.iter().map(|base| computer.given[base]).sum()
    }

    fn give_back(&self) {
        let mut guard = self.0.lock().unwrap();
        let (computer, own) = &mut *guard;
        for base in own.drain(..) {
            let size = computer.given.remove(&base).unwrap();
            computer.left += size / PAGE_SIZE;
        }
    }
}

/// A guest's memory of so many bytes on a computer with so many pages left, beside a page of a device.
fn guest(mode: Mode, size: u64, pages: u64) -> (GuestMemory, SharedTable, Shared) {
    let mut computer = Computer {
        left: 64,
        ..Computer::default()
    };
    let mut table = GStage::new(mode, &mut computer).unwrap();
    let device = GuestRegion::new(GuestPhysical::new(DEVICE), PAGE_SIZE).unwrap();
    let host = HostPhysical::new(0x1000);
    table
        .map(&mut computer, device, host, Permissions::DEVICE)
        .unwrap();
    computer.left = pages;
    let store = Shared(std::sync::Arc::new(HostMutex::new((computer, Vec::new()))));
    let table: SharedTable = Arc::new(Mutex::new(table));
    let region = GuestRegion::new(GuestPhysical::new(RAM), size).unwrap();
    let pages = TouchedPages::new(region, Arc::clone(&table), store.clone());
    let memory = GuestMemory::of_pages(region, std::boxed::Box::new(pages));
    (memory, table, store)
}

fn at(offset: u64) -> GuestPhysical {
    GuestPhysical::new(RAM + offset)
}

#[test]
fn touched_page_is_mapped_and_stays() {
    let (memory, table, store) = guest(Mode::Sv39x4, 64 << 20, 16);
    assert!(memory.is_demand_paged() && memory.whole().is_none() && memory.mapped().is_empty());
    let mapped = |address| store.with_tables(|tables| table.lock().translate(tables, address));
    assert_eq!(mapped(at(0x5000)), None);
    assert_eq!(memory.touch(at(0x5123)), Touch::FaultedIn);
    let there = mapped(at(0x5000)).unwrap();
    assert_eq!(there.permissions, Permissions::MEMORY);
    assert_eq!(there.leaf_size, PAGE_SIZE);
    assert_eq!(memory.touch(at(0x5fff)), Touch::Present);
    // The hypervisor reaches the same page.
    let reached = memory.in_one(at(0x5008), 8).unwrap();
    assert_eq!(reached.base().raw(), there.host.raw() + 8);
    // Addresses outside belong to no VM.
    assert_eq!(memory.touch(GuestPhysical::new(RAM - 1)), Touch::NoFrame);
    assert_eq!(memory.touch(at(64 << 20)), Touch::NoFrame);
    assert_eq!(memory.in_one(at(0x5ffc), 8), None, "two pages lie apart");
}

#[test]
fn range_yields_its_pages_in_order() {
    let (memory, ..) = guest(Mode::Sv48x4, 64 << 20, 16);
    let range = GuestRegion::new(at(0x1800), 0x2000).unwrap();
    let sizes: Vec<u64> = memory
        .ranges(range)
        .unwrap()
        .map(OwnedRegion::size)
        .collect();
    assert_eq!(sizes, [0x800, 0x1000, 0x800]);
}

#[test]
fn missing_frame_fails_and_may_recover() {
    // Two tables and one page.
    let (memory, _, _) = guest(Mode::Sv39x4, 64 << 20, 3);
    assert_eq!(memory.touch(at(0)), Touch::FaultedIn);
    assert_eq!(memory.touch(at(PAGE_SIZE)), Touch::NoFrame);
    assert_eq!(memory.in_one(at(PAGE_SIZE), 8), None);
    memory.give_back();
    assert_eq!(memory.touch(at(PAGE_SIZE)), Touch::FaultedIn);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Touch(u64),
    Reach(u64),
    GiveBack,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let pages = 3 * GIB / PAGE_SIZE;
    let act = prop_oneof![
        8 => (0..pages).prop_map(Act::Touch),
        8 => (0..64u64).prop_map(Act::Touch),
        4 => (0..64u64).prop_map(Act::Reach),
        1 => Just(Act::GiveBack),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    /// No page lies where another one does, none moves, all go back, and what else the table maps stays: whatever is done.
    #[test]
    fn pages_are_each_guests_own(acts in acts(), small: bool) {
        let mode = if small { Mode::Sv39x4 } else { Mode::Sv48x4 };
        let (memory, table, store) = guest(mode, 3 * GIB, 1000);
        let expected = RefCell::new(BTreeMap::<u64, u64>::new());
        let came = |page: u64, host: u64| {
            let mut expected = expected.borrow_mut();
            prop_assert!(!expected.values().any(|other| *other == host));
            expected.insert(page, host);
            Ok(())
        };
        let mapped = |address| store.with_tables(|tables| table.lock().translate(tables, address));
        for act in acts {
            match act {
                Act::Touch(page) => {
                    let was = expected.borrow().get(&page).copied();
                    let touch = memory.touch(at(page * PAGE_SIZE + 8));
                    let host = mapped(at(page * PAGE_SIZE)).unwrap().host.raw();
                    match was {
                        Some(before) => prop_assert_eq!((touch, host), (Touch::Present, before)),
                        None => {
                            prop_assert_eq!(touch, Touch::FaultedIn);
                            came(page, host)?;
                        }
                    }
                }
                Act::Reach(page) => {
                    let host = memory.in_one(at(page * PAGE_SIZE), PAGE_SIZE).unwrap().base().raw();
                    let was = expected.borrow().get(&page).copied();
                    match was {
                        Some(before) => prop_assert_eq!(host, before),
                        None => came(page, host)?,
                    }
                }
                Act::GiveBack => {
                    memory.give_back();
                    expected.borrow_mut().clear();
                    prop_assert_eq!(store.0.lock().unwrap().0.left, 1000);
                    prop_assert_eq!(mapped(at(0)), None);
                }
            }
            prop_assert!(mapped(GuestPhysical::new(DEVICE)).is_some());
        }
    }
}

#[test]
fn reclaimed_page_is_mapped_anew() {
    let (memory, _table, store) = guest(Mode::Sv39x4, 64 << 20, 16);
    let pages = memory.pages();
    assert_eq!(memory.touch(at(0x5008)), Touch::FaultedIn);
    assert_eq!(memory.touch(at(0x6000)), Touch::FaultedIn);
    let (before, other) = (pages.frame(at(0x5000)), pages.frame(at(0x6000)));
    let left = store.0.lock().unwrap().0.left;
    let resident = pages.resident().unwrap();
    assert!(pages.unmap(at(0x5000)));
    assert!(!pages.unmap(at(0x5000)), "twice");
    assert!(
        !pages.unmap(GuestPhysical::new(DEVICE)),
        "what is not memory"
    );
    assert_eq!(pages.frame(at(0x5000)), None);
    assert_eq!(pages.resident(), Some(resident), "its frame is the guest's");
    pages.free(before.unwrap());
    assert_eq!(store.0.lock().unwrap().0.left, left + 1);
    assert_eq!(pages.resident(), Some(resident - PAGE_SIZE));
    assert_eq!(memory.touch(at(0x5008)), Touch::FaultedIn);
    assert_ne!(pages.frame(at(0x5000)), before);
    assert_eq!(pages.frame(at(0x6000)), other);
}

/// A guest's store whose pages come from a pool, as in the hypervisor.
#[derive(Debug, Clone)]
struct Pooled(std::sync::Arc<HostMutex<Pool>>);

#[derive(Debug)]
struct Pool {
    pages: PagePool,
    words: HashMap<u64, u64>,
    /// Address of the next table while the system is assembled.
    assembly: Option<u64>,
}

impl TableMemory for Pool {
    fn read(&self, address: HostPhysical) -> u64 {
        self.words.get(&address.raw()).copied().unwrap_or(0)
    }

    fn write(&mut self, address: HostPhysical, value: u64) {
        self.words.insert(address.raw(), value);
    }

    fn allocate(&mut self, size: u64) -> Option<HostPhysical> {
        if let Some(next) = &mut self.assembly {
            let base = next.next_multiple_of(size);
            *next = base + size;
            return Some(HostPhysical::new(base));
        }
        let page = self.pages.give(FIRST_VM)?.region();
        self.words
            .retain(|at, _| !page.contains(HostPhysical::new(*at)));
        Some(page.base())
    }
}

impl PageStore for Pooled {
    fn with_tables<T>(&self, with: impl FnOnce(&dyn TableMemory) -> T) -> T {
        with(&*self.0.lock().unwrap())
    }

    fn with_tables_mut<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T {
        with(&mut *self.0.lock().unwrap())
    }

    fn free(&self, frame: HostRegion) {
        let freed = self.0.lock().unwrap().pages.take_back(FIRST_VM, frame);
        assert_eq!(freed, Ok(()));
    }

    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().pages.bytes_of(FIRST_VM)
    }

    fn give_back(&self) {
        self.0.lock().unwrap().pages.take_back_all(FIRST_VM);
    }
}

/// Another hart that does or does not use what the guest gives back.
struct OtherHart<'a> {
    pages: &'a dyn Pages,
    is_using: bool,
}

impl reclaim::Port for OtherHart<'_> {
    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical> {
        self.pages.frame(page)
    }

    fn in_use(&self, _: &mut dyn FnMut(HostRegion)) {}

    fn unmap(&self, page: GuestPhysical) -> bool {
        self.pages.unmap(page)
    }

    fn advance(&self) -> u64 {
        1
    }

    fn is_used(&self, _: u64) -> bool {
        self.is_using
    }

    fn forget(&self, _: &[HostPhysical]) {}

    fn free(&self, frame: HostPhysical) {
        self.pages.free(frame);
    }
}

/// A guest of so many pages, with what is reserved for it and not a page more.
fn reserved_guest(pages: u64) -> GuestMemory {
    let size = pages * PAGE_SIZE;
    let pages = pool(&[reservation(size)]);
    let mut store = Pool {
        pages,
        words: HashMap::new(),
        assembly: Some(PAGE_SIZE),
    };
    let mut table = GStage::new(Mode::Sv48x4, &mut store).unwrap();
    let device = GuestRegion::new(GuestPhysical::new(DEVICE), PAGE_SIZE).unwrap();
    let host = HostPhysical::new(DEVICE);
    let mapped = table.map(&mut store, device, host, Permissions::DEVICE);
    assert_eq!(mapped, Ok(()));
    store.assembly = None;
    let table: SharedTable = Arc::new(Mutex::new(table));
    let region = GuestRegion::new(GuestPhysical::new(RAM), size).unwrap();
    let store = Pooled(std::sync::Arc::new(HostMutex::new(store)));
    let pages = TouchedPages::new(region, table, store);
    GuestMemory::of_pages(region, std::boxed::Box::new(pages))
}

/// Pages that leave are still the guest's, and those that come in their place are more than the guest's memory.
#[test]
fn page_on_its_way_has_a_successor() {
    let memory = reserved_guest(600);
    let touch_all = || (0..600).all(|page| memory.touch(at(page * PAGE_SIZE)) != Touch::NoFrame);
    let mut returning = reclaim::Reclaim::new();
    for _ in 0..3 {
        assert!(touch_all());
        for start in (0..512).step_by(MAX_PAGES_A_STEP as usize) {
            let given = GuestRegion::new(at(start * PAGE_SIZE), MAX_PAGES_A_STEP * PAGE_SIZE);
            assert!(returning.give(given.unwrap()));
            let mut other = OtherHart {
                pages: memory.pages(),
                is_using: true,
            };
            assert_eq!(returning.step(&other), reclaim::Step::Later);
            assert!(touch_all(), "while a hart uses the former pages");
            other.is_using = false;
            assert_eq!(returning.step(&other), reclaim::Step::Done);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Touch(u64, u64),
    Give(u64, u64),
    Step(bool),
    Restart,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        6 => (0..700_u64, 1..700_u64).prop_map(|(from, count)| Turn::Touch(from, count)),
        6 => (0..700_u64, 1..300_u64).prop_map(|(from, count)| Turn::Give(from, count)),
        6 => any::<bool>().prop_map(Turn::Step),
        1 => Just(Turn::Restart),
    ];
    prop::collection::vec(turn, 1..60)
}

proptest! {
    /// However a guest touches, gives back and restarts, and whichever VM uses its former pages: no page of its memory fails to come.
    #[test]
    fn touched_page_always_comes(turns in turns()) {
        let memory = reserved_guest(700);
        let mut returning = reclaim::Reclaim::new();
        for turn in turns {
            match turn {
                Turn::Touch(from, count) => {
                    for page in (from..700).take(count as usize) {
                        prop_assert_ne!(memory.touch(at(page * PAGE_SIZE)), Touch::NoFrame);
                    }
                }
                Turn::Give(from, count) => {
                    let pages = GuestRegion::new(at(from * PAGE_SIZE), count.min(700 - from) * PAGE_SIZE);
                    let _ = returning.give(pages.unwrap());
                }
                Turn::Step(is_using) => {
                    let _ = returning.step(&OtherHart { pages: memory.pages(), is_using });
                }
                Turn::Restart => {
                    returning.clear();
                    memory.give_back();
                }
            }
        }
    }
}
