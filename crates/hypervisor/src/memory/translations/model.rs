//! All that harts, vCPUs and tables can do with each other, explored to the end: no entry is used that a fence, a change of
//! the G-stage table or another vCPU has made stale.
//!
//! Each method of [`Translations`] by itself. Two harts; two vCPUs of one VM and one of another. An entry is what matters of a cached translation: who made it,
//! whether that vCPU has fenced since (its guest-virtual part is stale), and the generation of the G-stage table under which it
//! was made. A hart keeps every entry that nothing has dropped, and may use any at any time: the worst computer that
//! the architecture allows.
//!
//! A guest caches all that it can at every moment. That is no loss: an entry more never makes a use right that was wrong, and
//! nothing that software does depends on which entries there are.

use super::holders::Holders;
use super::remote::{Fenced, Operands};
use super::*;
use crate::memory::address::GuestPhysical;
use abi::system::Purging;
use std::collections::HashSet;

const HARTS: usize = 2;
const VCPUS: usize = 3;
/// The VM of each vCPU.
const VM: [usize; VCPUS] = [0, 0, 1];
/// The table of the first VM changes at most so often; the other one's does not.
const CHANGES: u64 = 1;

/// A bit of `OnHart::entries` for each vCPU, staleness and generation.
fn bit(vcpu: usize, stale: bool, generation: u64) -> u16 {
    1 << (vcpu * 4 + usize::from(stale) * 2 + (generation - 1) as usize)
}

/// All entries that `vcpu` made.
fn made_by(vcpu: usize) -> u16 {
    0xf << (vcpu * 4)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OnHart {
    entries: u16,
    holders: Holders,
    vcpu: Option<usize>,
    in_guest: bool,
    /// The generation under which the guest runs.
    declared: u64,
    /// What the hart remembers of fences and, where it tests that itself, purges by (docs/extensions.md): a bit for each hart.
    mask: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct OfVcpu {
    cached: Cached,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    harts: [OnHart; HARTS],
    vcpus: [OfVcpu; VCPUS],
    generations: [u64; 2],
}

/// A purge that is left out, to see that the model notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgotten {
    Nothing,
    Others,
    Stale,
    Older,
    Life,
    /// A fence that traps is not noted.
    Trapped,
    /// Fences do not trap where they should.
    Arming,
    /// What the hart remembers is not read.
    Remembered,
    /// The hart is not told to purge.
    Told,
    /// Nor is it noted that a hart that was told has not done it.
    Due,
}

/// What is explored.
#[derive(Clone, Copy, Debug)]
struct Case {
    method: Translations,
    vcpus: usize,
    tags: Tags,
    forgotten: Forgotten,
}

/// The fences of a model's hart.
struct Model<'a> {
    entries: &'a mut u16,
    tags: Tags,
    /// The tag in hgatp.
    tag: Tag,
    /// The generation that the table in hgatp has.
    generation: u64,
}

/// The one page that changes, at each change of the table.
struct Page {
    generation: u64,
}

impl Changed for Page {
    fn since(&self, generation: u64) -> Option<impl Iterator<Item = GuestPhysical>> {
        let page = (generation < self.generation).then_some(GuestPhysical::new(0));
        (generation != 0).then_some(page.into_iter())
    }
}

impl Model<'_> {
    fn marked(&self, tag: Tag) -> u16 {
        (0..VCPUS)
            .filter(|vcpu| self.tags.of(id(*vcpu)) == tag)
            .fold(0, |all, vcpu| all | made_by(vcpu))
    }
}

