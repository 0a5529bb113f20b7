//! Guest page faults of a vCPU in a row, at a few places again and again: a guest that has only these gets nowhere.

/// Faults in a row after which the operator is told.
const TOLD_AFTER: u32 = 10_000;
/// Places that a row has. A guest's fault and those of its handler are a few; a guest that looks for its devices faults at more.
const PLACES: usize = 4;
/// Seconds without a fault that end a row. A vCPU may wait for a hart in between.
const SECONDS_IN_BETWEEN: u64 = 1;

/// Consequence of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    GoesOn,
    /// The operator is told.
    Tell,
    /// The operator is told, unless that was done, and the VM has failed.
    Fail { told: bool },
}

/// Place of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlace {
    /// Address of the instruction.
    pub instruction: u64,
    /// Guest-virtual address that it accesses, or is fetched from.
    pub address: u64,
}

/// The present row of one vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultStreak {
    /// Places of the row, and the oldest of them.
    places: [FaultPlace; PLACES],
    oldest: usize,
    /// Time of the last fault.
    last: u64,
    count: u32,
    /// Set once the operator was told.
    told: bool,
}

impl FaultStreak {
    /// Notes a fault at `now`, by a clock of `frequency` ticks a second. The VM fails with the `limit`th in a row; 0 is never.
    pub fn note(&mut self, place: FaultPlace, now: u64, frequency: u64, limit: u32) -> Verdict {
        let passed = now.saturating_sub(self.last);
        self.last = now;
        let is_late = passed > frequency.saturating_mul(SECONDS_IN_BETWEEN);
        if is_late || !self.places.contains(&place) {
            self.begin(place, is_late);
        }
        self.count = self.count.saturating_add(1);
        let told = self.told;
        if limit != 0 && self.count >= limit {
            self.told = true;
            return Verdict::Fail { told };
        }
        if told || self.count < TOLD_AFTER {
            return Verdict::GoesOn;
        }
        self.told = true;
        Verdict::Tell
    }

    /// Begins a row with a place, in which the other places stay unless it `is_new`.
    fn begin(&mut self, place: FaultPlace, is_new: bool) {
        if is_new {
            self.places = [place; PLACES];
        } else if let Some(oldest) = self.places.get_mut(self.oldest) {
            *oldest = place;
            self.oldest = (self.oldest + 1) % PLACES;
        }
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREQUENCY: u64 = 1000;

    fn place(address: u64) -> FaultPlace {
        FaultPlace {
            instruction: 0x8000_0000,
            address,
        }
    }

    /// Verdicts of `count` faults in a row, other than that the guest goes on, with the numbers of the faults.
    fn verdicts(streak: &mut FaultStreak, count: u32, limit: u32) -> Vec<(u32, Verdict)> {
        let verdict = |number| (number, streak.note(place(0), 7, FREQUENCY, limit));
        let all = (1..=count).map(verdict);
        all.filter(|(_, verdict)| *verdict != Verdict::GoesOn)
            .collect()
    }

    #[test]
    fn operator_is_told_once() {
        let mut streak = FaultStreak::default();
        let told = verdicts(&mut streak, 3 * TOLD_AFTER, 0);
        assert_eq!(told, [(TOLD_AFTER, Verdict::Tell)]);
        // Nor of another row.
        assert_eq!(streak.note(place(8), 7, FREQUENCY, 0), Verdict::GoesOn);
        assert!(verdicts(&mut streak, TOLD_AFTER, 0).is_empty());
    }

    #[test]
    fn vm_fails_at_its_limit() {
        let limit = TOLD_AFTER + 2;
        let expected = [
            (TOLD_AFTER, Verdict::Tell),
            (limit, Verdict::Fail { told: true }),
            (limit + 1, Verdict::Fail { told: true }),
        ];
        let found = verdicts(&mut FaultStreak::default(), limit + 1, limit);
        assert_eq!(found, expected);
        let found = verdicts(&mut FaultStreak::default(), 3, 3);
        assert_eq!(found, [(3, Verdict::Fail { told: false })]);
    }

    #[test]
    fn progress_ends_a_row() {
        let mut streak = FaultStreak::default();
        let limit = 2;
        // Another address, another instruction, and a second without a fault.
        let elsewhere = FaultPlace {
            instruction: 0x8000_0004,
            address: 8,
        };
        let faults = [
            (place(0), 10),
            (place(8), 11),
            (elsewhere, 12),
            (elsewhere, 12 + FREQUENCY + 1),
        ];
        for (place, now) in faults {
            let verdict = streak.note(place, now, FREQUENCY, limit);
            assert_eq!(verdict, Verdict::GoesOn, "{place:?}");
        }
        let verdict = streak.note(elsewhere, 12 + 2 * FREQUENCY, FREQUENCY, limit);
        assert_eq!(verdict, Verdict::Fail { told: false });
    }

    #[test]
    fn places_in_turn_are_one_row() {
        for places in 1..=4 {
            let mut streak = FaultStreak::default();
            let limit = 100;
            let faults = (0..1000).map(|number| place(0x1000 * (number % places)));
            let mut verdicts = faults.map(|place| streak.note(place, 7, FREQUENCY, limit));
            let failed = verdicts.position(|verdict| verdict != Verdict::GoesOn);
            // The row begins with the last new place.
            assert_eq!(failed, Some((limit as usize - 1) + places as usize - 1));
        }
    }

    #[test]
    fn ever_new_places_are_progress() {
        let mut streak = FaultStreak::default();
        for number in 0..1000 {
            let verdict = streak.note(place(0x1000 * number), 7, FREQUENCY, 2);
            assert_eq!(verdict, Verdict::GoesOn, "{number}");
        }
    }

    #[test]
    fn no_time_overflows() {
        let mut streak = FaultStreak::default();
        for now in [u64::MAX, 0, u64::MAX] {
            let _ = streak.note(place(0), now, u64::MAX, 1);
        }
    }
}
