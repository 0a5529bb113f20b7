//! Service quantities: how much time each virtual machine may consume before it goes out of service.
//!
//! Paper 000 §3.2.2 gives each virtual machine a *designated service quantity* in proportion to its
//! share. Under floating scheduling it is an account of the virtual machine, so that a share does not
//! depend on the number of vCPUs. Where all that share harts are fixed, each vCPU has a part of it for itself,
//! because a hart cannot wait for what happens on others. What is consumed beyond the quantity is a
//! debt that the next rounds pay, so that shares are exact over time.

use crate::behind::Pace;
use crate::id::{HartId, MAX_VCPUS, VcpuId, VcpuSet};
use crate::queue::Queue;
use crate::table::Scheduler;
use crate::ticks::Ticks;
use crate::vcpu::Vm;

/// An account of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Service {
    /// What it receives in each round, in ticks; at least one. Zero: not set yet.
    quantity: i64,
    /// What it may still consume; out of service when not positive.
    credit: i64,
    /// The most that may be overdrawn or saved up beyond whole quantities.
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

    /// Sets the quantity to `share` out of `shares` parts of a round, in which each of `harts` harts
    /// runs for `round`. It may be missed by what each of them runs in one `slice`.
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
            // Most often. It takes a tenth of what the other does.
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
            // What was due in another measure is forgotten; debts are not, within their limit.
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

    /// What it may still consume.
    pub(crate) fn credit(&self) -> Ticks {
        Ticks::new(u64::try_from(self.credit).unwrap_or(0))
    }

    /// Whether a part of earlier rounds' quantities is still due: such a round ended because no other
    /// vCPU was in service for a hart, while this one had too few to consume its part.
    pub(crate) const fn is_owed(&self) -> bool {
        self.credit > self.quantity
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

    /// Takes one of `parts` equal parts of what it may still consume, or of its debt, away.
    pub(crate) fn give_part(&mut self, parts: u32) -> i64 {
        let part = self.credit / i64::from(parts.max(1));
        self.credit -= part;
        part
    }

    /// Adds what was taken from another account of the same virtual machine. The limits of debts and savings are kept when
    /// the quantity is set next. An account that was not set yet has nothing else.
    pub(crate) fn receive(&mut self, part: i64) {
        self.credit = self.credit.saturating_add(part);
        self.quantity = self.quantity.max(1);
    }

    /// What the model checker assumes: in service or out.
    #[cfg(test)]
    pub(crate) fn set_credit(&mut self, credit: i64) {
        self.credit = credit.min(self.quantity);
    }

    /// Whether a smaller part of its quantity is left than of another's: orders virtual machines by service.
    pub(crate) fn has_less_left(&self, other: &Self) -> bool {
        i128::from(self.credit) * i128::from(other.quantity)
            < i128::from(other.credit) * i128::from(self.quantity)
    }
}

impl Scheduler {
    /// The account that `vcpu` consumes from; none on a hart of its own.
    #[inline]
    pub(crate) fn service(&self, vcpu: VcpuId) -> Option<&Service> {
        let entry = self.vcpus[vcpu.index()].as_ref()?;
        if entry.dedicated {
            return None;
        }
        match self.own_accounts {
            true => Some(&entry.service),
            false => Some(&self.vms[entry.vm.index()].as_ref()?.service),
        }
    }

    #[inline]
    fn service_mut(&mut self, vcpu: VcpuId) -> Option<&mut Service> {
        let fixed = self.own_accounts;
        let entry = self.vcpus[vcpu.index()].as_mut()?;
        if entry.dedicated {
            return None;
        }
        match fixed {
            true => Some(&mut entry.service),
            false => Some(&mut self.vms[entry.vm.index()].as_mut()?.service),
        }
    }

    /// Whether `vcpu` may not run in this round any more.
    #[inline]
    pub(crate) fn is_out_of_service(&self, vcpu: VcpuId) -> bool {
        self.out_of_service.contains(vcpu)
    }

    /// Notes who is out of service, after accounts have changed.
    pub(crate) fn note_service(&mut self) {
        self.out_of_service = if self.own_accounts {
            let out = |&vcpu: &VcpuId| self.service(vcpu).is_some_and(Service::is_out);
            self.taken.iter().filter(out).collect()
        } else {
            let out = self.sharing().filter(|vm| vm.service.is_out());
            out.fold(VcpuSet::EMPTY, |out, vm| out.union(vm.vcpus))
        };
    }

