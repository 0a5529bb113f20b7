//! Choices among equals.
//!
//! If the rules leave several harts or vCPUs, the scheduler takes the one with the lowest number. No rule depends on that number, so the model
//! checker takes each of them in turn (`choice::every`): then a state and its renumbered copy take the same steps, and one of the two is explored.

use crate::base::id::{HartId, HartSet, VcpuId, VcpuSet, VmId, VmSet};

/// Chooses one of the harts.
pub(crate) fn hart(among: HartSet) -> Option<HartId> {
    #[cfg(test)]
    if let Some(place) = oracle::choose(among.count()) {
        return among.iter().nth(place);
    }
    among.first()
}

/// Chooses one of the vCPUs.
pub(crate) fn vcpu(among: VcpuSet) -> Option<VcpuId> {
    #[cfg(test)]
    if let Some(place) = oracle::choose(among.count()) {
        return among.iter().nth(place);
    }
    among.first()
}

/// Chooses the next vCPU in turn: the first of `after`, which are behind the last one, or else the first of all.
pub(crate) fn next_of(after: VcpuSet, all: VcpuSet) -> Option<VcpuId> {
    #[cfg(test)]
    if oracle::is_asked() {
        return vcpu(all);
    }
    after.first().or_else(|| all.first())
}

/// Returns `chosen`, which depends on times and numbers; for the model checker any VM of `among`, or none.
pub(crate) fn vm(chosen: Option<VmId>, among: VmSet) -> Option<VmId> {
    #[cfg(test)]
    if let Some(place) = oracle::choose(among.count() + 1) {
        return among.iter().nth(place);
    }
    #[cfg(not(test))]
    let _ = among;
    chosen
}

/// Returns `is_so`, which depends on times and numbers; for the model checker either value.
pub(crate) fn either(is_so: bool) -> bool {
    #[cfg(test)]
    if let Some(place) = oracle::choose(2) {
        return place == 1;
    }
    is_so
}

#[cfg(test)]
pub(crate) use oracle::every;

#[cfg(test)]
mod oracle {
    use std::cell::RefCell;
    use std::vec::Vec;

    /// Choice at each place, and the choices asked for so far.
    #[derive(Default)]
    struct Oracle {
        asked: bool,
        given: Vec<u32>,
        /// Choices made, each with the number of alternatives.
        made: Vec<(u32, u32)>,
    }

    std::thread_local! {
        static ORACLE: RefCell<Oracle> = RefCell::default();
    }

    /// Returns true while choices are enumerated.
    pub(super) fn is_asked() -> bool {
        ORACLE.with_borrow(|oracle| oracle.asked)
    }

    /// Place of the choice among this number of choices; `None` if choices are not enumerated.
    pub(super) fn choose(among: u32) -> Option<usize> {
        ORACLE.with_borrow_mut(|oracle| {
            if !oracle.asked || among < 2 {
                return None;
            }
            let choice = oracle.given.get(oracle.made.len()).copied().unwrap_or(0);
            oracle.made.push((choice, among));
            usize::try_from(choice).ok()
        })
    }

    /// Results of `what` for every sequence of choices.
    pub(crate) fn every<T>(mut what: impl FnMut() -> T) -> Vec<T> {
        let mut results = Vec::new();
        let mut given = Vec::new();
        loop {
            ORACLE.set(Oracle {
                asked: true,
                given,
                made: Vec::new(),
            });
            results.push(what());
            let mut made = ORACLE.take().made;
            // The next sequence, as an odometer counts.
            while made
                .pop_if(|(choice, among)| *choice + 1 == *among)
                .is_some()
            {}
            let Some((last, _)) = made.last_mut() else {
                return results;
            };
            *last += 1;
            given = made.into_iter().map(|(choice, _)| choice).collect();
        }
    }

    #[test]
    fn every_sequence_of_choices_is_made_once() {
        let first = || choose(2).unwrap();
        let ways = every(|| match first() {
            0 => (0, choose(3)),
            one => (one, choose(1)),
        });
        let expected = [(0, Some(0)), (0, Some(1)), (0, Some(2)), (1, None)];
        assert_eq!(ways, expected);
        assert_eq!(choose(5), None, "afterwards the lowest number is taken");
    }
}
