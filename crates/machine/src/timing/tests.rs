//! The models together.

mod cache_blocks;
mod others;

use super::*;
use crate::base::Reference;
use crate::base::{Access, VirtualFence};

const HOST: Space = Space {
    virtualized: false,
    paged: true,
    asid: 1,
    vmid: 0,
};

const fn guest(vmid: u16) -> Space {
    Space {
        virtualized: true,
        paged: true,
        asid: 1,
        vmid,
    }
}

/// How filters are to know a page: each space that tests use has another number.
pub(super) fn name(address: u64, space: Space) -> PageName {
    let number = u64::from(space.virtualized)
        | u64::from(space.paged) << 1
        | u64::from(space.asid) << 2
        | u64::from(space.vmid) << 5;
    PageName {
        tag: address & !0xfff | number << 3,
        epoch: 0,
    }
}

impl From<Access> for LineAccess {
    fn from(access: Access) -> Self {
        match access {
            Access::Fetch => Self::Fetch,
            Access::Load => Self::Load,
            Access::Store => Self::Store,
        }
    }
}

/// Models and what was counted with them.
struct Bench {
    timing: Timing,
    counts: EventCounts,
}

impl Bench {
    fn new(profile: &Profile, harts: usize) -> Self {
        Self {
            timing: Timing::new(profile, harts),
            counts: EventCounts::default(),
        }
    }

    /// An access by a hart; a walk finds a page of 2^`shift` bytes by `references`.
    fn access(
        &mut self,
        hart: u32,
        access: impl Into<LineAccess>,
        (address, space): (u64, Space),
        (shift, references): (u32, &[Reference]),
    ) -> u64 {
        let charge = Charge {
            access: access.into(),
            address,
            physical: 0x8000_0000 + address,
            space,
            translated: space.paged || space.virtualized,
            name: Some(name(address, space)),
            shared: false,
        };
        let walk = || Walked {
            shift,
            global: false,
            guest_physical: address,
            references,
        };
        self.timing
            .access((HartId(hart), 0), charge, &mut self.counts, walk)
    }

    fn load(&mut self, hart: u32, address: u64) -> u64 {
        self.access(hart, Access::Load, (address, HOST), (12, &[]))
    }

    fn store(&mut self, hart: u32, address: u64) -> u64 {
        self.access(hart, Access::Store, (address, HOST), (12, &[]))
    }

    fn count(&self, event: Event) -> u64 {
        self.counts.get(event)
    }

    fn load_is_free(&self, hart: u32, address: u64, space: Space) -> bool {
        let physical = (0x8000_0000 + address) >> LINE_SHIFT;
        self.timing
            .load_is_free(HartId(hart), name(address, space), physical)
    }
}

#[test]
fn shared_names_vouch_for_global_entries_alone() {
    for global in [false, true] {
        let mut bench = Bench::new(&Profile::default(), 1);
        let charge = Charge {
            access: LineAccess::Load,
            address: 0,
            physical: 0x8000_0000,
            space: HOST,
            translated: true,
            name: Some(name(0, HOST)),
            shared: true,
        };
        let walk = || Walked {
            shift: 12,
            global,
            guest_physical: 0,
            references: &[],
        };
        let at = (HartId(0), 0);
        bench.timing.access(at, charge, &mut bench.counts, walk);
        assert_eq!(bench.load_is_free(0, 0, HOST), global);
    }
}

#[test]
fn lines_are_free_until_another_hart_stores() {
    let mut bench = Bench::new(&Profile::default(), 2);
    let costs = bench.timing.costs;
    // A hart's first access to the page begins a walk, after a look-up in the second-level TLB.
    let look_up = costs.l2_tlb_hit;
    assert_eq!(bench.load(0, 0x1000), look_up + costs.memory);
    assert!(bench.load_is_free(0, 0x1000, HOST));
    assert_eq!(bench.load(0, 0x1008), 0);
    // The first hart's copy was its own: the second has to ask for it.
    let asked = costs.l2_hit + costs.transfer;
    assert_eq!(bench.store(1, 0x1000), look_up + asked);
    assert!(!bench.load_is_free(0, 0x1000, HOST));
    assert_eq!(bench.load(0, 0x1000), asked);
    // Now both have it: a store wants the right to store back.
    assert_eq!(bench.store(1, 0x1000), costs.transfer);
    assert_eq!(bench.store(1, 0x1000), 0);
    let counted = [Event::Transfers, Event::Upgrades, Event::SharedMisses];
    assert_eq!(counted.map(|event| bench.count(event)), [2, 1, 1]);
}

#[test]
fn without_a_second_level_memory_answers() {
    let profile = Profile {
        l2: None,
        ..Profile::default()
    };
    let mut bench = Bench::new(&profile, 2);
    // Each hart's walk begins after a look-up in the second-level TLB.
    let memory = profile.costs.l2_tlb_hit + profile.costs.memory;
    assert_eq!(bench.load(0, 0x1000), memory);
    assert_eq!(bench.load(1, 0x1000), memory + profile.costs.transfer);
    assert_eq!(bench.count(Event::SharedMisses), 2);
}

