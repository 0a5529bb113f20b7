//! Guests, harts with what they keep of translations, and a device, in every order that chance finds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const RAM: u64 = 0x8000_0000;
const FRAMES: u64 = 0x1_0000;
/// The hart that gives pages back, and how many there are.
const OWN: usize = 0;
const HARTS: usize = 3;

/// State of one hart: the generation with which it runs the guest, if it does, and its translations.
#[derive(Clone, Debug, Default)]
struct Hart {
    declared: Option<u64>,
    seen: u64,
    kept: BTreeMap<u64, u64>,
}

#[derive(Debug, Default)]
struct World {
    /// Frames by pages.
    table: RefCell<BTreeMap<u64, u64>>,
    free: RefCell<BTreeSet<u64>>,
    generation: Cell<u64>,
    harts: RefCell<Vec<Hart>>,
    /// Bytes that the device still reaches.
    device: RefCell<Vec<(u64, u64)>>,
    told: RefCell<BTreeSet<usize>>,
    forgotten: RefCell<BTreeSet<u64>>,
    /// Work for single pages: one looked up, taken out, forgotten or freed.
    steps: Cell<u64>,
}

impl World {
    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    fn new(frames: u64) -> Self {
        let world = Self::default();
        world.generation.set(1);
        let free = (0..frames).map(|number| FRAMES + number * PAGE_SIZE);
        world.free.borrow_mut().extend(free);
        world.harts.borrow_mut().resize(HARTS, Hart::default());
        world
    }

    /// A guest or the hypervisor touches a page. `None` where there is no frame.
    fn touch(&self, page: u64) -> Option<u64> {
        if let Some(frame) = self.table.borrow().get(&page) {
            return Some(*frame);
        }
        let frame = self.free.borrow_mut().pop_first()?;
        self.table.borrow_mut().insert(page, frame);
        Some(frame)
    }

    /// A hart enters the guest: it declares the generation, and drops what is older.
    fn enter(&self, hart: usize) {
        let hart = &mut self.harts.borrow_mut()[hart];
        hart.declared = Some(self.generation.get());
        if hart.seen != self.generation.get() {
            hart.kept.clear();
            hart.seen = self.generation.get();
        }
    }

    /// The guest on a hart stores to a page: by what the hart keeps, or by the table.
    fn store(&self, hart: usize, page: u64) {
        if self.harts.borrow()[hart].declared.is_none() {
            return;
        }
        let kept = self.harts.borrow()[hart].kept.get(&page).copied();
        if let Some(frame) = kept.or_else(|| self.touch(page)) {
            assert!(
                !self.free.borrow().contains(&frame),
                "a store to a free frame"
            );
            self.harts.borrow_mut()[hart].kept.insert(page, frame);
        }
    }

    /// The device writes wherever it still may.
    fn work(&self) {
        for (from, bytes) in self.device.borrow().iter() {
            let free = self.free.borrow();
            let mut frames = (from / PAGE_SIZE)..=((from + bytes - 1) / PAGE_SIZE);
            assert!(
                frames.all(|frame| !free.contains(&(frame * PAGE_SIZE))),
                "a device writes to a free frame"
            );
        }
    }
}

impl Port for World {
    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical> {
        self.count(1);
        let table = self.table.borrow();
        table.get(&page.raw()).copied().map(HostPhysical::new)
    }

    fn in_use(&self, tell: &mut dyn FnMut(HostRegion)) {
        for (from, bytes) in self.device.borrow().iter() {
            tell(HostRegion::new(HostPhysical::new(*from), *bytes).unwrap());
        }
    }

    fn unmap(&self, page: GuestPhysical) -> bool {
        self.count(1);
        self.table.borrow_mut().remove(&page.raw()).is_some()
    }

    fn advance(&self) -> u64 {
        self.generation.set(self.generation.get() + 1);
        self.generation.get()
    }

    fn is_used(&self, generation: u64) -> bool {
        let harts = self.harts.borrow();
        let others = harts.iter().enumerate().filter(|(number, hart)| {
            *number != OWN && hart.declared.is_some_and(|declared| declared < generation)
        });
        let others: BTreeSet<usize> = others.map(|(number, _)| number).collect();
        self.told.borrow_mut().extend(&others);
        !others.is_empty()
    }

