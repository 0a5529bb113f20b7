//! The pool against a map from pages to their owners.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::time::Instant;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::heap::allocations;
use crate::memory::owned::OwnedRegion;

const BASE: u64 = 0x8000_0000;

fn vm(number: u16) -> VmId {
    VmId::new(number).unwrap()
}

/// A pool of two parts for guests with so many pages each.
pub fn pool(pages: &[u64]) -> PagePool {
    let reservations = (0..).map(vm).zip(pages.iter().copied());
    let reservations: Vec<_> = reservations.collect();
    let sheets: u64 = pages.iter().map(|pages| sheets_for(*pages)).sum();
    let region =
        |base: u64, sheets: u64| HostRegion::new(HostPhysical::new(base), sheets * SHEET).unwrap();
    let first = sheets / 3;
    let parts = [region(BASE, first), region(64 * BASE, sheets - first)];
    let entries = std::vec![Sheet::default(); sheets as usize].leak();
    // SAFETY: no code reaches the memory.
    unsafe { PagePool::new(&parts, entries, &reservations, 5 * PAGE_SIZE) }
}

/// Gives all that a guest may have, then takes back all but one page of each sheet.
fn fragment(pool: &mut PagePool, owner: VmId) -> Vec<OwnedRegion> {
    let pages: Vec<OwnedRegion> = std::iter::from_fn(|| pool.give(owner)).collect();
    for (index, page) in pages.iter().enumerate() {
        if index % SHEET_PAGES as usize != 0 {
            assert_eq!(pool.take_back(owner, page.region()), Ok(()));
        }
    }
    pages
}

