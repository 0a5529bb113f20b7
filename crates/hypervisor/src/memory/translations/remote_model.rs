//! All that fences of siblings can do to a vCPU that moves, explored to the end: it uses no entry that one was for.
//!
//! One vCPU, two harts, two pages, and a queue that keeps two fences. A hart keeps every entry that nothing has dropped. What `model`
//! knows of local fences is here too, because a fence of a sibling must leave it alone.

use super::changes::Changes;
use super::remote::{Fenced, Operands, Outstanding};
use super::vmid_table::VmidTable;
use super::*;
use crate::memory::address::GuestPhysical;
use abi::system::Purging;
use std::collections::HashSet;

const PAGES: usize = 2;
const HARTS: usize = 2;

/// Step that is left out, to see that the model notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgotten {
    Nothing,
    /// A hart that the vCPU comes to carries nothing out.
    Arrival,
    /// The bit of a request is not set.
    Request,
    /// Operands that are kept no longer are taken for nothing.
    Overflow,
    /// A fence for one page does nothing.
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    None,
    Right,
    Stale,
}

#[derive(Debug)]
struct World {
    entries: [[Entry; PAGES]; HARTS],
    cached: Cached,
    fenced: Fenced<2>,
    requested: bool,
    place: Option<(usize, bool)>,
    /// State that a hart with a purge mask keeps.
    remembered: bool,
}

struct Model<'a>(&'a mut [Entry; PAGES], Forgotten);

impl Fences for Model<'_> {
    fn guest_virtual(&mut self) {
        *self.0 = [Entry::None; PAGES];
    }

    fn guest_virtual_of(&mut self, operands: Operands) {
        if self.1 == Forgotten::Page {
            return;
        }
        let (first, count) = operands.pages.expect("pages");
        for page in first / 4096..first / 4096 + count {
            self.0[page as usize] = Entry::None;
        }
    }

    fn guest_physical_all(&mut self) {}

    fn guest_physical(&mut self, _tag: Tag) {}

    fn guest_page(&mut self, _tag: Tag, _page: GuestPhysical) {}

    fn use_tag(&mut self, _tag: Tag) {}

    fn instructions(&mut self) {}
}

/// The queue, which may say that there is nothing where it has forgotten what there was.
struct Told<'a>(&'a Fenced<2>, Forgotten);

impl Outstanding for Told<'_> {
    fn since(&self, since: u64) -> Option<impl Iterator<Item = Operands>> {
        let all: Option<Vec<Operands>> = self.0.since(since).map(Iterator::collect);
        let all = match self.1 {
            Forgotten::Overflow => Some(all.unwrap_or_default()),
            _ => all,
        };
        all.map(Vec::into_iter)
    }
}

fn hart(index: usize) -> HartId {
    HartId::new(index as u16).expect("a hart")
}

fn vcpu() -> VcpuNumber {
    VcpuNumber::new(0).expect("a vCPU")
}

impl World {
    fn copied(&self) -> Self {
        let mut cached = self.cached.clone();
        let mut seen = [0, 1].map(|index| cached.fenced_to(hart(index)));
        let fenced = self.fenced.renumbered(&mut seen);
        for (index, seen) in seen.into_iter().enumerate() {
            cached.set_fenced_to(hart(index), seen);
        }
        Self {
            entries: self.entries,
            cached,
            fenced,
            requested: self.requested,
            place: self.place,
            remembered: self.remembered,
        }
    }

    fn key(&self) -> impl Eq + std::hash::Hash + use<> {
        (
            self.entries,
            self.cached.clone(),
            self.fenced.key(),
            self.requested,
            self.place,
            self.remembered,
        )
    }

    fn grow_stale(&mut self, page: usize) {
        for entries in &mut self.entries {
            if entries[page] == Entry::Right {
                entries[page] = Entry::Stale;
            }
        }
    }

    fn carry_out(&mut self, place: usize, purge: Purge, forgotten: Forgotten) {
        let mut vmids = VmidTable::new(Purging::Fence, Tags::with_bits(14));
        let _ = vmids.take(vcpu());
        let changes = Changes::<1>::new(|_| GuestPhysical::new(0));
        let told = Told(&self.fenced, forgotten);
        let mut fences = Model(&mut self.entries[place], forgotten);
        purge.carry_out_at_arrival(vcpu(), &mut vmids, (&changes, &told), &mut fences);
    }

    fn next(&self, method: TlbPurge, forgotten: Forgotten) -> Vec<Self> {
        let mut next = Vec::new();
        let Some((place, in_guest)) = self.place else {
            for place in 0..HARTS {
                next.push(self.arrived(place, method, forgotten));
            }
            next.extend(self.asked());
            return next;
        };
        if in_guest {
            let mut leaves = self.copied();
            leaves.place = Some((place, false));
            next.push(leaves);
            next.push(self.fences_itself(place));
        } else {
            next.push(self.entered(place, forgotten));
            let mut left = self.copied();
            let remembered = Remembered {
                fenced: core::mem::take(&mut left.remembered),
                due: false,
            };
            left.cached.leave(hart(place), remembered);
            left.place = None;
            next.push(left);
        }
        next.extend(self.asked());
        next
    }

