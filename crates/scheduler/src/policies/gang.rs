//! Matrix of gang scheduling (J. Ousterhout, Scheduling Techniques for Concurrent Systems, ICDCS 1982, the matrix method).
//!
//! A row is a time slot, a column is a hart. All vCPUs of a VM are in one row, the first with room for them. The rows have their slots in turn.
//! Ousterhout's slots are equally long, because his task forces have no shares. Here a row's slot is as long as the largest share among its VMs
//! asks for.

use crate::base::id::{HartSet, MAX_VCPUS};
use crate::base::ticks::Ticks;

/// Row of a vCPU that is in no row.
pub(crate) const NO_ROW: u8 = u8::MAX;

/// Parts of a share: one of a VM in several rows is divided among them.
const FINE: u32 = 64;

/// Inverse of the shortest slot in slices.
const MIN_SLOTS_PER_SLICE: u64 = 8;

/// Rows, and the slot that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slots {
    /// Number of rows.
    rows: u8,
    /// Row that has the slot.
    row: u8,
    /// End of the slot.
    until: Ticks,
    /// Weight of each row.
    weights: [u32; MAX_VCPUS],
    /// Sum of the weights.
    sum: u64,
}

impl Slots {
    /// No rows.
    pub(crate) const fn new() -> Self {
        Self {
            rows: 0,
            row: 0,
            until: Ticks::ZERO,
            weights: [0; MAX_VCPUS],
            sum: 0,
        }
    }

    /// Sets the number of rows. A slot that has begun goes on if its row is still there; else the first row has the next.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        let rows = u8::try_from(rows.min(MAX_VCPUS)).unwrap_or(NO_ROW);
        if self.row >= rows || self.until == Ticks::ZERO {
            self.row = rows.saturating_sub(1);
            self.until = Ticks::ZERO;
        }
        self.rows = rows;
    }

    /// Sets all weights to none.
    pub(crate) fn clear_weights(&mut self) {
        self.weights = [0; MAX_VCPUS];
        self.sum = 0;
    }

    /// Gives a row of a VM of this share, which has `rows` rows, its weight: that of its largest VM. Then no VM has less than its part of all time,
    /// because the largest shares of all rows together are no more than all shares.
    pub(crate) fn weigh(&mut self, row: u8, share: u32, rows: u32) {
        let weight = (share.saturating_mul(FINE) / rows.max(1)).max(1);
        if let Some(place) = self.weights.get_mut(usize::from(row)) {
            let more = weight.saturating_sub(*place);
            *place += more;
            self.sum += u64::from(more);
        }
    }

    /// Length of a row's slot: its part of a round, in which each row would have one slice if their weights were equal.
    fn length(&self, row: u8, slice: Ticks) -> Ticks {
        let weight = self.weights.get(usize::from(row)).copied().unwrap_or(0);
        let round = slice.get().saturating_mul(u64::from(self.rows));
        let part = round.saturating_mul(u64::from(weight)) / self.sum.max(1);
        Ticks::new(part.max(slice.get() / MIN_SLOTS_PER_SLICE).max(1))
    }

    /// Ends slots that are over by `now`, and begins the next. Harts follow the slots' common times, however late one of them asks. If none has asked
    /// for a whole round, the next slot begins now.
    pub(crate) fn advance(&mut self, now: Ticks, slice: Ticks) {
        if self.until > now || self.rows == 0 {
            return;
        }
        for _ in 0..self.rows {
            self.row = match self.row + 1 {
                next if next < self.rows => next,
                _ => 0,
            };
            self.until = self.until + self.length(self.row, slice);
            if self.until > now {
                return;
            }
        }
        self.until = now + self.length(self.row, slice);
    }

    /// End of the slot.
    pub(crate) const fn until(&self) -> Ticks {
        self.until
    }

    /// Row that has the slot.
    pub(crate) const fn row(&self) -> u8 {
        self.row
    }

    /// Slots until this row has one; none for the row that has it.
    pub(crate) const fn slots_to(&self, row: u8) -> u8 {
        if row >= self.rows {
            NO_ROW
        } else if row >= self.row {
            row - self.row
        } else {
            self.rows - self.row + row
        }
    }

    /// Ends the slot, for the model checker, or lets it go on for as long as it may.
    #[cfg(test)]
    pub(crate) fn abstract_end(&mut self, over: bool) {
        const FAR: u64 = 1 << 40;
        self.until = Ticks::new(if over { 0 } else { FAR });
    }
}

/// Free columns of each row, while the matrix is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    free: [HartSet; MAX_VCPUS],
    used: usize,
}

