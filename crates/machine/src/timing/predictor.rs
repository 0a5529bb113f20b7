//! Branch prediction: directions by counters, targets by a buffer, returns by a stack.
//!
//! A predictor knows addresses and no address spaces, as those of most cores. All that runs on a hart shares it: a vCPU that comes back
//! finds what others have left there.

use serde::{Deserialize, Serialize};

use super::Cache;
use crate::profile::PredictorProfile;

/// States of a counter, from "not taken" to "taken". From the middle on it says "taken".
const LAST_STATE: u8 = 3;
const FIRST_TAKEN: u8 = 2;
/// State of a counter that has seen nothing.
const UNKNOWN: u8 = FIRST_TAKEN - 1;
/// Bits of an instruction's address, without the lowest, by which the buffer of targets knows it: a [`Cache`] needs some for itself.
const KEY_MASK: u64 = (1 << 56) - 1;

/// An executed branch or jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Conditional branch, with its target if it is taken.
    Branch(Option<u64>),
    /// JAL.
    Direct {
        /// Address that it leads to.
        target: u64,
        /// Address behind it, if it is a call.
        call: Option<u64>,
    },
    /// JALR.
    Indirect {
        /// Address that it leads to.
        target: u64,
        /// Address behind it, if it is a call.
        call: Option<u64>,
        /// True if it is a return.
        returns: bool,
    },
}

/// How well a branch or jump was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prediction {
    /// The right instructions were fetched.
    Right,
    /// The right direction was known, and the target only when the instruction was decoded.
    Late,
    /// The wrong instructions were fetched until the branch was executed.
    Wrong,
}

/// Predictor of a hart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Predictor {
    profile: PredictorProfile,
    /// Two-bit saturating counters.
    counters: Vec<u8>,
    /// Directions of the last branches, the last one in bit 0.
    history: u64,
    /// Branches and jumps whose targets are known, by their addresses.
    known: Cache,
    /// Their targets, by their positions.
    targets: Vec<u64>,
    /// Return addresses, in a ring.
    returns: Vec<u64>,
    /// Calls that have not returned, at most as many as there are places.
    depth: usize,
    /// Place of the ring for the next call.
    next: usize,
}

impl Predictor {
    /// A predictor that has seen nothing.
    pub fn new(profile: PredictorProfile) -> Self {
        let geometry = profile.geometry();
        Self {
            profile,
            counters: vec![UNKNOWN; profile.counters as usize],
            history: 0,
            known: Cache::new(geometry, profile.replacement),
            targets: vec![0; geometry.sets * geometry.ways],
            returns: vec![0; profile.returns.into()],
            depth: 0,
            next: 0,
        }
    }

    /// Tests whether it is what a profile describes, and whole.
    pub fn is_of(&self, profile: PredictorProfile) -> bool {
        let geometry = profile.geometry();
        self.profile == profile
            && self.counters.len() == profile.counters as usize
            && (self.counters.iter()).all(|&counter| counter <= LAST_STATE)
            && self.known.is_of(geometry, profile.replacement)
            && self.targets.len() == geometry.sets * geometry.ways
            && self.returns.len() == usize::from(profile.returns)
            && self.depth <= self.returns.len()
            && (self.next < self.returns.len() || self.next == 0)
    }

    /// Learns of a branch or jump at an address; says how well it was predicted.
    pub fn learn(&mut self, pc: u64, transfer: Transfer) -> Prediction {
        match transfer {
            Transfer::Branch(target) => self.branch(pc, target),
            Transfer::Direct { target, call } => {
                let known = self.knows(pc, target);
                self.call(call);
                if known {
                    Prediction::Right
                } else {
                    Prediction::Late
                }
            }
            Transfer::Indirect {
                target,
                call,
                returns,
            } => {
                let known = if returns {
                    self.pop() == Some(target)
                } else {
                    self.knows(pc, target)
                };
                self.call(call);
                if known {
                    Prediction::Right
                } else {
                    Prediction::Wrong
                }
            }
        }
    }

    fn branch(&mut self, pc: u64, target: Option<u64>) -> Prediction {
        let taken = target.is_some();
        let index = (pc >> 1 ^ self.history) as usize & self.counters.len().wrapping_sub(1);
        let mask = (1 << self.profile.history) - 1;
        self.history = (self.history << 1 | u64::from(taken)) & mask;
        let known = target.is_none_or(|target| self.knows(pc, target));
        let Some(counter) = self.counters.get_mut(index) else {
            return Prediction::Right;
        };
        let foreseen = (*counter >= FIRST_TAKEN) == taken;
        *counter = if taken {
            (*counter + 1).min(LAST_STATE)
        } else {
            counter.saturating_sub(1)
        };
        match (foreseen, known) {
            (true, true) => Prediction::Right,
            (true, false) => Prediction::Late,
            (false, _) => Prediction::Wrong,
        }
    }

    /// Tests whether the buffer has a target for the instruction at an address, and the right one; it has from then on.
    fn knows(&mut self, pc: u64, target: u64) -> bool {
        let key = pc >> 1 & KEY_MASK;
        let found = self.known.look_up(key).map(|found| found.position);
        let position = found.unwrap_or_else(|| self.known.insert(key, |_| {}).0);
        let before = (self.targets.get_mut(position)).map(|old| std::mem::replace(old, target));
        found.is_some() && before == Some(target)
    }