#[test]
fn pages_come_and_go_without_allocation() {
    let mut pool = pool(&[1 << 14, 1 << 10]);
    let mut held = Vec::with_capacity(1 << 14);
    let count = allocations(|| {
        for _ in 0..3 {
            held.extend(std::iter::from_fn(|| pool.give(vm(0))));
            assert_eq!(held.len(), 1 << 14);
            // In a pattern that leaves as many pieces as there can be.
            for page in held.iter().step_by(2) {
                assert_eq!(pool.take_back(vm(0), page.region()), Ok(()));
            }
            assert!(pool.give(vm(0)).is_some());
            pool.take_back_all(vm(0));
            held.clear();
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn fragmented_memory_goes_in_constant_time() {
    // 16 GiB of pages.
    let pages = 1_u64 << 22;
    let mut pool = pool(&[pages]);
    let mut shortest = u128::MAX;
    for _ in 0..3 {
        let held = fragment(&mut pool, vm(0));
        assert_eq!(held.len() as u64, pages);
        assert_eq!(pool.bytes_of(vm(0)), pages / 64 * PAGE_SIZE);
        let begun = Instant::now();
        pool.take_back_all(vm(0));
        shortest = shortest.min(begun.elapsed().as_micros());
        assert_eq!(pool.bytes_of(vm(0)), 0);
        assert_eq!(pool.free_bytes(), (pages + 5) * PAGE_SIZE);
    }
    // A walk of its 65,536 sheets takes longer.
    assert!(shortest < 20, "{shortest} us");
}

#[test]
fn fragmented_neighbour_keeps_its_own_share() {
    let mut pool = pool(&[640, 320]);
    let held = fragment(&mut pool, vm(0));
    assert_eq!(held.len(), 640);
    let other = std::iter::from_fn(|| pool.give(vm(1))).count();
    assert_eq!(other, 320);
    assert_eq!(pool.give(vm(2)), None, "nothing is reserved for it");
}

#[test]
fn former_epochs_pages_are_not_taken() {
    let mut pool = pool(&[64, 64]);
    let page = pool.give(vm(0)).unwrap().region();
    assert_eq!(pool.take_back(vm(1), page), Err(NotGiven(page)));
    pool.take_back_all(vm(0));
    assert_eq!(pool.take_back(vm(0), page), Err(NotGiven(page)));
    assert_eq!(pool.give(vm(0)).map(OwnedRegion::region), Some(page));
    assert_eq!(pool.take_back(vm(0), page), Ok(()));
    assert_eq!(pool.take_back(vm(0), page), Err(NotGiven(page)), "twice");
    let odd = HostRegion::new(HostPhysical::new(BASE + 8), PAGE_SIZE).unwrap();
    let outside = HostRegion::new(HostPhysical::new(0), PAGE_SIZE).unwrap();
    for region in [odd, outside] {
        assert_eq!(pool.take_back(vm(0), region), Err(NotGiven(region)));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Give { owner: u16, count: usize },
    TakeBack { pick: usize, count: usize },
    TakeAll { owner: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3u16, 1..200usize).prop_map(|(owner, count)| Step::Give { owner, count }),
        6 => (any::<usize>(), 1..150usize).prop_map(|(pick, count)| Step::TakeBack { pick, count }),
        1 => (0..3u16).prop_map(|owner| Step::TakeAll { owner }),
    ]
}

proptest! {
    /// No page is given twice, each is its owner's, and a guest within its reservation never lacks one.
    #[test]
    fn reserved_pages_never_fail(steps in prop::collection::vec(step(), 0..80), sizes in prop::array::uniform3(1..400u64)) {
        let mut pool = pool(&sizes);
        let whole = pool.free_bytes();
        let mut held: BTreeMap<u64, (u16, HostRegion)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Give { owner, count } => {
                    let mut has = held.values().filter(|(other, _)| *other == owner).count() as u64;
                    for _ in 0..count {
                        match pool.give(vm(owner)) {
                            Some(page) => {
                                let page = page.region();
                                let before = held.insert(page.base().raw(), (owner, page));
                                prop_assert_eq!(before, None, "given twice");
                                has += 1;
                            }
                            None => prop_assert!(has >= sizes[usize::from(owner)]),
                        }
                    }
                }
                Step::TakeBack { pick, count } => for turn in 0..count {
                    let place = pick.wrapping_mul(turn + 1) % held.len().max(1);
                    let Some((&at, &(owner, page))) = held.iter().nth(place) else { break };
                    held.remove(&at);
                    prop_assert_eq!(pool.take_back(vm((owner + 1) % 3), page), Err(NotGiven(page)));
                    prop_assert_eq!(pool.take_back(vm(owner), page), Ok(()));
                },
                Step::TakeAll { owner } => {
                    held.retain(|_, (other, _)| *other != owner);
                    pool.take_back_all(vm(owner));
                }
            }
            for owner in 0..3 {
                let has = held.values().filter(|(other, _)| *other == owner).count() as u64;
                prop_assert_eq!(pool.bytes_of(vm(owner)), has * PAGE_SIZE);
            }
        }
        (0..3).for_each(|owner| pool.take_back_all(vm(owner)));
        prop_assert_eq!(pool.free_bytes(), whole);
    }
}

/// The frames left after assembly are the pool, and its entries lie in memory of their own.
#[test]
fn pool_lies_in_what_is_left() {
    use crate::memory::physical::Physical;
    let space = Box::leak(std::vec![[0_u64; 512]; 3 << 8].into_boxed_slice());
    let base = HostPhysical::new(space.as_mut_ptr().expose_provenance() as u64);
    let memory = HostRegion::new(base, 3 << 20).unwrap();
    // SAFETY: the memory is leaked for this test alone.
    let frames = || unsafe { Frames::new([memory], []) };
    let whole = frames().free_bytes();
    let mut pool = PagePool::of_frames(frames(), &[(vm(1), 65)], &Physical::default()).unwrap();
    assert_eq!(pool.free_bytes(), whole - PAGE_SIZE * 64);
    let pages: Vec<_> = std::iter::from_fn(|| pool.give(vm(1))).collect();
    assert_eq!(pages.len(), 128);
    assert!(pages.iter().all(|page| memory.covers(page.region())));
    let refused = PagePool::of_frames(frames(), &[(vm(0), 1 << 20)], &Physical::default());
    assert!(matches!(refused, Err(NoPages { wanted, left }) if wanted == 1 << 20 && left < 768));
    let mut none = PagePool::of_frames(frames(), &[], &Physical::default()).unwrap();
    assert_eq!(none.free_bytes(), whole);
    assert_eq!(none.give(vm(0)), None);
}
