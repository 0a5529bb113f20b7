//! Costs of branches and jumps.

use super::predictor::Prediction;
use super::{Timing, Transfer};
use crate::base::HartId;
use crate::count::{Event, EventCounts};

impl Timing {
    /// Tests whether the harts have predictors.
    #[inline(always)]
    #[must_use]
    pub const fn predicts(&self) -> bool {
        self.predicts
    }

    /// Charges a branch or jump that a hart executes at an address, and counts what its predictor did not know. Gives the cycles beyond
    /// those of the instruction.
    pub fn transfer(
        &mut self,
        id: HartId,
        (pc, transfer): (u64, Transfer),
        counts: &mut EventCounts,
    ) -> u64 {
        let hart = self.harts.get_mut(id.index());
        let Some(predictor) = hart.and_then(|hart| hart.predictor.as_mut()) else {
            return 0;
        };
        let (event, cycles) = match predictor.learn(pc, transfer) {
            Prediction::Right => return 0,
            Prediction::Late => (Event::TargetMisses, self.costs.redirect),
            Prediction::Wrong => (Event::Mispredictions, self.costs.mispredict),
        };
        counts.add(event, 1);
        cycles
    }
}