#[test]
fn a_filter_forgets_what_the_cache_evicts() {
    let mut bench = Bench::new(&Profile::default(), 1);
    let geometry = Profile::default().l1d.geometry();
    let way = (geometry.sets as u64) << LINE_SHIFT;
    for n in 0..=geometry.ways as u64 {
        bench.load(0, n * way);
    }
    assert!(!bench.load_is_free(0, 0, HOST));
    assert!(bench.load_is_free(0, geometry.ways as u64 * way, HOST));
}

#[test]
fn a_filter_forgets_what_the_tlb_evicts() {
    let profile = Profile {
        l2tlb: None,
        ..Profile::default()
    };
    let mut bench = Bench::new(&profile, 1);
    for page in 0..=32 {
        bench.load(0, page * 4096 + page * 64);
    }
    assert!(!bench.load_is_free(0, 0, HOST));
    assert!(bench.load_is_free(0, 4096 + 64, HOST));
    assert_eq!(bench.count(Event::Walks), 33);
    bench.load(0, 0);
    assert_eq!(bench.count(Event::Walks), 34);
    assert_eq!(bench.count(Event::LoadTlbMisses), 34);
}

#[test]
fn a_large_page_needs_one_walk() {
    let mut bench = Bench::new(&Profile::default(), 1);
    for page in 0..512 {
        let place = (page * 4096, HOST);
        bench.access(0, Access::Load, place, (21, &[]));
    }
    assert_eq!(bench.count(Event::Walks), 1);
    bench.access(0, Access::Load, (512 * 4096, HOST), (21, &[]));
    assert_eq!(bench.count(Event::Walks), 2);
}

/// The references of a walk of three levels, each under a G-stage walk of three levels, and of the
/// G-stage walk of the page itself: 15.
fn two_dimensions() -> Vec<Reference> {
    let mut references = Vec::new();
    for table in 0..4_u64 {
        for level in [2, 1, 0] {
            references.push(Reference {
                physical: 0x9000_0000 + (u64::from(level) << 16) + (table << 8),
                guest_stage: true,
                level,
                leaf: level == 0,
                address: table << 12,
            });
        }
        if table < 3 {
            references.push(Reference {
                physical: 0xa000_0000 + (table << 12),
                guest_stage: false,
                level: 2 - table as u8,
                leaf: table == 2,
                address: 0x5000,
            });
        }
    }
    references
}

#[test]
fn nested_walks_are_charged_by_reference() {
    let mut profile = Profile::default();
    (
        profile.guest_tlb,
        profile.walk_cache,
        profile.guest_walk_cache,
    ) = (None, None, None);
    let mut bench = Bench::new(&profile, 1);
    let references = two_dimensions();
    assert_eq!(references.len(), 15);
    let walk = (12, references.as_slice());
    let cycles = bench.access(0, Access::Load, (0x5000, guest(1)), walk);
    let each = profile.costs.memory + profile.costs.walk_step;
    // Every reference is to a line of its own. Before them is the look-up in the second-level TLB, and behind them the page
    // itself is read.
    let around = profile.costs.l2_tlb_hit + profile.costs.memory;
    assert_eq!(cycles, around + 15 * each);
    // The walk's own part, without the look-up and the page.
    assert_eq!(bench.count(Event::WalkCycles), 15 * each);
    assert_eq!(bench.count(Event::WalkReferences), 3);
    assert_eq!(bench.count(Event::GuestWalkReferences), 12);
    assert_eq!(bench.count(Event::LoadMisses), 16);
}

#[test]
fn walk_caches_save_tables_and_guest_pages() {
    let references = two_dimensions();
    let fence = Fence::Virtual {
        by: VirtualFence::Sfence,
        address: None,
        asid: None,
        vmid: 1,
    };
    // (guest pages, first stage, G-stage): how many references a second walk then makes of each.
    for (kept, expected) in [
        ((true, false, false), (3, 0)),
        ((false, false, true), (3, 4)),
        ((true, false, true), (3, 0)),
        ((false, false, false), (3, 12)),
    ] {
        let mut profile = Profile::default();
        profile.guest_tlb = profile.guest_tlb.filter(|_| kept.0);
        profile.walk_cache = profile.walk_cache.filter(|_| kept.1);
        profile.guest_walk_cache = profile.guest_walk_cache.filter(|_| kept.2);
        let mut bench = Bench::new(&profile, 1);
        let walk = (12, references.as_slice());
        bench.access(0, Access::Load, (0x5000, guest(1)), walk);
        // A fence of the first stage leaves what belongs to the G-stage.
        bench.timing.fence(HartId(0), fence);
        let before = bench.counts;
        bench.access(0, Access::Load, (0x5000, guest(1)), walk);
        let counted = bench.counts.since(&before);
        let found = (
            counted.get(Event::WalkReferences),
            counted.get(Event::GuestWalkReferences),
        );
        assert_eq!(found, expected, "{kept:?}");
    }
    let mut profile = Profile::default();
    (profile.guest_tlb, profile.guest_walk_cache) = (None, None);
    let mut bench = Bench::new(&profile, 1);
    bench.access(0, Access::Load, (0x5000, guest(1)), (12, &references));
    let before = bench.counts;
    // Another page by the same tables: only the leaf has to be read again.
    bench.access(0, Access::Load, (0x6000, guest(1)), (12, &references));
    let counted = bench.counts.since(&before);
    assert_eq!(counted.get(Event::WalkReferences), 1);
}