impl Fences for Model<'_> {
    fn guest_virtual(&mut self) {
        *self.entries &= !self.marked(self.tag);
    }

    fn guest_physical(&mut self, _tag: Tag) {
        // An entry of both stages may stay.
    }

    fn guest_page(&mut self, tag: Tag, _page: GuestPhysical) {
        // What leads elsewhere stays, as right as it would be under the table as it is.
        for vcpu in (0..VCPUS).filter(|vcpu| self.tags.of(id(*vcpu)) == tag) {
            for stale in [false, true] {
                for older in 1..self.generation {
                    let old = bit(vcpu, stale, older);
                    if *self.entries & old != 0 {
                        *self.entries &= !old;
                        *self.entries |= bit(vcpu, stale, self.generation);
                    }
                }
            }
        }
    }

    fn guest_virtual_of(&mut self, _operands: Operands) {
        unreachable!("no sibling asks");
    }

    fn guest_physical_all(&mut self) {
        unreachable!("nothing is renamed here");
    }

    fn use_tag(&mut self, _tag: Tag) {
        unreachable!("nothing is renamed here");
    }

    fn instructions(&mut self) {}
}

fn id(vcpu: usize) -> VcpuId {
    VcpuId::new(vcpu as u16).expect("a vCPU")
}

fn hart_id(hart: usize) -> HartId {
    HartId::new(hart as u16).expect("a hart")
}

impl World {
    fn new(tags: Tags) -> Self {
        let hart = OnHart {
            entries: 0,
            holders: Holders::new(Purging::Fence, tags),
            vcpu: None,
            in_guest: false,
            declared: 0,
            mask: 0,
        };
        Self {
            harts: [hart.clone(), hart],
            vcpus: Default::default(),
            generations: [1, 1],
        }
    }

