//! Broadcast fences, devices, memory's turn, prefetches, and updates by walks.

use super::*;

#[test]
fn coarse_broadcast_fences_ignore_their_operands() {
    let fence = Fence::Virtual {
        by: VirtualFence::Broadcast,
        address: Some(0x1000),
        asid: None,
        vmid: 1,
    };
    let rules = |broadcast| FenceRules {
        broadcast,
        ..FenceRules::default()
    };
    let who = Honours {
        vmid: false,
        ..Honours::default()
    };
    let place = Honours {
        address: false,
        ..Honours::default()
    };
    assert_eq!(shown(left(rules(who), fence)), "++-+-+");
    assert_eq!(shown(left(rules(place), fence)), "++--++");
}

#[test]
fn broadcast_fences_cost_for_each_other_hart() {
    let mut profile = Profile::default();
    profile.costs.broadcast = 7;
    let mut bench = Bench::new(&profile, 3);
    for hart in 0..3 {
        bench.access(hart, Access::Load, (0x1000, guest(1)), (12, &[]));
    }
    assert_eq!(bench.count(Event::Walks), 3);
    let fence = Fence::Virtual {
        by: VirtualFence::Broadcast,
        address: None,
        asid: None,
        vmid: 1,
    };
    assert_eq!(bench.timing.broadcast(HartId(1), fence), 2 * 7);
    for hart in 0..3 {
        bench.access(hart, Access::Load, (0x1000, guest(1)), (12, &[]));
    }
    assert_eq!(bench.count(Event::Walks), 6);
}

#[test]
fn device_writes_are_in_the_second_level() {
    let profile = Profile::default();
    let mut bench = Bench::new(&profile, 2);
    bench.access(0, Access::Store, (0x1000, HOST), (12, &[]));
    let physical = 0x8000_1000;
    // Read: the line stays, the right to store does not.
    bench.timing.device_access(physical, 64, false);
    let costs = profile.costs;
    assert_eq!(bench.access(0, Access::Load, (0x1000, HOST), (12, &[])), 0);
    let again = bench.access(0, Access::Store, (0x1000, HOST), (12, &[]));
    assert_eq!(again, costs.transfer);
    // Written: it is gone, and so is the next one, which was in no cache; both are in the second level.
    bench.timing.device_access(physical, 128, true);
    let first = bench.access(0, Access::Load, (0x1000, HOST), (12, &[]));
    let second = bench.access(0, Access::Load, (0x1040, HOST), (12, &[]));
    assert_eq!((first, second), (costs.l2_hit, costs.l2_hit));
}

#[test]
fn misses_wait_for_their_turn_with_memory() {
    let mut profile = Profile::default();
    profile.costs.memory_gap = 30;
    let mut bench = Bench::new(&profile, 1);
    bench.access(0, Access::Load, (0x1000, HOST), (12, &[]));
    // Without time in between each miss waits for all before it.
    let memory = profile.costs.memory;
    assert_eq!(
        bench.access(0, Access::Load, (0x1100, HOST), (12, &[])),
        memory + 30
    );
    assert_eq!(
        bench.access(0, Access::Load, (0x1200, HOST), (12, &[])),
        memory + 60
    );
}

#[test]
fn prefetch_brings_the_next_line_in_page() {
    let profile = Profile {
        prefetch_next_line: true,
        ..Profile::default()
    };
    let mut bench = Bench::new(&profile, 2);
    bench.access(0, Access::Load, (0x1000, HOST), (12, &[]));
    assert_eq!(bench.access(0, Access::Load, (0x1040, HOST), (12, &[])), 0);
    assert_eq!(bench.count(Event::Prefetches), 1);
    // Not beyond the page, and not what another hart has.
    bench.access(0, Access::Load, (0x1fc0, HOST), (12, &[]));
    bench.access(1, Access::Store, (0x3040, HOST), (12, &[]));
    bench.access(0, Access::Load, (0x3000, HOST), (12, &[]));
    assert_eq!(bench.count(Event::Prefetches), 1 + 1);
}

#[test]
fn entry_updates_are_stores_to_their_line() {
    let mut profile = Profile::default();
    profile.costs.update = 9;
    let costs = profile.costs;
    let mut bench = Bench::new(&profile, 2);
    let physical = 0x8000_1008;
    let at = (HartId(0), 0);
    let first = bench.timing.update_entry(at, physical, &mut bench.counts);
    assert_eq!(first, 9 + costs.memory);
    let second = bench.timing.update_entry(at, physical, &mut bench.counts);
    assert_eq!(second, 9);
    // Another hart's load takes the right to store.
    bench.access(1, Access::Load, (0x1000, HOST), (12, &[]));
    let third = bench.timing.update_entry(at, physical, &mut bench.counts);
    assert_eq!(third, 9 + costs.transfer);
}

/// Cycles of a fetch whose page only the second-level TLB has, and of the shortest walk: its one entry
/// and the line that is fetched are in the first-level caches.
fn second_level_hit_and_shortest_walk(profile: &Profile) -> (u64, u64) {
    let fence = Fence::Supervisor {
        address: None,
        asid: None,
    };
    let leaf = [Reference {
        physical: 0x9000_0000,
        guest_stage: false,
        level: 0,
        leaf: true,
        address: 0x5000,
    }];
    let place = (0x5000, HOST);
    let mut bench = Bench::new(profile, 1);
    bench.access(0, Access::Fetch, place, (12, &leaf));
    bench.timing.fence(HartId(0), fence);
    let walk = bench.access(0, Access::Fetch, place, (12, &leaf));
    bench.timing.fence(HartId(0), fence);
    // The load's walk fills the data TLB and the second level, and the instruction TLB stays empty.
    bench.access(0, Access::Load, place, (12, &leaf));
    let walks = bench.count(Event::Walks);
    let hit = bench.access(0, Access::Fetch, place, (12, &leaf));
    let walked = bench.count(Event::Walks) - walks;
    assert_eq!(walked, u64::from(profile.l2tlb.is_none()));
    (hit, walk)
}

#[test]
fn walks_begin_after_second_level_misses() {
    for name in NAMES {
        let mut profile = Profile::named(name).expect("ships");
        profile.l2tlb = None;
        let costs = profile.costs;
        let (_, alone) = second_level_hit_and_shortest_walk(&profile);
        assert_eq!(alone, costs.walk_step, "{name}");
        // Profiles without a second level get one of the size that is proposed for CVA6.
        let shipped = Profile::named(name).expect("ships").l2tlb;
        profile.l2tlb = shipped.or(Some(TlbProfile {
            entries: 128,
            ways: 4,
            large: 0,
            any_size: false,
            replacement: ReplacementPolicy::Fifo,
        }));
        let (hit, walk) = second_level_hit_and_shortest_walk(&profile);
        assert_eq!(hit, costs.l2_tlb_hit, "{name}");
        assert!(
            walk >= hit,
            "{name}: a walk takes {walk} cycles, a hit {hit}"
        );
        assert_eq!(walk, costs.l2_tlb_hit + costs.walk_step, "{name}");
    }
}
