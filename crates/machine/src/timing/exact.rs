//! The filters change nothing: long random sequences of accesses and fences, with and without.

use super::tests::name;
use super::*;
use crate::base::Random;
use crate::base::Reference;
use crate::base::{Access, VirtualFence};

const HARTS: u64 = 3;
const STEPS: usize = 120_000;

/// One step of a sequence.
#[derive(Debug, Clone, Copy)]
enum Step {
    Access(Charge, u32),
    Fence(Fence),
    FenceInstructions,
}

/// Small structures, so that everything is evicted often. With `any_size` they have a prefetcher of the next line, with `replacement`
/// other than fifo all that the memory system can have.
fn small(any_size: bool, replacement: ReplacementPolicy) -> Profile {
    let tlb = |entries, ways, large| TlbProfile {
        entries,
        ways,
        large,
        any_size: any_size && entries == u32::from(ways),
        replacement,
    };
    let cache = |size, ways| CacheProfile {
        replacement,
        ..CacheProfile::new(size, ways)
    };
    let whole = replacement != ReplacementPolicy::Fifo;
    let default = Profile::default();
    let large = if any_size { 0 } else { 2 };
    Profile {
        l1i: cache(4096, 2),
        l1d: cache(4096, 4),
        l2: Some(cache(16384, 4)),
        itlb: tlb(4, 4, large),
        dtlb: tlb(4, 4, large),
        l2tlb: Some(tlb(16, 2, 2)),
        guest_tlb: Some(tlb(8, 2, 1)),
        prefetch_next_line: any_size,
        store_buffer: if whole { 3 } else { 0 },
        memory: whole.then_some(MemoryProfile {
            channels: 2,
            banks: 4,
            bank_busy: 60,
        }),
        prefetcher: whole.then_some(PrefetcherProfile {
            streams: 3,
            distance: 6,
            outstanding: 5,
        }),
        costs: Costs {
            memory_gap: if whole { 10 } else { 0 },
            ..default.costs
        },
        ..default
    }
}

fn space(random: &mut Random) -> Space {
    let virtualized = random.below(2) == 0;
    let paged = random.below(4) != 0;
    Space {
        virtualized,
        paged,
        asid: if paged { random.below(2) as u16 } else { 0 },
        vmid: if virtualized {
            random.below(2) as u16
        } else {
            0
        },
    }
}

/// log2 of the size of the page that an address is in: some are large.
const fn page_shift(address: u64) -> u32 {
    if address >> 21 & 1 == 0 { 12 } else { 21 }
}

fn step(random: &mut Random) -> Step {
    let address = random.below(6) << 20 | random.below(24) << 12 | random.below(64) << 6;
    match random.below(200) {
        0 => Step::FenceInstructions,
        1..=8 => {
            let address = (random.below(2) == 0).then_some(address);
            let asid = (random.below(2) == 0).then(|| random.below(2) as u16);
            let vmid = random.below(2) as u16;
            Step::Fence(match random.below(4) {
                0 => Fence::Supervisor { address, asid },
                1 => Fence::Virtual {
                    by: VirtualFence::Sfence,
                    address,
                    asid,
                    vmid,
                },
                2 => Fence::Virtual {
                    by: VirtualFence::Hfence,
                    address,
                    asid,
                    vmid,
                },
                _ => Fence::Guest {
                    address,
                    vmid: asid.map(|_| vmid),
                },
            })
        }
        _ => {
            let access = match random.below(64) {
                0..=15 => LineAccess::Fetch,
                16..=27 => LineAccess::Store,
                28..=30 => LineAccess::Modify,
                31 => LineAccess::Overwrite,
                32 => LineAccess::Clean,
                33 => LineAccess::Flush,
                34 => LineAccess::Invalidate,
                _ => LineAccess::Load,
            };
            let space = space(random);
            // Spaces share some physical lines, by different addresses.
            let shift = u64::from(space.number() >> 16 & 3) << 12;
            let charge = Charge {
                access,
                address,
                physical: 0x8000_0000 + (address ^ shift),
                space,
                translated: space.paged || space.virtualized,
                name: Some(name(address, space)),
                shared: false,
            };
            Step::Access(charge, page_shift(address))
        }
    }
}