    fn fences(&mut self, hart: usize, vcpu: usize, tags: Tags) -> Model<'_> {
        Model {
            generation: self.generations[VM[vcpu]],
            entries: &mut self.harts[hart].entries,
            tags,
            tag: tags.of(id(vcpu)),
        }
    }

    /// What `vcpu` cached so far is stale from now on, on every hart.
    fn grow_stale(&mut self, vcpu: usize) {
        for hart in &mut self.harts {
            let fresh = hart.entries & (0b11 << (vcpu * 4));
            hart.entries = hart.entries & !(0b11 << (vcpu * 4)) | fresh << 2;
        }
    }

    fn place_of(&self, vcpu: usize) -> Option<usize> {
        (0..HARTS).find(|hart| self.harts[*hart].vcpu == Some(vcpu))
    }

    /// Whether the guest on `hart` could use a stale entry.
    fn could_go_wrong(&self, hart: usize, tags: Tags) -> bool {
        let place = &self.harts[hart];
        let (Some(vcpu), true) = (place.vcpu, place.in_guest) else {
            return false;
        };
        let tag = tags.of(id(vcpu));
        (0..VCPUS)
            .filter(|other| tags.of(id(*other)) == tag)
            .flat_map(|other| [false, true].map(|stale| (other, stale)))
            .flat_map(|(other, stale)| [1, 2].map(|generation| (other, stale, generation)))
            .filter(|(other, stale, generation)| {
                place.entries & bit(*other, *stale, *generation) != 0
            })
            .any(|(other, stale, generation)| other != vcpu || stale || generation < place.declared)
    }

    /// The world in few bits, from which [`World::unpacked`] makes it again.
    fn packed(&self, tags: Tags) -> u128 {
        let mut packer = Packer::default();
        for hart in &self.harts {
            packer.put(hart.entries.into(), 12);
            packer.put(hart.vcpu.map_or(0, |vcpu| vcpu as u128 + 1), 2);
            packer.put(hart.in_guest.into(), 1);
            packer.put(hart.declared.into(), 2);
            packer.put(hart.mask.into(), 2);
            for vcpu in 0..VCPUS {
                let holder = hart.holders.last(tags.of(id(vcpu)));
                packer.put(holder.into(), 2);
            }
        }
        for vcpu in &self.vcpus {
            let last = vcpu.cached.last;
            packer.put(last.map_or(0, |last| u128::from(last.get()) + 1), 2);
            packer.put(vcpu.cached.good.bits().into(), 2);
            let watch = match vcpu.cached.watch {
                Watch::Nothing => 0,
                Watch::Mask => 1,
                Watch::Trap => 2,
            };
            packer.put(watch, 2);
            packer.put(vcpu.cached.changes_left.into(), 2);
            for hart in 0..HARTS {
                packer.put(vcpu.cached.on[hart].seen.into(), 2);
            }
        }
        packer.put(self.generations[0].into(), 2);
        packer.bits
    }

    /// `first` is where all began.
    fn unpacked(bits: u128, tags: Tags, first: &Self) -> Self {
        let mut world = first.clone();
        let mut packer = Packer { bits, at: 0 };
        for hart in &mut world.harts {
            hart.entries = packer.take(12) as u16;
            hart.vcpu = (packer.take(2) as usize).checked_sub(1);
            hart.in_guest = packer.take(1) != 0;
            hart.declared = packer.take(2);
            hart.mask = packer.take(2) as u8;
            for vcpu in 0..VCPUS {
                let tag = tags.of(id(vcpu));
                hart.holders.set_last(tag, packer.take(2) as u16);
            }
        }
        for vcpu in &mut world.vcpus {
            vcpu.cached.last = (packer.take(2) as usize).checked_sub(1).map(hart_id);
            vcpu.cached.good = HartSet::from_bits(packer.take(2));
            vcpu.cached.watch = match packer.take(2) {
                0 => Watch::Nothing,
                1 => Watch::Mask,
                _ => Watch::Trap,
            };
            vcpu.cached.changes_left = packer.take(2) as u8;
            for hart in 0..HARTS {
                vcpu.cached.on[hart].seen = packer.take(2);
            }
        }
        world.generations[0] = packer.take(2);
        world
    }

    /// Lets the guests cache all that they can.
    fn cache(&mut self) {
        for hart in &mut self.harts {
            if let (Some(vcpu), true) = (hart.vcpu, hart.in_guest) {
                hart.entries |= bit(vcpu, false, self.generations[VM[vcpu]]);
            }
        }
    }

    /// All worlds that one step of a vCPU, of a hart or of a table leads to.
    fn next(&self, case: Case) -> Vec<Self> {
        let mut next = Vec::new();
        for hart in 0..HARTS {
            match (self.harts[hart].vcpu, self.harts[hart].in_guest) {
                (None, _) => {
                    let idle = (0..case.vcpus).filter(|vcpu| self.place_of(*vcpu).is_none());
                    for vcpu in idle {
                        next.push(self.dispatched(hart, vcpu, case));
                        next.extend(self.dispatched_again(hart, vcpu, case));
                        // Where trapping fences does not pay, a visit is as under the conventional method. Tags that are too
                        // few make worlds too many, and say nothing about it.
                        if case.method == Translations::OneShot && case.tags.are_enough_for(VCPUS) {
                            let method = Translations::LastHost;
                            let visit = Case { method, ..case };
                            next.push(self.dispatched(hart, vcpu, visit));
                        }
                    }
                }
                (Some(vcpu), false) => {
                    next.push(self.entered(hart, vcpu, case));
                    next.push(self.left(hart, vcpu, case));
                }
                (Some(vcpu), true) => next.extend(self.guest_steps(hart, vcpu, case)),
            }
        }
        if self.generations[0] <= CHANGES {
            let mut changed = self.clone();
            changed.generations[0] += 1;
            next.push(changed);
        }
        for vcpu in (0..case.vcpus).filter(|vcpu| self.place_of(*vcpu).is_none()) {
            let mut anew = self.clone();
            anew.grow_stale(vcpu);
            if case.forgotten != Forgotten::Life {
                anew.vcpus[vcpu].cached = Cached::default();
            }
            next.push(anew);
        }
        next
    }

    fn dispatched(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let Case {
            method,
            tags,
            forgotten,
            ..
        } = case;
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        let tag = tags.of(id(vcpu));
        let holders = &mut world.harts[hart].holders;
        let cached = &mut world.vcpus[vcpu].cached;
        let mut purge = cached.arrive(method, id(vcpu), hart_id(hart), holders, (generation, 0));
        purge.others &= forgotten != Forgotten::Others;
        purge.stale &= forgotten != Forgotten::Stale;
        purge.older = purge.older.filter(|_| forgotten != Forgotten::Older);
        world.harts[hart].mask = 0;
        if method == Translations::PurgeCheck {
            let told = core::mem::take(&mut purge.stale) && forgotten != Forgotten::Told;
            world.harts[hart].mask = u8::from(told) << hart;
        }
        purge.carry_out(
            tag,
            (&Page { generation }, &Fenced::<1>::default()),
            &mut world.fences(hart, vcpu, tags),
        );
        world.harts[hart].vcpu = Some(vcpu);
        world
    }

    /// The vCPU comes back to the hart as it left it: nothing is done.
    fn dispatched_again(&self, hart: usize, vcpu: usize, case: Case) -> Option<Self> {
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        let (holders, cached) = (&world.harts[hart].holders, &world.vcpus[vcpu].cached);
        let method = || case.method;
        if !cached.comes_back(id(vcpu), hart_id(hart), holders, generation, method) {
            return None;
        }
        if case.forgotten == Forgotten::Nothing {
            // The usual way would have led to the same.
            let (mut holders, mut as_usual) = (holders.clone(), cached.clone());
            let tables = (generation, 0);
            let purge = as_usual.arrive(case.method, id(vcpu), hart_id(hart), &mut holders, tables);
            assert!(purge == Purge::default() && as_usual == *cached);
        }
        world.harts[hart].vcpu = Some(vcpu);
        Some(world)
    }

    /// As the run loop does it: declare the generation, renew, enter. What siblings ask for is in `remote_model`.
    fn entered(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let Case {
            tags, forgotten, ..
        } = case;
        let mut world = self.clone();
        let generation = world.generations[VM[vcpu]];
        world.harts[hart].declared = generation;
        let mut purge = world.vcpus[vcpu].cached.renew(hart_id(hart), generation);
        purge.older = purge.older.filter(|_| forgotten != Forgotten::Older);
        purge.carry_out(
            tags.of(id(vcpu)),
            (&Page { generation }, &Fenced::<1>::default()),
            &mut world.fences(hart, vcpu, tags),
        );
        if case.method == Translations::PurgeCheck && world.harts[hart].mask >> hart & 1 != 0 {
            world.harts[hart].mask &= !(1 << hart);
            world.fences(hart, vcpu, tags).guest_virtual();
        }
        world.harts[hart].in_guest = true;
        world
    }

    fn left(&self, hart: usize, vcpu: usize, case: Case) -> Self {
        let mut world = self.clone();
        let mask = world.harts[hart].mask;
        let remembered = Remembered {
            fenced: mask & !(1 << hart) != 0 && case.forgotten != Forgotten::Remembered,
            due: mask >> hart & 1 != 0 && case.forgotten != Forgotten::Due,
        };
        world.vcpus[vcpu].cached.leave(hart_id(hart), remembered);
        world.harts[hart].vcpu = None;
        world
    }

    fn guest_steps(&self, hart: usize, vcpu: usize, case: Case) -> Vec<Self> {
        let mut leaves = self.clone();
        leaves.harts[hart].in_guest = false;
        if case.method == Translations::Clear {
            leaves.fences(hart, vcpu, case.tags).guest_virtual();
        }
        let mut next = vec![leaves.clone()];
        let traps = self.vcpus[vcpu].cached.watch == Watch::Trap;
        if traps && case.forgotten != Forgotten::Arming {
            // The fence, or the change of the address space, comes to the hypervisor; it is made again afterwards.
            let mut changes = leaves.clone();
            let cached = &mut changes.vcpus[vcpu].cached;
            let _ = cached.changes_address_space(hart_id(hart));
            next.push(changes);
            if case.forgotten == Forgotten::Trapped {
                leaves.vcpus[vcpu].cached.watch = Watch::Nothing;
            } else {
                leaves.vcpus[vcpu].cached.fenced(hart_id(hart));
            }
            next.push(leaves);
            return next;
        }
        let mut fences = self.clone();
        // The guest's own fence reaches its tag on this hart.
        fences.fences(hart, vcpu, case.tags).guest_virtual();
        fences.grow_stale(vcpu);
        fences.harts[hart].mask = 0b11 & !(1 << hart);
        next.push(fences);
        next
    }
}

