//! Accounts of service (paper 000 §3.2.2).
//!
//! Each VM receives a *designated service quantity* in each round. Time beyond the quantity is a debt that the next rounds pay, so that shares are
//! exact over time.

use crate::base::ticks::Ticks;

/// Account of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Service {
    /// Ticks received in each round, at least one; 0 before it is set.
    quantity: i64,
    /// Ticks left to consume; out of service if not positive.
    credit: i64,
    /// Bound on overdraft and savings beyond whole quantities.
    slack: i64,
}

impl Service {
    pub(crate) const fn new() -> Self {
        Self {
            quantity: 0,
            credit: 0,
            slack: 0,
        }
    }

    /// Sets the quantity to `share` out of `shares` parts of a round, in which each of `harts` harts runs for `round`. Each hart may miss it by one
    /// `slice`.
    pub(crate) fn set_quantity(
        &mut self,
        (share, shares): (u64, u64),
        (harts, round): (u32, Ticks),
        slice: Ticks,
    ) {
        const LIMIT: i64 = i64::MAX / 8;
        let shares = shares.max(1);
        let whole = round.get().checked_mul(u64::from(harts));
        let part = match whole.and_then(|whole| whole.checked_mul(share)) {
            // The usual case takes a tenth of the time of the other.
            Some(product) => u128::from(product / shares),
            None => {
                let round = u128::from(round.get()) * u128::from(harts);
                round.saturating_mul(u128::from(share)) / u128::from(shares)
            }
        };
        let before = self.quantity;
        self.quantity = i64::try_from(part).unwrap_or(LIMIT).clamp(1, LIMIT);
        self.slack = slice
            .signed()
            .saturating_mul(i64::from(harts))
            .clamp(1, LIMIT);
        if before == 0 {
            self.credit = self.quantity;
        }
        if before != self.quantity {
            // Savings in the old measure are forgotten; debts are kept within their limit.
            self.credit = self.credit.clamp(self.least(), self.quantity);
        }
    }

    fn most(&self) -> i64 {
        2 * self.quantity + self.slack
    }

    fn least(&self) -> i64 {
        -(self.quantity + 2 * self.slack)
    }

    pub(crate) const fn is_out(&self) -> bool {
        self.credit <= 0
    }

    /// Time left to consume.
    pub(crate) fn credit(&self) -> Ticks {
        Ticks::new(u64::try_from(self.credit).unwrap_or(0))
    }

    /// Returns true if a part of earlier rounds' quantities is still due: a round ended because no other vCPU was in service for a hart, while this VM had
    /// too few vCPUs to consume its part.
    pub(crate) const fn is_owed(&self) -> bool {
        self.credit > self.quantity
    }

    /// Charges time. The debt is bounded.
    pub(crate) fn charge(&mut self, ran: Ticks) {
        self.credit = self.credit.saturating_sub(ran.signed()).max(self.least());
    }

    /// Rounds until it is in service again, at least one.
    pub(crate) const fn rounds_to_service(&self) -> i64 {
        if self.credit > 0 {
            1
        } else {
            -self.credit / self.quantity + 1
        }
    }

    /// Begins this number of rounds.
    pub(crate) fn refill(&mut self, rounds: i64) {
        let more = self.quantity.saturating_mul(rounds);
        self.credit = self.credit.saturating_add(more).min(self.most());
    }

    /// Takes one of `parts` equal parts of the credit or debt away.
    pub(crate) fn give_part(&mut self, parts: u32) -> i64 {
        let part = self.credit / i64::from(parts.max(1));
        self.credit -= part;
        part
    }

    /// Adds a part of another account of the same VM. Its limits hold from the next setting of the quantity. An account that was not set yet has
    /// nothing else.
    pub(crate) fn receive(&mut self, part: i64) {
        self.credit = self.credit.saturating_add(part);
        self.quantity = self.quantity.max(1);
    }

    /// Puts the account in service or out of it, for the model checker.
    #[cfg(test)]
    pub(crate) fn set_credit(&mut self, credit: i64) {
        self.credit = credit.min(self.quantity);
    }

    /// Returns true if a smaller part of the quantity is left than of another's: orders VMs by service.
    pub(crate) fn has_less_left(&self, other: &Self) -> bool {
        i128::from(self.credit) * i128::from(other.quantity)
            < i128::from(other.credit) * i128::from(self.quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(share: u64) -> Service {
        let mut service = Service::new();
        service.set_quantity((share, 100), (2, Ticks::new(500)), Ticks::new(50));
        service
    }

    #[test]
    fn debt_is_carried_into_next_round() {
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
        assert!(service.is_owed());
        service.charge(Ticks::new(700));
        assert!(service.is_out());
    }
}