    /// How long `vcpu` may run before it goes out of service, but a millisecond at least: shorter
    /// stays cost more than they serve.
    pub(crate) fn quantity_left(&self, vcpu: VcpuId) -> Ticks {
        let shortest = Ticks::new(self.config.frequency.div_ceil(1000));
        let left = self.service(vcpu).map(Service::credit);
        left.map_or(Ticks::new(u64::MAX), |left| left.max(shortest))
    }

    /// Charges for time in which others wanted the hart: at least a tick, so that no number of short
    /// stays is free.
    ///
    /// If this consumes the service quantity, the partners that are ready go out of service before
    /// `vcpu` does, so that they are the first to be served in the next round.
    #[inline]
    pub(crate) fn charge(&mut self, vcpu: VcpuId, ran: Ticks) {
        let Some(service) = self.service_mut(vcpu) else {
            return;
        };
        service.charge(ran.max(Ticks::new(1)));
        if service.is_out() {
            self.end_service(vcpu);
        }
    }

    /// The account of `vcpu` is overdrawn.
    #[inline(never)]
    fn end_service(&mut self, vcpu: VcpuId) {
        if self.own_accounts {
            return self.out_of_service.insert(vcpu);
        }
        let partners = self.partners(vcpu);
        self.out_of_service = self.out_of_service.union(partners);
        self.move_members(Queue::ProperReady, partners, Queue::OutService);
        self.move_members(Queue::TimeSliceEnd, partners, Queue::OutService);
    }

    /// Grants everyone who may run on `hart` a service quantity, as often as is needed until one of
    /// `out` is in service again.
    pub(crate) fn begin_round(&mut self, hart: HartId, out: VcpuSet) {
        let rounds = (out.iter())
            .filter_map(|vcpu| self.service(vcpu).map(Service::rounds_to_service))
            .min()
            .unwrap_or(1);
        if self.own_accounts {
            for vcpu in self.may_run[hart.index()].iter() {
                if let Some(service) = self.service_mut(vcpu) {
                    service.refill(rounds);
                }
            }
        } else {
            self.for_each_sharing(|vm| vm.service.refill(rounds));
        }
        self.note_service();
    }

    /// The length of a service round.
    pub(crate) fn round(&self) -> Ticks {
        let slice = self.config.slice.get();
        Ticks::new(slice.saturating_mul(u64::from(self.config.round)))
    }

    /// Brings all service quantities up to date with shares, slices and harts.
    pub(crate) fn set_quantities(&mut self) {
        let slice = self.config.slice;
        let round = self.round();
        let harts = self.shared.count().max(1);
        let shares = self.sharing().map(Vm::share_here).sum();
        self.for_each_sharing(|vm| {
            vm.pace = Pace::of(vm.share);
            let share = vm.share_here();
            vm.service
                .set_quantity((share, shares), (harts, round), slice);
        });
        if self.own_accounts {
            self.set_quantities_of_vcpus(round, slice);
        }
        self.note_service();
    }

    /// The same under fixed scheduling, where each vCPU has an account of its own.
    fn set_quantities_of_vcpus(&mut self, round: Ticks, slice: Ticks) {
        for hart in self.shared.iter() {
            let here = self.may_run[hart.index()];
            let share = |vcpu: VcpuId| self.vm(vcpu).map_or(0, Vm::share_of_vcpu);
            let shares: u64 = here.iter().map(share).sum();
            for vcpu in here.iter() {
                let share = self.vm(vcpu).map_or(0, Vm::share_of_vcpu);
                if let Some(service) = self.service_mut(vcpu) {
                    service.set_quantity((share, shares), (1, round), slice);
                }
            }
        }
    }
}

impl Vm {
    /// The part of the share that counts here. It is fine enough that a sixty-fourth of the smallest share is not nothing.
    fn share_here(&self) -> u64 {
        const FINE: u64 = 64;
        let (parts, of) = self.part;
        u64::from(self.share) * FINE * u64::from(parts) / u64::from(of.max(1))
    }

    /// The part of the share that falls to each vCPU, scaled so that it is a whole number of parts.
    fn share_of_vcpu(&self) -> u64 {
        self.share_here() * MAX_VCPUS as u64 / u64::from(self.vcpus.count().max(1))
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
        assert!(service.is_owed());
        service.charge(Ticks::new(700));
        assert!(service.is_out());
    }
}