/// Small numbers in a large one.
#[derive(Default)]
struct Packer {
    bits: u128,
    at: u32,
}

impl Packer {
    fn put(&mut self, value: u128, bits: u32) {
        assert!(value < 1 << bits && self.at + bits <= u128::BITS);
        self.bits |= value << self.at;
        self.at += bits;
    }

    fn take(&mut self, bits: u32) -> u64 {
        let value = self.bits >> self.at & ((1 << bits) - 1);
        self.at += bits;
        value as u64
    }
}

/// How many worlds there are, or nothing where a stale entry could be used in one.
fn explore(case: Case) -> Option<usize> {
    let first = World::new(case.tags);
    let mut known = HashSet::from([first.packed(case.tags)]);
    let mut open = vec![first.packed(case.tags)];
    while let Some(packed) = open.pop() {
        let world = World::unpacked(packed, case.tags, &first);
        if (0..HARTS).any(|hart| world.could_go_wrong(hart, case.tags)) {
            return None;
        }
        for mut next in world.next(case) {
            next.cache();
            let packed = next.packed(case.tags);
            if known.insert(packed) {
                open.push(packed);
            }
        }
    }
    Some(known.len())
}

/// The vCPUs of the first VM, and all.
const SIBLINGS: usize = 2;

/// All methods but [`Translations::Keep`], which in a world where vCPUs move is [`Translations::LastHost`].
const METHODS: [Translations; 5] = [
    Translations::Clear,
    Translations::LastHost,
    Translations::PurgeMask,
    Translations::PurgeCheck,
    Translations::OneShot,
];

