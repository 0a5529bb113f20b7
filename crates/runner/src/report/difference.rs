//! Difference of two reports of a monitor.

use super::{Exits, HartReport, Report, VmReport, Work};
use std::collections::BTreeMap;

impl Report {
    /// Counts from an earlier report of the same run to this one. States of VMs are this one's.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let harts = self.harts.iter().map(|hart| {
            let before = earlier.harts.iter().find(|one| one.hart == hart.hart);
            hart.since(before)
        });
        let vms = self.vms.iter().map(|vm| {
            let before = earlier.vms.iter().find(|one| one.name == vm.name);
            vm.since(before)
        });
        Self {
            seconds: self.seconds - earlier.seconds,
            vms: vms.collect(),
            harts: harts.collect(),
            own_memory: self.own_memory,
        }
    }
}

impl HartReport {
    fn since(&self, earlier: Option<&Self>) -> Self {
        let less = |of: fn(&Self) -> u64| of(self).saturating_sub(earlier.map_or(0, of));
        Self {
            hart: self.hart,
            elapsed: less(|hart| hart.elapsed),
            idle: less(|hart| hart.idle),
            scheduling: less(|hart| hart.scheduling),
        }
    }
}

impl VmReport {
    fn since(&self, earlier: Option<&Self>) -> Self {
        let before = |hart| earlier?.work.iter().find(|work| work.hart == hart);
        let work = self.work.iter().map(|work| work.since(before(work.hart)));
        Self {
            work: work.collect(),
            restarts: (self.restarts).saturating_sub(earlier.map_or(0, |vm| vm.restarts)),
            ..self.clone()
        }
    }
}

impl Work {
    fn since(&self, earlier: Option<&Self>) -> Self {
        let less = |of: fn(&Self) -> u64| of(self).saturating_sub(earlier.map_or(0, of));
        let exits: BTreeMap<_, _> = self
            .exits
            .iter()
            .map(|(cause, exits)| {
                let before = earlier.and_then(|work| work.exits.get(cause));
                let less = |of: fn(&Exits) -> u64| of(exits).saturating_sub(before.map_or(0, of));
                let (count, cycles) = (less(|exits| exits.count), less(|exits| exits.cycles));
                (cause.clone(), Exits { count, cycles })
            })
            .filter(|(_, exits)| exits.count != 0 || exits.cycles != 0)
            .collect();
        let events = self.events.iter().map(|(event, count)| {
            let before = earlier.and_then(|work| work.events.get(event));
            (
                event.clone(),
                count.saturating_sub(before.copied().unwrap_or(0)),
            )
        });
        Self {
            hart: self.hart,
            guest: less(|work| work.guest),
            scheduling: less(|work| work.scheduling),
            simulation: exits.values().map(|exits| exits.cycles).sum(),
            dispatches: less(|work| work.dispatches),
            calls: less(|work| work.calls),
            injected: less(|work| work.injected),
            exits,
            events: events.filter(|(_, count)| *count != 0).collect(),
        }
    }
}
