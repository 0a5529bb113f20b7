//! Every order in which vCPUs of two VMs come to harts, change their triggers, leave and are started again: a hart that runs a vCPU has this vCPU's
//! triggers and no others.
//!
//! The model has two harts and two vCPUs. The states are explored whole.

use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::vec::Vec;

use riscv::csr::trigger::{LOAD, M, S, STORE, U};
use scheduler::{HartId, VcpuNumber};

use super::{Change, DebugTriggers, HartTriggers, Place, TYPE};
use crate::hart::debug_triggers::Hardware;

const HARTS: usize = 2;
const VCPUS: usize = 2;
/// Number of triggers of a vCPU in the model.
const MAX: usize = 1;

/// Triggers that a hart has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct OnHart {
    triggers: Vec<[u64; 2]>,
    /// Set if the hart has room for none.
    is_full: bool,
}

impl Hardware for OnHart {
    fn clear(&mut self) -> bool {
        self.triggers.clear();
        true
    }

    fn put(&mut self, triggers: impl Iterator<Item = [u64; 2]>) -> bool {
        assert!(self.triggers.is_empty(), "others are here");
        if !self.is_full {
            self.triggers.extend(triggers);
        }
        !self.is_full
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Guest {
    triggers: DebugTriggers,
    place: Place,
    runs_on: Option<usize>,
    /// Set if the hart had no room when the vCPU came.
    runs_without: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    harts: [OnHart; HARTS],
    /// 1 + the vCPU whose triggers each hart has, or 0.
    owners: [u16; HARTS],
    guests: [Guest; VCPUS],
}

impl State {
    /// Does something with a vCPU on a hart, as the hypervisor does.
    fn with<T>(
        &mut self,
        guest: usize,
        on: usize,
        what: impl FnOnce(&HartTriggers, VcpuNumber, (&DebugTriggers, &mut Place), &mut OnHart) -> T,
    ) -> T {
        let record = HartTriggers::new(HartId::new(on as u16).unwrap());
        record.owner.store(self.owners[on], Ordering::Relaxed);
        let vcpu = VcpuNumber::new(guest as u16).unwrap();
        let Guest {
            triggers, place, ..
        } = &mut self.guests[guest];
        let result = what(&record, vcpu, (triggers, place), &mut self.harts[on]);
        self.owners[on] = record.owner.load(Ordering::Relaxed);
        result
    }

    fn check(&self) {
        for guest in &self.guests {
            let Some(on) = guest.runs_on else {
                continue;
            };
            let wanted: Vec<_> = guest.triggers.on_hart().collect();
            let found = &self.harts[on].triggers;
            if guest.runs_without {
                assert!(found.is_empty(), "{self:?}");
            } else {
                assert_eq!(*found, wanted, "{self:?}");
            }
        }
        for [control, _] in self.harts.iter().flat_map(|hart| &hart.triggers) {
            assert_eq!(control & (M | S | U), 0, "fires outside of guests");
        }
    }

    fn dispatched(&self, guest: usize, on: usize, is_full: bool) -> Self {
        let mut next = self.clone();
        next.harts[on].is_full = is_full;
        next.guests[guest].runs_on = Some(on);
        next.with(guest, on, |record, vcpu, own, hardware| {
            if record.concern(own.1.wanted) {
                record.load(vcpu, own, hardware);
            }
        });
        let stays = next.guests[guest].triggers.can_fire() && next.harts[on].triggers.is_empty();
        next.guests[guest].runs_without = stays && is_full;
        next.harts[on].is_full = false;
        next
    }

    /// Calls of a vCPU on a hart. A data address per vCPU tells whose a trigger is.
    fn changed(&self, guest: usize, on: usize) -> impl Iterator<Item = Self> + '_ {
        let address = 0x1000 * (1 + guest as u64);
        let install = move |triggers: &mut DebugTriggers, control: u64| {
            let _ = triggers.install(&[[TYPE | control, address, 0]], MAX);
        };
        let apply = |triggers: &mut DebugTriggers, change| {
            let _ = triggers.change((0, 1), MAX, change);
        };
        let changes: [&dyn Fn(&mut DebugTriggers); 6] = [
            &move |triggers| install(triggers, S | STORE),
            &move |triggers| install(triggers, U | LOAD),
            &move |triggers| {
                let _ = triggers.update(&[(0, [TYPE | S | LOAD, address + 8, 0])], MAX);
            },
            &|triggers| apply(triggers, Change::Uninstall),
            &|triggers| apply(triggers, Change::Disable),
            &|triggers| apply(triggers, Change::Enable),
        ];
        let all = changes.map(|change| {
            let mut next = self.clone();
            change(&mut next.guests[guest].triggers);
            let replace = |record: &HartTriggers, vcpu, own: (&_, &mut _), hardware: &mut _| {
                record.replace(vcpu, own, hardware)
            };
            assert!(next.with(guest, on, replace));
            next.guests[guest].runs_without = false;
            next
        });
        all.into_iter()
    }

    fn successors(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for guest in 0..VCPUS {
            let Some(on) = self.guests[guest].runs_on else {
                for on in 0..HARTS {
                    let is_free = |guest: &Guest| guest.runs_on != Some(on);
                    if self.guests.iter().all(is_free) {
                        all.extend([false, true].map(|full| self.dispatched(guest, on, full)));
                    }
                }
                // The vCPU is started again.
                let mut next = self.clone();
                next.guests[guest] = Guest::default();
                all.push(next);
                continue;
            };
            let mut next = self.clone();
            next.guests[guest].runs_on = None;
            all.push(next);
            all.extend(self.changed(guest, on));
        }
        all
    }
}

#[test]
fn harts_have_triggers_of_their_vcpu_alone() {
    let mut seen = BTreeSet::from([State::default()]);
    let mut open = Vec::from([State::default()]);
    while let Some(state) = open.pop() {
        for next in state.successors() {
            next.check();
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    // Both vCPUs run with triggers at once, and one runs where triggers of the other were.
    let fires = |guest: &Guest| guest.runs_on.is_some() && guest.triggers.can_fire();
    assert!(seen.iter().any(|state| state.guests.iter().all(fires)));
    let stale = |state: &State| {
        state.guests[0].runs_on.is_none() && !state.harts[0].triggers.is_empty()
            || state.guests[1].runs_on == Some(0)
    };
    assert!(seen.iter().any(stale));
}
