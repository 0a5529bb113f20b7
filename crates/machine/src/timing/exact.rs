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

/// Small structures, so that everything is evicted often.
fn small(any_size: bool) -> Profile {
    let tlb = |entries, ways, large| TlbProfile {
        entries,
        ways,
        large,
        any_size: any_size && entries == u32::from(ways),
    };
    let large = if any_size { 0 } else { 2 };
    Profile {
        l1i: CacheProfile::new(4096, 2),
        l1d: CacheProfile::new(4096, 2),
        l2: Some(CacheProfile::new(16384, 4)),
        itlb: tlb(4, 4, large),
        dtlb: tlb(4, 4, large),
        l2tlb: Some(tlb(16, 2, 2)),
        guest_tlb: Some(tlb(8, 2, 1)),
        prefetch_next_line: any_size,
        ..Profile::default()
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
    hart: HartId,
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
            return timing.access((hart, 0), charge, counts, || Walked {
                shift,
                global: charge.page() & 7 == 3,
                guest_physical: charge.physical,
                references: &references,
            });
        }
    }
    0
}

#[test]
fn filters_change_no_digit() {
    for any_size in [false, true] {
        let profile = small(any_size);
        let mut filtered = Timing::new(&profile, HARTS as usize);
        let mut plain = filtered.clone();
        plain.without_filters();
        let mut random = Random::new(41 + u64::from(any_size));
        let (mut some, mut all) = (EventCounts::default(), EventCounts::default());
        let mut answered = 0;
        let mut recent = [step(&mut random); 8];
        for number in 0..STEPS {
            // Runs of steps on one hart, as in a quantum.
            let hart = HartId((number as u64 / 50 % HARTS) as u32);
            // Programs come back to where they were.
            let again = random.below(8) as usize;
            if random.below(4) == 0 {
                recent[again] = step(&mut random);
            }
            let step = recent[again];
            let before = some;
            let quick = apply(&mut filtered, hart, step, &mut some, true);
            let slow = apply(&mut plain, hart, step, &mut all, false);
            assert_eq!((quick, some), (slow, all), "step {number}: {step:?}");
            answered += u64::from(matches!(step, Step::Access(..)) && some == before);
        }
        assert!(answered > 1000, "the filters answered {answered} times");
        assert!(all.get(Event::Walks) > 1000 && all.get(Event::Transfers) > 1000);
    }
}