impl Rows {
    /// Rows of these columns, all of them free.
    pub(crate) const fn new(columns: HartSet) -> Self {
        Self {
            free: [columns; MAX_VCPUS],
            used: 0,
        }
    }

    /// Number of rows that are not empty.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// Takes `count` columns of the first row in which so many are free.
    pub(crate) fn take(&mut self, count: u32) -> Option<(u8, HartSet)> {
        let row = self.free.iter().position(|free| free.count() >= count)?;
        let columns = self
            .free
            .get(row)?
            .iter()
            .take(usize::try_from(count).ok()?);
        let columns = columns.collect();
        self.take_of(row, columns)
    }

    /// Takes these columns of the first row in which all of them are free.
    pub(crate) fn take_columns(&mut self, columns: HartSet) -> Option<(u8, HartSet)> {
        let mut rows = self.free.iter();
        let row = rows.position(|free| columns.without(*free).is_empty())?;
        self.take_of(row, columns)
    }

    fn take_of(&mut self, row: usize, columns: HartSet) -> Option<(u8, HartSet)> {
        let free = self.free.get_mut(row)?;
        *free = free.without(columns);
        self.used = self.used.max(row + 1);
        Some((u8::try_from(row).ok()?, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Ticks = Ticks::new(800);

    fn slots(shares: &[u32]) -> Slots {
        let mut slots = Slots::new();
        slots.set_rows(shares.len());
        for (row, share) in (0..).zip(shares) {
            slots.weigh(row, *share, 1);
        }
        slots
    }

    /// Rows and ends of so many slots from `now` on, asked for at each end.
    fn course(slots: &mut Slots, count: usize) -> std::vec::Vec<(u8, u64)> {
        let next = |_| {
            slots.advance(slots.until(), SLICE);
            (slots.row(), slots.until().get())
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn first_row_with_room_is_taken() {
        let mut rows = Rows::new(HartSet::from_bits(0b1111));
        let sets = [3, 2, 1, 2, 4].map(|count| rows.take(count).unwrap());
        let sets = sets.map(|(row, columns)| (row, columns.bits()));
        let expected = [(0, 0b111), (1, 0b11), (0, 0b1000), (1, 0b1100), (2, 0b1111)];
        assert_eq!(sets, expected);
        assert_eq!(rows.used(), 3);
        assert_eq!(rows.take(5), None);
        let given = rows.take_columns(HartSet::from_bits(0b101)).unwrap();
        assert_eq!(given.0, 3);
    }

    #[test]
    fn equal_rows_take_turns_of_a_slice() {
        let mut slots = slots(&[5, 5, 5]);
        let expected = [(0, 800), (1, 1600), (2, 2400), (0, 3200)];
        assert_eq!(course(&mut slots, 4), expected);
    }

    #[test]
    fn slots_are_long_by_shares() {
        let mut slots = slots(&[3, 1]);
        assert_eq!(course(&mut slots, 3), [(0, 1200), (1, 1600), (0, 2800)]);
    }

    #[test]
    fn smallest_share_has_a_slot_too() {
        let mut slots = slots(&[10_000, 1]);
        let [(_, first), (row, second)] = course(&mut slots, 2)[..] else {
            unreachable!();
        };
        assert_eq!((row, second - first), (1, 100));
    }

    #[test]
    fn row_weighs_as_its_largest_vm() {
        let mut slots = slots(&[1, 4]);
        slots.weigh(0, 2, 1);
        slots.weigh(0, 1, 1);
        let part = |share| slots.length(share, SLICE).get();
        assert_eq!([part(0), part(1)], [533, 1066]);
    }

    #[test]
    fn late_harts_find_the_common_slot() {
        let mut slots = slots(&[1, 1, 1]);
        slots.advance(Ticks::new(0), SLICE);
        slots.advance(Ticks::new(1700), SLICE);
        assert_eq!((slots.row(), slots.until().get()), (2, 2400));
        slots.advance(Ticks::new(1_000_000), SLICE);
        assert_eq!(slots.until().get(), 1_000_800, "nobody asked for a round");
    }

    #[test]
    fn slots_go_on_when_rows_come() {
        let mut slots = slots(&[1, 1]);
        course(&mut slots, 2);
        slots.set_rows(3);
        assert_eq!((slots.row(), slots.until().get()), (1, 1600));
        slots.set_rows(1);
        slots.advance(Ticks::new(100), SLICE);
        assert_eq!(slots.row(), 0);
        let to = [0, 1, 2].map(|row| slots.slots_to(row));
        assert_eq!(to, [0, NO_ROW, NO_ROW]);
    }
}
