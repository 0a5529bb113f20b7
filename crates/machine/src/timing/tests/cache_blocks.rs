//! Cache-block operations: Zicboz and Zicbom.

use super::*;

const LINE: u64 = 0x1000;

/// An operation on [`LINE`] by a hart.
fn operate(bench: &mut Bench, hart: u32, access: LineAccess) -> u64 {
    bench.access(hart, access, (LINE, HOST), (12, &[]))
}

/// A bench whose harts have the page in their TLBs, and nothing of it in a cache.
fn bench(profile: &Profile, harts: u32) -> Bench {
    let mut bench = Bench::new(profile, harts as usize);
    for hart in 0..harts {
        bench.load(hart, LINE + 0x800);
    }
    bench
}

#[test]
fn zeroing_reads_no_memory() {
    let profile = Profile::default();
    let costs = profile.costs;
    let mut cold = bench(&profile, 2);
    let misses = cold.count(Event::SharedMisses);
    assert_eq!(operate(&mut cold, 0, LineAccess::Overwrite), costs.l2_hit);
    assert_eq!(cold.count(Event::SharedMisses), misses);
    assert_eq!(operate(&mut cold, 0, LineAccess::Overwrite), 0);
    // Its own: a store is free, and another hart has to ask for it.
    assert_eq!(cold.store(0, LINE), 0);
    assert_eq!(cold.load(1, LINE), costs.l2_hit + costs.transfer);
    // Both have it: the other copy is invalidated, and nothing is read.
    assert_eq!(operate(&mut cold, 0, LineAccess::Overwrite), costs.transfer);
    assert_eq!(cold.load(1, LINE), costs.l2_hit + costs.transfer);
    let single = Profile {
        l2: None,
        ..profile
    };
    let overwritten = operate(&mut bench(&single, 1), 0, LineAccess::Overwrite);
    assert_eq!(overwritten, costs.transfer);
}

#[test]
fn zeroing_invalidates_other_copies() {
    let profile = Profile::default();
    let costs = profile.costs;
    let mut bench = bench(&profile, 2);
    bench.store(1, LINE);
    let taken = costs.l2_hit + costs.transfer;
    assert_eq!(operate(&mut bench, 0, LineAccess::Overwrite), taken);
    assert!(!bench.load_is_free(1, LINE, HOST));
    assert_eq!(bench.load(1, LINE), taken);
}

#[test]
fn flushed_lines_are_in_no_cache() {
    let profile = Profile::default();
    let costs = profile.costs;
    for access in [LineAccess::Flush, LineAccess::Invalidate] {
        for owner in [0, 1] {
            let mut bench = bench(&profile, 2);
            bench.store(owner, LINE);
            let asked = costs.l2_hit + u64::from(owner) * costs.transfer;
            assert_eq!(operate(&mut bench, 0, access), asked, "{access:?}");
            assert!(!bench.load_is_free(owner, LINE, HOST));
            assert_eq!(bench.load(owner, LINE), costs.memory, "{access:?}");
        }
    }
}

#[test]
fn cleaned_lines_stay() {
    let profile = Profile::default();
    let mut bench = bench(&profile, 2);
    bench.load(0, LINE);
    assert_eq!(
        operate(&mut bench, 0, LineAccess::Clean),
        profile.costs.l2_hit
    );
    assert_eq!(bench.load(0, LINE), 0);
}