    fn call(&mut self, behind: Option<u64>) {
        let places = self.returns.len();
        if let Some(behind) = behind
            && let Some(place) = self.returns.get_mut(self.next)
        {
            *place = behind;
            self.next = (self.next + 1) % places;
            self.depth = (self.depth + 1).min(places);
        }
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        self.next = self.next.checked_sub(1).unwrap_or(self.returns.len() - 1);
        self.returns.get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Prediction::{Late, Right, Wrong};
    use super::*;
    use crate::profile::ReplacementPolicy;

    const PC: u64 = 0xffff_ffff_8000_1000;
    const TARGET: u64 = PC - 64;

    fn predictor(history: u8) -> Predictor {
        Predictor::new(PredictorProfile {
            counters: 64,
            history,
            targets: 4,
            target_ways: 2,
            replacement: ReplacementPolicy::Lru,
            returns: 2,
        })
    }

    fn branch(predictor: &mut Predictor, pc: u64, taken: bool) -> Prediction {
        predictor.learn(pc, Transfer::Branch(taken.then_some(TARGET)))
    }

    fn direct(predictor: &mut Predictor, pc: u64, target: u64) -> Prediction {
        predictor.learn(pc, Transfer::Direct { target, call: None })
    }

    fn call(predictor: &mut Predictor, pc: u64) {
        let target = pc + 0x100;
        let call = Some(pc + 4);
        predictor.learn(pc, Transfer::Direct { target, call });
    }

    fn give_back(predictor: &mut Predictor, target: u64) -> Prediction {
        let jump = Transfer::Indirect {
            target,
            call: None,
            returns: true,
        };
        predictor.learn(PC + 0x200, jump)
    }

    #[test]
    fn a_loops_end_alone_is_mispredicted() {
        let mut predictor = predictor(0);
        let mut turns = |taken: bool| branch(&mut predictor, PC, taken);
        assert_eq!([true; 3].map(&mut turns), [Wrong, Right, Right]);
        // The loop ends once, and does not forget that it is one.
        assert_eq!([false, true, true].map(&mut turns), [Wrong, Right, Right]);
    }

    #[test]
    fn history_foresees_what_alternates() {
        // One counter alone is always a step behind.
        for (history, expected) in [(4, 0), (0, 100)] {
            let mut predictor = predictor(history);
            let mut wrong = 0;
            for number in 0..200 {
                let prediction = branch(&mut predictor, PC, number % 2 == 0);
                wrong += u32::from(number >= 100 && prediction == Wrong);
            }
            assert_eq!(wrong, expected, "{history} bits of history");
        }
    }

    #[test]
    fn untaken_branches_need_no_target() {
        let mut predictor = predictor(0);
        assert_eq!(branch(&mut predictor, PC, false), Right);
        assert_eq!(direct(&mut predictor, PC + 8, TARGET), Late);
    }

    #[test]
    fn targets_make_room_for_others() {
        let mut predictor = predictor(0);
        // Three in one set of two.
        let places = [PC, PC + 4, PC + 8];
        for pc in places {
            assert_eq!(direct(&mut predictor, pc, TARGET), Late);
        }
        assert_eq!(direct(&mut predictor, PC + 8, TARGET), Right);
        assert_eq!(direct(&mut predictor, PC, TARGET), Late);
        // Another program, with another jump at the same address.
        assert_eq!(direct(&mut predictor, PC, TARGET + 2), Late);
        assert_eq!(direct(&mut predictor, PC, TARGET + 2), Right);
    }

    #[test]
    fn indirect_jumps_need_their_last_target() {
        let mut predictor = predictor(0);
        let mut jump = |target| {
            let jump = Transfer::Indirect {
                target,
                call: None,
                returns: false,
            };
            predictor.learn(PC, jump)
        };
        assert_eq!([8, 8, 16, 8].map(&mut jump), [Wrong, Right, Wrong, Wrong]);
    }

    #[test]
    fn returns_match_their_last_calls() {
        let mut predictor = predictor(0);
        assert_eq!(give_back(&mut predictor, PC), Wrong);
        // Three calls, of which the stack keeps two.
        for number in 0..3 {
            call(&mut predictor, PC + 16 * number);
        }
        assert_eq!(give_back(&mut predictor, PC + 36), Right);
        assert_eq!(give_back(&mut predictor, PC + 20), Right);
        assert_eq!(give_back(&mut predictor, PC + 4), Wrong);
    }

    #[test]
    fn coroutines_exchange_return_addresses() {
        let mut predictor = predictor(0);
        call(&mut predictor, PC);
        let exchange = Transfer::Indirect {
            target: PC + 4,
            call: Some(PC + 104),
            returns: true,
        };
        assert_eq!(predictor.learn(PC + 100, exchange), Right);
        assert_eq!(give_back(&mut predictor, PC + 104), Right);
    }

    #[test]
    fn other_code_leaves_a_predictor_cold() {
        let mut predictor = predictor(0);
        let rounds = |predictor: &mut Predictor, taken: bool| {
            let places = (0..64).map(|number| PC + 2 * number);
            places
                .filter(|&pc| branch(predictor, pc, taken) == Wrong)
                .count()
        };
        rounds(&mut predictor, false);
        assert_eq!(rounds(&mut predictor, false), 0);
        rounds(&mut predictor, true);
        rounds(&mut predictor, true);
        assert_eq!(rounds(&mut predictor, false), 64);
    }

    #[test]
    fn damaged_predictors_belong_to_no_profile() {
        let whole = predictor(3);
        assert!(whole.is_of(whole.profile));
        let damages: [fn(&mut Predictor); 5] = [
            |predictor| predictor.counters[7] = LAST_STATE + 1,
            |predictor| predictor.counters.clear(),
            |predictor| predictor.targets.truncate(3),
            |predictor| predictor.depth = 3,
            |predictor| predictor.next = 2,
        ];
        for damage in damages {
            let mut damaged = whole.clone();
            damage(&mut damaged);
            assert!(!damaged.is_of(whole.profile));
        }
    }
}