/// Which of the host's and two guests' entries for two pages are left after a fence.
fn left(rules: FenceRules, fence: Fence) -> [bool; 6] {
    let profile = Profile {
        fences: rules,
        ..Profile::default()
    };
    let mut bench = Bench::new(&profile, 1);
    let places = [HOST, guest(1), guest(2)].map(|space| [(0x1000, space), (0x2000, space)]);
    let places = places.as_flattened();
    for &place in places {
        bench.access(0, Access::Load, place, (12, &[]));
    }
    bench.timing.fence(HartId(0), fence);
    std::array::from_fn(|index| {
        let walks = bench.count(Event::Walks);
        let vouched = bench.load_is_free(0, places[index].0, places[index].1);
        bench.access(0, Access::Load, places[index], (12, &[]));
        let there = bench.count(Event::Walks) == walks;
        assert!(there || !vouched, "the filter knows what the TLB does not");
        there
    })
}

#[test]
fn fences_remove_what_their_operands_say() {
    let exact = FenceRules::default();
    let (address, asid) = (Some(0x1000), Some(1));
    for (fence, expected) in [
        (
            Fence::Supervisor {
                address: None,
                asid: None,
            },
            "--++++",
        ),
        (Fence::Supervisor { address, asid }, "-+++++"),
        (
            Fence::Supervisor {
                address,
                asid: Some(2),
            },
            "++++++",
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Sfence,
                address: None,
                asid: None,
                vmid: 1,
            },
            "++--++",
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Sfence,
                address,
                asid,
                vmid: 1,
            },
            "++-+++",
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Hfence,
                address,
                asid: None,
                vmid: 2,
            },
            "++++-+",
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Hfence,
                address: None,
                asid: Some(3),
                vmid: 2,
            },
            "++++++",
        ),
        (
            Fence::Guest {
                address,
                vmid: Some(1),
            },
            "++-+++",
        ),
        (
            Fence::Guest {
                address,
                vmid: None,
            },
            "++-+-+",
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Broadcast,
                address,
                asid,
                vmid: 1,
            },
            "++-+++",
        ),
        (
            Fence::Guest {
                address: None,
                vmid: None,
            },
            "++----",
        ),
    ] {
        assert_eq!(shown(left(exact, fence)), expected, "{fence:?}");
    }
}

fn shown(left: [bool; 6]) -> String {
    left.map(|left| if left { '+' } else { '-' })
        .iter()
        .collect()
}

#[test]
fn coarse_fences_remove_more() {
    let address = Some(0x1000);
    let sfence = |change: fn(&mut Honours)| {
        let mut rules = FenceRules::default();
        change(&mut rules.sfence);
        change(&mut rules.hfence_vvma);
        change(&mut rules.hfence_gvma);
        rules
    };
    let guest = Fence::Virtual {
        by: VirtualFence::Sfence,
        address,
        asid: Some(1),
        vmid: 1,
    };
    let other_asid = Fence::Virtual {
        by: VirtualFence::Hfence,
        address,
        asid: Some(3),
        vmid: 1,
    };
    let stage = Fence::Guest {
        address: None,
        vmid: Some(1),
    };
    for (rules, fence, expected) in [
        (sfence(|h| h.address = false), guest, "++--++"),
        (sfence(|h| h.vmid = false), guest, "++-+-+"),
        (sfence(|h| h.host = false), guest, "------"),
        (sfence(|h| h.asid = false), other_asid, "++-+++"),
        (sfence(|h| h.vmid = false), stage, "++----"),
        (sfence(|h| h.host = false), stage, "------"),
        (
            sfence(|h| h.address = false),
            Fence::Supervisor {
                address,
                asid: None,
            },
            "--++++",
        ),
    ] {
        assert_eq!(shown(left(rules, fence)), expected, "{fence:?}");
    }
}

#[test]
fn fence_i_empties_the_cache_by_profile() {
    for clears in [true, false] {
        let profile = Profile {
            fence_i_clears: clears,
            ..Profile::default()
        };
        let mut bench = Bench::new(&profile, 1);
        let place = (0x1000, HOST);
        bench.access(0, Access::Fetch, place, (12, &[]));
        bench.timing.fence_instructions(HartId(0));
        bench.access(0, Access::Fetch, place, (12, &[]));
        let misses = if clears { 2 } else { 1 };
        assert_eq!(bench.count(Event::FetchMisses), misses);
    }
}
