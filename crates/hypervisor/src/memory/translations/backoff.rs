//! Back-off of trapping a vCPU's fences after the vCPU has migrated to another hart.
//!
//! [`TlbPurge::OneShot`] pays a trap for each fence that ends a watch, and for some changes of the address space, and gains translations
//! that are still cached on another hart. The balance depends on the guest, so it is tried: after each watch in which something
//! trapped, so many changes of hart go unwatched, as under [`TlbPurge::LastHost`], and twice as many after the next. Each time
//! that translations are found again without a trap, half as many. A guest that fences or changes its address space wherever it goes then
//! pays for one watch in [`MAX_UNWATCHED`] changes of hart.
//!
//! A watch that took a change of the address space and kept the translations has failed as well: the traps of two changes take some 600
//! cycles, and what is found again with cheap walks or small TLBs is worth less.

use abi::system::TlbPurge;

/// Most changes of hart that go unwatched after a failed watch. A failed watch takes up to three traps of some 300 instructions,
/// a change of hart some 2,500 in the hypervisor alone: so this is below 0.2 % of it.
pub const MAX_UNWATCHED: u16 = 256;

/// Result of watching a vCPU's fences. Used by the hart that has the vCPU alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// Changes of hart that went unwatched after the last failed watch, halved for each success since.
    penalty: u16,
    /// Stays that are still to go unwatched.
    unwatched: u16,
}

impl Backoff {
    /// The method by which the vCPU, whose system has `method`, comes to a hart: another one than its last if it has `moved`. Its last
    /// watch, which a change of hart ends, has `trapped` for a change of the address space.
    pub const fn method(&mut self, method: TlbPurge, moved: bool, trapped: bool) -> TlbPurge {
        if !matches!(method, TlbPurge::OneShot) {
            return method;
        }
        if moved && trapped {
            self.failed();
        }
        if self.unwatched == 0 {
            return method;
        }
        if moved {
            self.unwatched -= 1;
        }
        TlbPurge::LastHost
    }

    /// Notes a watch that has trapped.
    pub const fn failed(&mut self) {
        let next = 2 * self.penalty + 1;
        self.penalty = if next < MAX_UNWATCHED {
            next
        } else {
            MAX_UNWATCHED
        };
        self.unwatched = self.penalty;
    }

    /// Notes that the vCPU has found translations again on another hart without a trap.
    pub const fn succeeded(&mut self) {
        // A guest that never fences has no penalty, and its line of the cache is left unchanged.
        if self.penalty != 0 {
            self.penalty /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches of a vCPU that changes its hart so often, where `pays` tells of the number of a watch whether it pays.
    fn watches(moves: usize, pays: impl Fn(usize) -> bool) -> usize {
        let mut backoff = Backoff::default();
        let mut count = 0;
        for _ in 0..moves {
            if backoff.method(TlbPurge::OneShot, true, false) != TlbPurge::OneShot {
                continue;
            }
            match pays(count) {
                true => backoff.succeeded(),
                false => backoff.failed(),
            }
            count += 1;
        }
        count
    }

    #[test]
    fn guest_fencing_everywhere_is_watched_less() {
        // After 1, 3, 7, ... unwatched changes, and then after MAX_UNWATCHED each time.
        let first = watches(1000, |_| false);
        assert!(first <= 11, "{first}");
        let more = watches(1000 + 100 * (usize::from(MAX_UNWATCHED) + 1), |_| false);
        assert!((95..=first + 100).contains(&more), "{more}");
    }

    #[test]
    fn guest_without_fences_is_always_watched() {
        assert_eq!(watches(1000, |_| true), 1000);
        // And after one bad time it is again, soon.
        let rarely = watches(1000, |watch| watch % 100 != 0);
        assert!(rarely > 980, "{rarely}");
        let at_first_not = watches(2000, |watch| watch > 9);
        assert!(at_first_not > 400, "{at_first_not}");
    }

    #[test]
    fn half_paying_watches_watch_half_the_changes() {
        let half = watches(10_000, |watch| watch % 2 == 0);
        assert!((4_000..=7_000).contains(&half), "{half}");
    }

    #[test]
    fn address_space_traps_reduce_watching() {
        let mut backoff = Backoff::default();
        let mut watched = false;
        let mut count = 0;
        for _ in 0..1000 {
            // Each watch traps, and its translations are found again all the same.
            let method = backoff.method(TlbPurge::OneShot, true, watched);
            watched = method == TlbPurge::OneShot;
            count += usize::from(watched);
        }
        assert!(count <= 11, "{count}");
        // A stay on the same hart ends no watch.
        let mut backoff = Backoff::default();
        let again = backoff.method(TlbPurge::OneShot, false, true);
        assert_eq!(again, TlbPurge::OneShot);
        assert_eq!(backoff, Backoff::default());
    }

    #[test]
    fn other_methods_and_stays_are_unaffected() {
        let mut backoff = Backoff::default();
        backoff.failed();
        let all = TlbPurge::ALL.iter().copied();
        for method in all.filter(|method| *method != TlbPurge::OneShot) {
            assert_eq!(backoff.method(method, true, true), method);
        }
        // A vCPU that is dispatched again where it was has not used up its change of hart.
        for _ in 0..3 {
            let method = backoff.method(TlbPurge::OneShot, false, false);
            assert_eq!(method, TlbPurge::LastHost);
        }
        assert_eq!(
            backoff.method(TlbPurge::OneShot, true, false),
            TlbPurge::LastHost
        );
        assert_eq!(
            backoff.method(TlbPurge::OneShot, false, false),
            TlbPurge::OneShot
        );
    }
}
