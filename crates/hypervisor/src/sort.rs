//! Sorting in little code.
//!
//! The standard library's sorts take four kilobytes of code at each place that sorts. What the hypervisor sorts is short and mostly
//! in order already.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

/// Sorts by `key` in place, in at most 2·n·log₂ n steps of two comparisons (heapsort); in n, if the items are in order. Items of equal
/// keys may change places.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    if items.is_sorted_by_key(&key) {
        return;
    }
    for root in (0..items.len() / 2).rev() {
        sift_down(items, root, &key);
    }
    let mut heap = items;
    while let [first, .., last] = heap {
        core::mem::swap(first, last);
        let Some((_, rest)) = heap.split_last_mut() else {
            return;
        };
        sift_down(rest, 0, &key);
        heap = rest;
    }
}

/// Moves the item at `parent` down until neither child is greater. The heaps below it are in order.
#[inline(never)]
fn sift_down<T, K: Ord>(heap: &mut [T], mut parent: usize, key: &impl Fn(&T) -> K) {
    loop {
        let left = 2 * parent + 1;
        let greater = match (heap.get(left), heap.get(left + 1)) {
            (Some(one), Some(other)) if key(one) < key(other) => left + 1,
            _ => left,
        };
        match heap.get_disjoint_mut([parent, greater]) {
            Ok([above, below]) if key(above) < key(below) => core::mem::swap(above, below),
            _ => return,
        }
        parent = greater;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    proptest! {
        #[test]
        fn all_items_are_kept_in_order(mut items in prop::collection::vec(0u16..40, 0..300)) {
            let mut expected = items.clone();
            expected.sort_unstable_by_key(|item| core::cmp::Reverse(*item));
            sort_by_key(&mut items, |item| core::cmp::Reverse(*item));
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn sorting_is_bounded_in_every_order() {
        const COUNT: u32 = 1 << 10;
        let count_keys = |mut items: Vec<u32>| {
            let keys = Cell::new(0);
            sort_by_key(&mut items, |item| {
                keys.set(keys.get() + 1);
                *item
            });
            assert!(items.is_sorted());
            keys.get()
        };
        let bound = 2 * COUNT * COUNT.ilog2() * 4;
        assert!(count_keys((0..COUNT).rev().collect()) < bound);
        assert!(count_keys((0..COUNT).map(|item| item ^ 0x155).collect()) < bound);
        assert!(count_keys(vec![7; COUNT as usize]) <= 2 * COUNT);
        assert!(count_keys((0..COUNT).collect()) <= 2 * COUNT);
    }
}
