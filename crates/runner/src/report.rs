//! Report of a run: the monitor's last report, the guests' own counts, and how each
//! VM ended.

mod collect;
mod difference;
mod tables;
#[cfg(test)]
mod tests;

pub use collect::Collector;

use abi::monitor::{Event, ExitCause, HartId, StopReason, VmState, WorkCounters};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Name that the monitor gives a cause, an event or a state: one of this build's, or one that a recorded report has.
pub type Name = Cow<'static, str>;

/// Interrupts that a guest's kernel counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuestInterrupts {
    /// Of its timer.
    pub timer: u64,
    /// Between its vCPUs.
    pub ipi: u64,
    /// Of its devices.
    pub device: u64,
}

impl GuestInterrupts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.timer
            .saturating_add(self.ipi)
            .saturating_add(self.device)
    }
}

/// Exits of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Exits {
    /// How many.
    pub count: u64,
    /// Cycles that their handling took.
    pub cycles: u64,
}

/// Work of one hart for one VM. Times are in the hart's cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The hart.
    pub hart: u32,
    /// In the guest.
    pub guest: u64,
    /// Choosing, entering and leaving its vCPUs.
    pub scheduling: u64,
    /// Handling exits, all causes.
    pub simulation: u64,
    /// How often one of its vCPUs was given the hart.
    pub dispatches: u64,
    /// SBI calls.
    pub calls: u64,
    /// Interrupts that reached it through the hypervisor.
    pub injected: u64,
    /// Exits by cause, without those that did not occur.
    pub exits: BTreeMap<Name, Exits>,
    /// Other events by name, without those that did not occur.
    pub events: BTreeMap<Name, u64>,
}

impl Work {
    fn new(hart: HartId, counters: &WorkCounters) -> Self {
        // What was done for a VM in the exit of another one has cycles without an exit.
        let occurred = ExitCause::ALL
            .into_iter()
            .filter(|cause| counters.exits(*cause) != 0 || counters.simulation(*cause).0 != 0);
        let exits: BTreeMap<_, _> = occurred
            .map(|cause| {
                let exits = Exits {
                    count: counters.exits(cause),
                    cycles: counters.simulation(cause).0,
                };
                (Name::from(cause.name()), exits)
            })
            .collect();
        let events = (Event::ALL.into_iter())
            .map(|event| (Name::from(event.name()), counters.events(event)))
            .filter(|(_, count)| *count != 0)
            .collect();
        Self {
            hart: hart.0,
            guest: counters.guest.0,
            scheduling: counters.scheduling.0,
            simulation: exits.values().map(|exits| exits.cycles).sum(),
            dispatches: counters.dispatches,
            calls: counters.calls,
            injected: counters.injected,
            exits,
            events,
        }
    }
}

/// A VM in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmReport {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: Name,
    /// Why it ended.
    #[serde(rename = "reason")]
    pub stop_reason: Name,
    /// How often it was started again.
    pub restarts: u64,
    /// Interrupts by its kernel's own count, if it reported one.
    pub guest_interrupts: Option<GuestInterrupts>,
    /// Work for it, by hart.
    pub work: Vec<Work>,
}

impl VmReport {
    /// Returns whether it did what a VM should: it powered off, or was never started.
    pub fn is_orderly(&self) -> bool {
        self.stop_reason == StopReason::PowerOff.name() || self.state == VmState::Defined.name()
    }

    /// Interrupts that reached it through the hypervisor, on all harts.
    pub fn injected(&self) -> u64 {
        self.work.iter().map(|work| work.injected).sum()
    }

    /// Interrupts that it took without the hypervisor's help: its own count less the others.
    pub fn direct(&self) -> Option<u64> {
        Some(
            self.guest_interrupts?
                .total()
                .saturating_sub(self.injected()),
        )
    }

    /// Events of one kind on all harts.
    pub fn events(&self, event: &str) -> u64 {
        self.work
            .iter()
            .filter_map(|work| work.events.get(event))
            .sum()
    }

    /// Exits of one cause on all harts.
    pub fn exits(&self, cause: &str) -> u64 {
        self.work
            .iter()
            .filter_map(|work| work.exits.get(cause))
            .map(|exits| exits.count)
            .sum()
    }
}

/// A hart in a report. Times are in its cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartReport {
    /// The hart.
    pub hart: u32,
    /// Since it entered the hypervisor.
    pub elapsed: u64,
    /// With nothing to run.
    pub idle: u64,
    /// In the hypervisor and owed to no VM.
    pub scheduling: u64,
}

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Seconds since the hypervisor's entry.
    pub seconds: f64,
    /// The VMs.
    pub vms: Vec<VmReport>,
    /// The harts.
    pub harts: Vec<HartReport>,
    /// KiB of memory that the hypervisor has for itself, as its first line says, if that was seen.
    pub own_memory: Option<u64>,
}

impl Report {
    /// Exits of all VMs on all harts, by cause.
    pub fn exits_by_cause(&self) -> BTreeMap<&str, Exits> {
        let mut causes: BTreeMap<&str, Exits> = BTreeMap::new();
        let work = self.vms.iter().flat_map(|vm| &vm.work);
        for (cause, exits) in work.flat_map(|work| &work.exits) {
            let total = causes.entry(cause).or_default();
            total.count += exits.count;
            total.cycles += exits.cycles;
        }
        causes
    }
}

/// How many KiB of memory the hypervisor has for itself, by its line `[partita] … N KiB of memory used, …`.
pub fn own_memory(console: &str) -> Option<u64> {
    let before = console.split_once(" KiB of memory used")?.0;
    before.rsplit(' ').next()?.parse().ok()
}
