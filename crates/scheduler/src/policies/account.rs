//! Account of one VM: virtual time with bounded lag.
//!
//! The virtual time of a VM is the time that it has had harts, divided by its share. VMs are compared by it alone: a VM is *eligible* if it is not ahead of
//! the weighted mean of all that want a hart, and of these the one comes first whose next slice would end first in virtual time (as in WF²Q+ and EEVDF).

use crate::base::ticks::Ticks;

/// Virtual time of one tick for a VM of weight 1.
const ONE: u64 = 1 << 26;

/// Weights are shares in this many parts, so that a group of harts can have a part of a share.
pub(crate) const PARTS: u64 = 64;

/// Account of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    /// Virtual time; it wraps.
    time: u64,
    weight: u64,
    /// Virtual time of a tick.
    inverse: u64,
}

impl Account {
    pub(crate) const fn new() -> Self {
        Self {
            time: 0,
            weight: PARTS,
            inverse: ONE / PARTS,
        }
    }

    /// Sets the weight: the share in [`PARTS`].
    pub(crate) const fn set_weight(&mut self, weight: u64) {
        self.weight = if weight == 0 { 1 } else { weight };
        self.inverse = (ONE + self.weight / 2) / self.weight;
    }

    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Virtual time of so many ticks on a hart.
    const fn cost(&self, ticks: Ticks) -> u64 {
        ticks.get().wrapping_mul(self.inverse)
    }

    pub(crate) const fn charge(&mut self, ticks: Ticks) {
        self.time = self.time.wrapping_add(self.cost(ticks));
    }

    /// Gives time back.
    pub(crate) const fn refund(&mut self, ticks: Ticks) {
        self.time = self.time.wrapping_sub(self.cost(ticks));
    }

    /// Virtual time beyond `mean`; negative for a VM that lags.
    pub(crate) const fn lead(&self, mean: u64) -> i64 {
        self.time.wrapping_sub(mean).cast_signed()
    }

    /// Virtual time beyond `mean` at the end of the next slice.
    pub(crate) const fn end_of_slice(&self, mean: u64, slice: Ticks) -> i64 {
        self.lead(mean)
            .saturating_add(self.cost(slice).cast_signed())
    }

    /// Lag behind `mean` in ticks on a hart: the time that the VM is due.
    pub(crate) const fn lag(&self, mean: u64) -> i64 {
        -(self.lead(mean) / self.inverse.cast_signed())
    }

    /// Bounds the lag behind `mean` and the lead over it to so many ticks on a hart.
    pub(crate) const fn bound(&mut self, mean: u64, most: Ticks) {
        let most = self.cost(most).cast_signed();
        let lead = self.lead(mean);
        if lead > most {
            self.time = mean.wrapping_add(most.cast_unsigned());
        } else if lead < -most {
            self.time = mean.wrapping_sub(most.cast_unsigned());
        }
    }

    /// Begins at `mean`: the VM neither lags nor leads.
    pub(crate) const fn begin(&mut self, mean: u64) {
        self.time = mean;
    }

    /// Replaces the virtual time by one in whole slices beyond `origin`, from 0 to 2, for the model checker.
    #[cfg(test)]
    pub(crate) fn abstract_time(&mut self, origin: u64, slice: Ticks) {
        let slices = self.lead(origin) / self.cost(slice).cast_signed().max(1);
        let slices = u64::try_from(slices.clamp(0, 2)).unwrap_or(0);
        self.time = self.cost(Ticks::new(slice.get() * slices));
    }

    /// Virtual time, for the model checker.
    #[cfg(test)]
    pub(crate) const fn time(&self) -> u64 {
        self.time
    }
}