    fn arrived(&self, place: usize, method: TlbPurge, forgotten: Forgotten) -> Self {
        let mut world = self.copied();
        let mut vmids = VmidTable::new(Purging::Fence, Tags::with_bits(14));
        let _ = vmids.take(vcpu());
        let tables = (1, world.fenced.count());
        world.place = Some((place, false));
        // As the run loop does it; what siblings have asked for is a request.
        if (world.cached).comes_back(vcpu(), hart(place), &vmids, 1, || method) {
            return world;
        }
        world.remembered = false;
        let mut purge = (world.cached).arrive(method, vcpu(), hart(place), &mut vmids, tables);
        if forgotten == Forgotten::Arrival {
            purge.fences = None;
        }
        world.carry_out(place, purge, forgotten);
        world
    }

    /// Enters as the run loop does.
    fn entered(&self, place: usize, forgotten: Forgotten) -> Self {
        let mut world = self.copied();
        if core::mem::take(&mut world.requested) {
            let purge = world.cached.asked(hart(place), world.fenced.count());
            if forgotten != Forgotten::Request {
                world.carry_out(place, purge, forgotten);
            }
        }
        world.place = Some((place, true));
        world
    }

    fn fences_itself(&self, place: usize) -> Self {
        let mut world = self.copied();
        if world.cached.watch() == Watch::Trap {
            // It traps, and is made again.
            world.cached.fenced(hart(place));
            world.place = Some((place, false));
            return world;
        }
        world.remembered = true;
        world.entries[place] = [Entry::None; PAGES];
        for page in 0..PAGES {
            world.grow_stale(page);
        }
        world
    }

    /// A sibling changes a page, or all, and asks for the fence, which ends a stay in the guest.
    fn asked(&self) -> Vec<Self> {
        let one = |page: usize| Operands::of_range(page as u64 * 4096, 4096, None);
        let all = (0..PAGES).map(|page| (page..page + 1, one(page)));
        all.chain([(0..PAGES, Operands::default())])
            .map(|(pages, operands)| {
                let mut world = self.copied();
                world.fenced.push(operands);
                world.requested = true;
                world.place = world.place.map(|(place, _)| (place, false));
                pages.for_each(|page| world.grow_stale(page));
                world
            })
            .collect()
    }
}

fn explore(method: TlbPurge, forgotten: Forgotten) -> Option<usize> {
    let first = World {
        entries: [[Entry::None; PAGES]; HARTS],
        cached: Cached::default(),
        fenced: Fenced::default(),
        requested: false,
        place: None,
        remembered: false,
    }
    .copied();
    let mut known = HashSet::from([first.key()]);
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        for next in world.next(method, forgotten) {
            let mut next = next.copied();
            if let Some((place, true)) = next.place {
                for entry in &mut next.entries[place] {
                    match entry {
                        Entry::None => *entry = Entry::Right,
                        Entry::Right => {}
                        Entry::Stale => return None,
                    }
                }
            }
            if known.insert(next.key()) {
                open.push(next);
            }
        }
    }
    Some(known.len())
}

const METHODS: [TlbPurge; 3] = [TlbPurge::LastHost, TlbPurge::PurgeMask, TlbPurge::OneShot];

#[test]
fn entry_fenced_by_sibling_is_unused() {
    for method in METHODS {
        let worlds = explore(method, Forgotten::Nothing);
        assert!(worlds.is_some_and(|worlds| worlds > 100), "{worlds:?}");
    }
}

#[test]
fn each_omitted_remote_fence_is_noticed() {
    for forgotten in [Forgotten::Request, Forgotten::Overflow, Forgotten::Page] {
        for method in METHODS {
            assert_eq!(explore(method, forgotten), None, "{method}, {forgotten:?}");
        }
    }
    // The conventional method has dropped everything where the vCPU comes from another hart.
    for method in [TlbPurge::PurgeMask, TlbPurge::OneShot] {
        assert_eq!(explore(method, Forgotten::Arrival), None, "{method}");
    }
}

/// A sibling's fence for one page takes away that page, on the hart that is asked and on the one that the vCPU comes back to.
#[test]
fn other_pages_stay_on_every_hart() {
    let mut world = World {
        entries: [[Entry::None; PAGES]; HARTS],
        cached: Cached::default(),
        fenced: Fenced::default(),
        requested: false,
        place: None,
        remembered: false,
    };
    let (method, nothing) = (TlbPurge::OneShot, Forgotten::Nothing);
    for place in 0..HARTS {
        world = world
            .arrived(place, method, nothing)
            .entered(place, nothing);
        world.entries[place] = [Entry::Right; PAGES];
        world.cached.leave(hart(place), Remembered::default());
        world.place = None;
    }
    world = world.asked().remove(0);
    for place in [1, 0] {
        world = world
            .arrived(place, method, nothing)
            .entered(place, nothing);
        assert_eq!(world.entries[place], [Entry::None, Entry::Right]);
        world.cached.leave(hart(place), Remembered::default());
        world.place = None;
    }
}
