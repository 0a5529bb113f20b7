//! Service quantities: how much time each virtual machine may consume before it goes out of service.
//!
//! Paper 000 §3.2.2 gives each virtual machine a *designated service quantity* in proportion to its
//! share. Here it is an account of the virtual machine, not of a vCPU, so that a share does not
//! depend on the number of vCPUs; what is consumed beyond the quantity is a debt that the next
//! rounds pay, so that shares are exact over time.

use crate::ticks::Ticks;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Service {
    pub(crate) share: u32,
    /// What it receives in each round, in ticks; at least one.
    quantity: i64,
    /// What it may still consume; out of service when not positive.
    credit: i64,
    /// The most that may be overdrawn or saved up beyond one quantity.
    slack: i64,
    /// All time that its vCPUs have run.
    pub(crate) used: Ticks,
}

impl Service {
    pub(crate) const fn new(share: u32) -> Self {
        Self {
            share,
            quantity: 1,
            credit: 1,
            slack: 1,
            used: Ticks::ZERO,
        }
    }

    /// Sets the quantity to `share` out of `shares` parts of a round of `round` ticks. One round
    /// may be missed by at most what `harts` harts run in one slice each.
    pub(crate) fn set_quantity(&mut self, round: u64, shares: u64, harts: u32, slice: Ticks) {
        let part = u128::from(round) * u128::from(self.share) / u128::from(shares.max(1));
        let before = self.quantity;
        self.quantity = i64::try_from(part)
            .unwrap_or(i64::MAX / 8)
            .clamp(1, i64::MAX / 8);
        self.slack = slice
            .signed()
            .saturating_mul(i64::from(harts).max(1))
            .min(i64::MAX / 8);
        // Before its first round, a virtual machine has one quantity to consume.
        if before == 1 && self.credit == 1 {
            self.credit = self.quantity;
        }
        self.credit = self.credit.clamp(self.least(), self.most());
    }

    fn most(&self) -> i64 {
        self.quantity + self.slack
    }

    fn least(&self) -> i64 {
        -(self.quantity + 2 * self.slack)
    }

    pub(crate) const fn is_out(&self) -> bool {
        self.credit <= 0
    }

    /// Charges time; the debt has a limit, so that nobody pays for ever.
    pub(crate) fn charge(&mut self, ran: Ticks) {
        self.credit = self.credit.saturating_sub(ran.signed()).max(self.least());
    }

    /// The number of rounds after which it is in service again, at least one.
    pub(crate) const fn rounds_to_service(&self) -> i64 {
        if self.credit > 0 {
            1
        } else {
            -self.credit / self.quantity + 1
        }
    }

    /// Begins so many rounds.
    pub(crate) fn refill(&mut self, rounds: i64) {
        let more = self.quantity.saturating_mul(rounds);
        self.credit = self.credit.saturating_add(more).min(self.most());
    }

    /// How much of its quantity is left, in parts of 2^20: orders virtual machines by service.
    pub(crate) fn left(&self) -> i64 {
        let scaled = i128::from(self.credit) << 20;
        i64::try_from(scaled / i128::from(self.quantity)).unwrap_or(i64::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(share: u32) -> Service {
        let mut service = Service::new(share);
        service.set_quantity(1000, 100, 2, Ticks::new(50));
        service
    }

    #[test]
    fn a_debt_is_carried_into_the_next_round() {
        let mut service = account(30);
        service.charge(Ticks::new(340));
        assert!(service.is_out());
        assert_eq!(service.rounds_to_service(), 1);
        service.refill(1);
        assert!(!service.is_out());
        service.charge(Ticks::new(260));
        assert!(service.is_out(), "300 + 300 were granted, 600 consumed");
    }

    #[test]
    fn rounds_to_service_are_just_enough() {
        let mut service = account(10);
        for ran in [100, 1, 99, 50] {
            service.charge(Ticks::new(ran));
            let rounds = service.rounds_to_service();
            let mut enough = service;
            enough.refill(rounds);
            assert!(!enough.is_out());
            if rounds > 1 {
                let mut short = service;
                short.refill(rounds - 1);
                assert!(short.is_out());
            }
        }
    }

    #[test]
    fn debts_and_savings_have_limits() {
        let mut service = account(30);
        service.charge(Ticks::new(u64::MAX));
        assert!(service.rounds_to_service() <= 3);
        service.refill(i64::MAX);
        service.charge(Ticks::new(400));
        assert!(service.is_out());
    }
}