    fn forget(&self, frames: &[HostPhysical]) {
        self.count(frames.len());
        let frames = frames.iter().map(|frame| frame.raw());
        self.forgotten.borrow_mut().extend(frames);
    }

    fn free(&self, frame: HostPhysical) {
        self.count(1);
        assert!(self.forgotten.borrow_mut().remove(&frame.raw()));
        assert!(
            !self
                .table
                .borrow()
                .values()
                .any(|used| *used == frame.raw())
        );
        assert!(self.free.borrow_mut().insert(frame.raw()), "freed twice");
    }
}

fn pages(first: u64, count: u64) -> GuestRegion {
    let base = GuestPhysical::new(RAM + first * PAGE_SIZE);
    GuestRegion::new(base, count * PAGE_SIZE).unwrap()
}

fn page(number: u64) -> u64 {
    RAM + number * PAGE_SIZE
}

#[test]
fn unshared_pages_are_freed_at_once() {
    let world = World::new(4);
    let mut returning = Reclaim::new();
    world.enter(OWN);
    for number in 0..3 {
        world.store(OWN, page(number));
    }
    assert!(returning.give(pages(0, 2)));
    assert_eq!(returning.step(&world), Step::Done);
    assert_eq!(world.free.borrow().len(), 3);
    assert_eq!(returning.gone(), 2);
    // The next touch gives a page another frame, or the same one anew.
    world.enter(OWN);
    world.store(OWN, page(0));
    assert_eq!(world.table.borrow().len(), 2);
}

#[test]
fn frame_waits_for_each_caching_hart() {
    let world = World::new(4);
    let mut returning = Reclaim::new();
    for hart in 0..HARTS {
        world.enter(hart);
        world.store(hart, page(0));
    }
    assert!(returning.give(pages(0, 1)));
    assert_eq!(returning.step(&world), Step::Later);
    assert_eq!(*world.told.borrow(), BTreeSet::from([1, 2]));
    world.enter(1);
    assert_eq!(returning.step(&world), Step::Later);
    // It still stores by what it knows.
    world.store(2, page(0));
    assert_eq!(world.free.borrow().len(), 3);
    world.harts.borrow_mut()[2].declared = None;
    assert_eq!(returning.step(&world), Step::Done);
    assert_eq!(world.free.borrow().len(), 4);
}

#[test]
fn what_a_device_reaches_stays() {
    let world = World::new(8);
    let mut returning = Reclaim::new();
    let frames: Vec<u64> = (0..8)
        .map(|number| world.touch(page(number)).unwrap())
        .collect();
    // The last byte of one page, and the first of the next one but one.
    world
        .device
        .borrow_mut()
        .push((frames[2] + PAGE_SIZE - 1, 1));
    world.device.borrow_mut().push((frames[4], 2 * PAGE_SIZE));
    assert!(returning.give(pages(0, 8)));
    assert_eq!(returning.step(&world), Step::Done);
    world.work();
    let left: Vec<u64> = world.table.borrow().keys().copied().collect();
    assert_eq!(left, [page(2), page(4), page(5)]);
    assert_eq!(returning.gone(), 5);
}

#[test]
fn step_visits_a_bounded_page_count() {
    let world = World::new(2 * MAX_PAGES_A_STEP);
    let mut returning = Reclaim::new();
    for number in 0..2 * MAX_PAGES_A_STEP {
        world.touch(page(number));
    }
    assert!(returning.give(pages(0, u64::from(u32::MAX))));
    assert_eq!(returning.step(&world), Step::Later);
    assert_eq!(world.free.borrow().len() as u64, MAX_PAGES_A_STEP);
    assert!(!returning.give(pages(0, 1)), "the first is not done");
    assert_eq!(returning.step(&world), Step::Later);
    assert_eq!(world.free.borrow().len() as u64, 2 * MAX_PAGES_A_STEP);
}

