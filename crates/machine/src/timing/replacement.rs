//! Which entry of a set has to go when another comes.
//!
//! A filter answers for hits that change nothing here. [`Replacement::touch`] says which ways are of that kind no more.

use serde::{Deserialize, Serialize};

use crate::base::Random;
use crate::profile::{Geometry, ReplacementPolicy};

/// State of replacement of all sets of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Replacement {
    policy: ReplacementPolicy,
    ways: usize,
    /// For fifo, the way of each set that is replaced next. For lru, the ways of each set, the most recently used first. For
    /// plru, one for each way that has been used.
    state: Vec<u8>,
    random: Random,
}

impl Replacement {
    /// The state after reset of a structure with 1 to 255 ways.
    pub fn new(policy: ReplacementPolicy, Geometry { sets, ways }: Geometry) -> Self {
        let state = match policy {
            ReplacementPolicy::Fifo => vec![0; sets],
            ReplacementPolicy::Lru => (0..sets * ways).map(|at| (at % ways) as u8).collect(),
            ReplacementPolicy::Plru => vec![0; sets * ways],
            ReplacementPolicy::Random => Vec::new(),
        };
        Self {
            policy,
            ways,
            state,
            random: Random::new(sets as u64),
        }
    }

    /// Tests whether it is that of such a structure, and whole.
    pub fn is_of(&self, policy: ReplacementPolicy, geometry: Geometry) -> bool {
        let ways = geometry.ways;
        let expected = Self::new(policy, geometry).state.len();
        let mut sets = self.state.chunks(ways.max(1));
        self.policy == policy
            && self.ways == ways
            && self.state.len() == expected
            && match policy {
                ReplacementPolicy::Lru => sets.all(|order| {
                    let mut order = order.to_vec();
                    order.sort_unstable();
                    (0..ways).eq(order.into_iter().map(usize::from))
                }),
                _ => true,
            }
    }

    /// Tests whether it matters which entry is used.
    pub const fn looks_at_use(&self) -> bool {
        matches!(
            self.policy,
            ReplacementPolicy::Lru | ReplacementPolicy::Plru
        )
    }

    fn set(&mut self, set: usize) -> &mut [u8] {
        let start = set * self.ways;
        self.state
            .get_mut(start..start + self.ways)
            .unwrap_or_default()
    }

    /// A way of a set is used. Calls `demoted` with each way of which the next use may change something again.
    #[inline]
    pub fn touch(&mut self, set: usize, way: usize, mut demoted: impl FnMut(usize)) {
        match self.policy {
            ReplacementPolicy::Fifo | ReplacementPolicy::Random => {}
            ReplacementPolicy::Lru => {
                let order = self.set(set);
                let place = order.iter().position(|&other| usize::from(other) == way);
                let Some(place) = place.filter(|&place| place != 0) else {
                    return;
                };
                demoted(order[0].into());
                order.copy_within(..place, 1);
                order[0] = way as u8;
            }
            ReplacementPolicy::Plru => {
                let used = self.set(set);
                match used.get_mut(way) {
                    Some(used) if *used == 0 => *used = 1,
                    _ => return,
                }
                if used.iter().all(|&used| used != 0) {
                    for (other, used) in used.iter_mut().enumerate() {
                        if other != way {
                            *used = 0;
                            demoted(other);
                        }
                    }
                }
            }
        }
    }

    /// The way of a full set that has to go.
    pub fn victim(&mut self, set: usize) -> usize {
        let ways = self.ways;
        match self.policy {
            ReplacementPolicy::Fifo => {
                let Some(next) = self.state.get_mut(set) else {
                    return 0;
                };
                let way = usize::from(*next) % ways;
                *next = ((way + 1) % ways) as u8;
                way
            }
            ReplacementPolicy::Lru => self.set(set).last().map_or(0, |&way| way.into()),
            ReplacementPolicy::Plru => self
                .set(set)
                .iter()
                .position(|&used| used == 0)
                .unwrap_or(0),
            ReplacementPolicy::Random => self.random.below(ways as u64) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { sets: 2, ways: 4 };

    fn used(policy: ReplacementPolicy, ways: &[usize]) -> (Replacement, Vec<usize>) {
        let mut replacement = Replacement::new(policy, GEOMETRY);
        let mut demoted = Vec::new();
        for &way in ways {
            replacement.touch(1, way, |way| demoted.push(way));
        }
        (replacement, demoted)
    }

    #[test]
    fn fifo_goes_round_whatever_is_used() {
        let (mut fifo, demoted) = used(ReplacementPolicy::Fifo, &[0, 1, 0]);
        assert!(demoted.is_empty());
        let victims: Vec<usize> = (0..5).map(|_| fifo.victim(1)).collect();
        assert_eq!(victims, [0, 1, 2, 3, 0]);
    }

    #[test]
    fn lru_replaces_the_longest_unused() {
        let (mut lru, demoted) = used(ReplacementPolicy::Lru, &[0, 1, 2, 3, 0, 0, 2]);
        assert_eq!(demoted, [0, 1, 2, 3, 0]);
        assert_eq!(lru.victim(1), 1);
        // Another set has a state of its own.
        assert_eq!(lru.victim(0), 3);
    }

    #[test]
    fn plru_replaces_the_first_unused() {
        let (mut plru, demoted) = used(ReplacementPolicy::Plru, &[0, 2, 0]);
        assert_eq!((plru.victim(1), demoted), (1, vec![]));
        // The last way that is used makes all others unused.
        let (mut plru, demoted) = used(ReplacementPolicy::Plru, &[0, 2, 1, 3]);
        assert_eq!((plru.victim(1), demoted), (0, vec![0, 1, 2]));
    }

    #[test]
    fn random_victims_come_again() {
        let draw = || {
            let (mut random, _) = used(ReplacementPolicy::Random, &[1, 2]);
            (0..64).map(|_| random.victim(0)).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        assert!((0..4).all(|way| drawn.contains(&way)));
    }
}