/// Carries out a step; gives its cycles.
fn apply(
    timing: &mut Timing,
    (hart, now): (HartId, u64),
    step: Step,
    counts: &mut EventCounts,
    ask: bool,
) -> u64 {
    match step {
        Step::Fence(fence) => timing.fence(hart, fence),
        Step::FenceInstructions => timing.fence_instructions(hart),
        Step::Access(charge, shift) => {
            let (name, line) = (name(charge.address, charge.space), charge.line());
            let free = match charge.access.access() {
                Access::Fetch => timing.fetch_is_free(hart, name, line),
                Access::Load => timing.load_is_free(hart, name, line),
                Access::Store => timing.store_is_free(hart, name, line),
            };
            // The filters are asked for what translated code does.
            let asked = !charge.access.is_management() && charge.access != LineAccess::Overwrite;
            if free && ask && asked {
                return 0;
            }
            let reference = |level: u8, guest_stage| Reference {
                physical: 0x9000_0000
                    + ((charge.page() >> (9 * level)) << 3)
                    + u64::from(level) * 4096,
                guest_stage,
                level,
                leaf: level == 0,
                address: charge.address,
            };
            let references = [reference(1, false), reference(0, false), reference(0, true)];
            return timing.access((hart, now), charge, counts, || Walked {
                shift,
                global: charge.page() & 7 == 3,
                guest_physical: charge.physical,
                references: &references,
            });
        }
    }
    0
}

/// Applies a long sequence of steps to models with filters and without; gives how often the filters answered.
fn compare(profile: &Profile, seed: u64) -> u64 {
    let mut filtered = Timing::new(profile, HARTS as usize);
    let mut plain = filtered.clone();
    plain.without_filters();
    let mut random = Random::new(seed);
    let (mut some, mut all) = (EventCounts::default(), EventCounts::default());
    let mut answered = 0;
    let mut times = [0; HARTS as usize];
    let mut recent = [step(&mut random); 8];
    for number in 0..STEPS {
        // Runs of steps on one hart, as in a quantum.
        let hart = number as u64 / 50 % HARTS;
        // Programs come back to where they were, and go on behind it.
        let again = random.below(8) as usize;
        match (random.below(8), &mut recent[again]) {
            (0 | 1, step) => *step = self::step(&mut random),
            (2 | 3, Step::Access(charge, _)) if charge.address & 0xfc0 != 0xfc0 => {
                charge.address += 64;
                charge.physical += 64;
            }
            _ => {}
        }
        let step = recent[again];
        let before = some;
        let time = &mut times[hart as usize];
        let at = (HartId(hart as u32), *time);
        let quick = apply(&mut filtered, at, step, &mut some, true);
        let slow = apply(&mut plain, at, step, &mut all, false);
        assert_eq!((quick, some), (slow, all), "step {number}: {step:?}");
        *time += quick + 1 + random.below(4);
        answered += u64::from(matches!(step, Step::Access(..)) && some == before);
    }
    assert!(all.get(Event::Walks) > 1000 && all.get(Event::Transfers) > 1000);
    let whole = profile.prefetcher.is_some();
    assert_eq!(all.get(Event::WriteBacks) > 1000, whole);
    assert_eq!(all.get(Event::MemoryQueue) > 1000, whole);
    assert!(!whole || all.get(Event::Prefetches) > 1000);
    answered
}

#[test]
fn filters_change_no_digit() {
    for any_size in [false, true] {
        for (seed, replacement) in (41..).zip([
            ReplacementPolicy::Fifo,
            ReplacementPolicy::Lru,
            ReplacementPolicy::Plru,
            ReplacementPolicy::Random,
        ]) {
            let profile = small(any_size, replacement);
            let answered = compare(&profile, seed);
            assert!(answered > 1000, "{replacement:?}: {answered} answers");
        }
    }
}