/// A hart does nothing else meanwhile, and holds the locks of the VM's devices and of its reclaim.
#[test]
fn step_does_bounded_work() {
    const GIVEN: u64 = 40 * MAX_PAGES_A_STEP;
    let world = World::new(GIVEN);
    let mut returning = Reclaim::new();
    // A sibling keeps the pages for a while.
    for number in 0..GIVEN {
        world.touch(page(number));
    }
    world.enter(1);
    assert!(returning.give(pages(0, GIVEN)));
    let mut all = 0;
    for turn in 0.. {
        world.steps.set(0);
        let step = returning.step(&world);
        let steps = world.steps.get();
        // Those of the step before are forgotten and freed, then others are looked up, taken out, forgotten and freed.
        assert!(steps <= 6 * MAX_PAGES_A_STEP, "{steps} steps at once");
        all += steps;
        if step == Step::Done {
            break;
        }
        if turn % 3 == 0 {
            world.enter(1);
        }
    }
    assert_eq!(returning.gone(), GIVEN);
    assert_eq!(all, 4 * GIVEN);
}

#[test]
fn pages_that_are_not_there_change_nothing() {
    let world = World::new(1);
    let mut returning = Reclaim::new();
    assert!(returning.give(pages(0, 3)));
    assert_eq!(returning.step(&world), Step::Done);
    assert!(returning.give(pages(0, 0)));
    assert_eq!(returning.step(&world), Step::Done);
    assert_eq!(world.generation.get(), 1);
}

#[derive(Clone, Debug)]
enum Event {
    Store(usize, u64),
    Enter(usize),
    Leave(usize),
    Begin(u64, u64),
    End(usize),
    Give(u64, u64),
    Step,
    Neighbour,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..HARTS, 0..6u64).prop_map(|(hart, page)| Event::Store(hart, page)),
        3 => (0..HARTS).prop_map(Event::Enter),
        1 => (0..HARTS).prop_map(Event::Leave),
        2 => (0..6u64, 1..3 * PAGE_SIZE).prop_map(|(page, bytes)| Event::Begin(page, bytes)),
        2 => any::<usize>().prop_map(Event::End),
        2 => (0..6u64, 1..6u64).prop_map(|(first, count)| Event::Give(first, count)),
        4 => Just(Event::Step),
        1 => Just(Event::Neighbour),
    ]
}

proptest! {
    /// No hart and no device ever reaches a frame that is free, so that no VM reaches a frame that another VM has been given.
    #[test]
    fn nobody_reaches_a_free_frame(events in prop::collection::vec(event(), 0..200)) {
        let world = World::new(12);
        let mut returning = Reclaim::new();
        for event in events {
            match event {
                Event::Store(hart, number) => world.store(hart, page(number)),
                Event::Enter(hart) => world.enter(hart),
                Event::Leave(hart) => world.harts.borrow_mut()[hart].declared = None,
                Event::Begin(number, bytes) => {
                    // A buffer is translated page by page.
                    let mut left = bytes;
                    for number in number.. {
                        let Some(frame) = world.touch(page(number)) else { break };
                        world.device.borrow_mut().push((frame, left.min(PAGE_SIZE)));
                        left = left.saturating_sub(PAGE_SIZE);
                        if left == 0 {
                            break;
                        }
                    }
                }
                Event::End(which) => {
                    let mut device = world.device.borrow_mut();
                    if !device.is_empty() {
                        let which = which % device.len();
                        device.remove(which);
                    }
                }
                Event::Give(first, count) => {
                    // The hart that gives is in the hypervisor, and enters its guest anew behind it.
                    let _ = returning.give(pages(first, count));
                    let _ = returning.step(&world);
                    if world.harts.borrow()[OWN].declared.is_some() {
                        world.enter(OWN);
                    }
                }
                Event::Step => {
                    let _ = returning.step(&world);
                    if world.harts.borrow()[OWN].declared.is_some() {
                        world.enter(OWN);
                    }
                }
                // A neighbour takes a free frame for good.
                Event::Neighbour => {
                    let taken = world.free.borrow_mut().pop_last();
                    if let Some(taken) = taken {
                        prop_assert!(!world.table.borrow().values().any(|used| *used == taken));
                        world.free.borrow_mut().insert(taken);
                    }
                }
            }
            world.work();
            for hart in world.harts.borrow().iter().filter(|hart| hart.declared.is_some()) {
                for frame in hart.kept.values() {
                    prop_assert!(!world.free.borrow().contains(frame));
                }
            }
        }
    }
}
