//! Back-off of polling: whether short polls of one vCPU have paid.

/// Highest score: polls succeeded lately.
const MAX_SCORE: u8 = 8;

/// Number of spins for each poll at score 0.
const BACK_OFF: u8 = 16;

/// Success of a vCPU's short polls before it leaves its hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollHistory {
    score: u8,
    skipped: u8,
}

impl Default for PollHistory {
    fn default() -> Self {
        Self {
            score: MAX_SCORE / 2,
            skipped: 0,
        }
    }
}

impl PollHistory {
    /// Decides whether to poll at this spin.
    pub const fn should_poll(&mut self) -> bool {
        if self.score > 0 {
            return true;
        }
        self.skipped = (self.skipped + 1) % BACK_OFF;
        self.skipped == 0
    }

    /// Notes the result of a poll.
    pub fn note(&mut self, success: bool) {
        self.score = match success {
            true => (self.score + 1).min(MAX_SCORE),
            false => self.score.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polls(history: &mut PollHistory, success: bool) -> usize {
        let made = (0..1600).filter(|_| {
            let polls = history.should_poll();
            if polls {
                history.note(success);
            }
            polls
        });
        made.count()
    }

    #[test]
    fn polling_backs_off_after_misses() {
        let mut history = PollHistory::default();
        let made = polls(&mut history, false);
        assert!((90..=110).contains(&made), "{made} of 1600");
        let made = polls(&mut history, true);
        assert!(made > 1500, "{made} of 1600");
        history.note(false);
        assert!(history.should_poll(), "one miss does not stop polling");
    }
}