fn case(method: Translations, forgotten: Forgotten) -> Case {
    Case {
        method,
        // A vCPU that has a tag of its own meets none of another VM.
        vcpus: SIBLINGS,
        tags: Tags::with_bits(14),
        forgotten,
    }
}

#[test]
fn no_stale_translation_is_used_with_a_tag_for_each_vcpu() {
    for method in METHODS {
        let worlds = explore(case(method, Forgotten::Nothing));
        assert!(
            worlds.is_some_and(|worlds| worlds > 1000),
            "{method}: {worlds:?}"
        );
    }
}

#[test]
fn no_stale_translation_is_used_with_one_tag_for_all() {
    for method in METHODS {
        // Three vCPUs have too many worlds where the methods keep more of each.
        for vcpus in match method {
            Translations::LastHost => [SIBLINGS, VCPUS],
            _ => [SIBLINGS, SIBLINGS],
        } {
            let worlds = explore(Case {
                vcpus,
                tags: Tags::with_bits(0),
                ..case(method, Forgotten::Nothing)
            });
            assert!(
                worlds.is_some_and(|worlds| worlds > 1000),
                "{method}: {worlds:?}"
            );
        }
    }
}

#[test]
fn each_purge_that_is_left_out_is_noticed() {
    for method in METHODS {
        let checked = method == Translations::PurgeCheck;
        for forgotten in [Forgotten::Older, Forgotten::Life] {
            let found = explore(case(method, forgotten));
            // The clearing method has purged all that could be stale when the guest was left.
            let cleared = method == Translations::Clear;
            assert_eq!(found.is_some(), cleared, "{method}, {forgotten:?}");
        }
        if method != Translations::Clear {
            let stale = if checked {
                Forgotten::Told
            } else {
                Forgotten::Stale
            };
            assert_eq!(explore(case(method, stale)), None, "{method}");
        }
        let found = explore(Case {
            tags: Tags::with_bits(0),
            ..case(method, Forgotten::Others)
        });
        assert_eq!(
            found.is_some(),
            method == Translations::Clear,
            "{method}, others"
        );
    }
}

#[test]
fn each_fence_that_is_not_noted_is_noticed() {
    for (method, forgotten) in [
        (Translations::OneShot, Forgotten::Trapped),
        (Translations::OneShot, Forgotten::Arming),
        (Translations::PurgeMask, Forgotten::Remembered),
        (Translations::PurgeCheck, Forgotten::Remembered),
        (Translations::PurgeCheck, Forgotten::Due),
    ] {
        assert_eq!(
            explore(case(method, forgotten)),
            None,
            "{method}, {forgotten:?}"
        );
    }
}
