//! Where a hart's cycles go: to a guest, to the handling of an exit, to scheduling, or to idling.
//!
//! Each account is charged with the cycles since the last charge, whatever it was, so that the accounts of a hart add up
//! to the cycles since it started, to the cycle.
//!
//! Only the hart itself writes to its accounts, so that counting takes a load and a store. Others read them.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::monitor::{Cycles, Event, ExitCause, HartCounters, WorkCounters};
use scheduler::VmId;

use crate::hart;

/// Whether anything is counted. Without it, the hypervisor is what the monitor's own cost is measured against.
const MONITORED: bool = !cfg!(feature = "unmonitored");

/// How often a reader looks again while the hart writes. A charge takes some ten instructions, so that a few times do.
const LOOKS: u32 = 1000;

/// A quantity that one hart alone adds to.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    /// Adds to it; on the hart that owns it.
    #[inline]
    fn add(&self, amount: u64) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value.wrapping_add(amount), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The accounts of one hart.
#[derive(Debug)]
pub struct Accounts {
    started: AtomicU64,
    charged_to: AtomicU64,
    idle: Counter,
    scheduling: Counter,
    work: Vec<Work>,
}

/// What a hart has done for one VM.
#[derive(Debug)]
struct Work {
    guest: Counter,
    scheduling: Counter,
    dispatches: Counter,
    calls: Counter,
    injected: Counter,
    exits: [Counter; ExitCause::COUNT],
    simulation: [Counter; ExitCause::COUNT],
    events: [Counter; Event::COUNT],
}

impl Work {
    fn new() -> Self {
        Self {
            guest: Counter::default(),
            scheduling: Counter::default(),
            dispatches: Counter::default(),
            calls: Counter::default(),
            injected: Counter::default(),
            exits: core::array::from_fn(|_| Counter::default()),
            simulation: core::array::from_fn(|_| Counter::default()),
            events: core::array::from_fn(|_| Counter::default()),
        }
    }

    fn read(&self) -> WorkCounters {
        let mut counters = WorkCounters::new();
        counters.guest = Cycles(self.guest.get());
        counters.scheduling = Cycles(self.scheduling.get());
        counters.dispatches = self.dispatches.get();
        counters.calls = self.calls.get();
        counters.injected = self.injected.get();
        let causes = ExitCause::ALL
            .into_iter()
            .zip(self.exits.iter().zip(&self.simulation));
        for (cause, (exits, simulation)) in causes {
            counters.add_exits(cause, exits.get(), Cycles(simulation.get()));
        }
        for (event, count) in Event::ALL.into_iter().zip(&self.events) {
            counters.add_events(event, count.get());
        }
        counters
    }
}

impl Accounts {
    /// Accounts of a hart that runs `vms` VMs.
    pub fn new(vms: usize) -> Self {
        Self {
            started: AtomicU64::new(0),
            charged_to: AtomicU64::new(0),
            idle: Counter::default(),
            scheduling: Counter::default(),
            work: (0..vms).map(|_| Work::new()).collect(),
        }
    }

    /// Starts counting.
    pub fn open(&self) {
        let now = hart::cycles();
        self.started.store(now, Ordering::Relaxed);
        self.charged_to.store(now, Ordering::Relaxed);
    }

    /// The cycles since the last charge, which are charged now.
    #[inline]
    fn since_last(&self) -> u64 {
        let now = hart::cycles();
        let passed = now.wrapping_sub(self.charged_to.load(Ordering::Relaxed));
        self.charged_to.store(now, Ordering::Relaxed);
        passed
    }

    /// Where to write what concerns `vm`, unless nothing is to be counted.
    #[inline]
    fn of(&self, vm: VmId) -> Option<&Work> {
        if MONITORED {
            self.work.get(vm.index())
        } else {
            None
        }
    }

    /// The guest has just been left: the time since the last charge was its own.
    pub fn charge_guest(&self, vm: VmId) {
        if let Some(work) = self.of(vm) {
            work.guest.add(self.since_last());
        }
    }

    /// An exit has been handled.
    pub fn charge_exit(&self, vm: VmId, cause: ExitCause) {
        let Some(work) = self.of(vm) else {
            return;
        };
        // A cause's number is below the arrays' length by construction; `get` keeps panics out of the exit path.
        if let (Some(exits), Some(simulation)) = (
            work.exits.get(cause.index()),
            work.simulation.get(cause.index()),
        ) {
            exits.add(1);
            simulation.add(self.since_last());
        }
    }

    /// A vCPU of `vm` has been chosen and made ready to enter, or has been put away.
    pub fn charge_scheduling(&self, vm: Option<VmId>) {
        match vm {
            Some(vm) => {
                if let Some(work) = self.of(vm) {
                    work.scheduling.add(self.since_last());
                }
            }
            None if MONITORED => self.scheduling.add(self.since_last()),
            None => {}
        }
    }

    /// The hart has waited with nothing to run.
    pub fn charge_idle(&self) {
        if MONITORED {
            self.idle.add(self.since_last());
        }
    }

    /// Counts a dispatch.
    pub fn count_dispatch(&self, vm: VmId) {
        if let Some(work) = self.of(vm) {
            work.dispatches.add(1);
        }
    }

    /// Counts something that happened to a vCPU of `vm`.
    pub fn count(&self, vm: VmId, event: Event) {
        // As for `charge_exit`.
        let events = self.of(vm).map(|work| &work.events);
        if let Some(count) = events.and_then(|events| events.get(event.index())) {
            count.add(1);
        }
    }

    /// Counts an SBI call of a guest.
    pub fn count_call(&self, vm: VmId) {
        if let Some(work) = self.of(vm) {
            work.calls.add(1);
        }
    }

    /// Counts an interrupt that the hypervisor delivered.
    pub fn count_injected(&self, vm: VmId) {
        if let Some(work) = self.of(vm) {
            work.injected.add(1);
        }
    }

    /// The counters as they stand: the hart's own, with the cycles since it started, and those for each VM.
    ///
    /// Another hart may read in the middle of a charge. Then the accounts do not add up, and it looks again.
    #[must_use]
    pub fn read(&self) -> (HartCounters, Vec<WorkCounters>) {
        let mut read = self.look();
        for _ in 0..LOOKS {
            if adds_up(&read) {
                break;
            }
            read = self.look();
        }
        read
    }

    fn look(&self) -> (HartCounters, Vec<WorkCounters>) {
        let work = self.work.iter().map(Work::read).collect();
        let charged_to = self.charged_to.load(Ordering::Relaxed);
        let started = self.started.load(Ordering::Relaxed);
        let own = HartCounters {
            // What is not yet charged is left out on both sides, so that the sum closes.
            elapsed: Cycles(charged_to.wrapping_sub(started)),
            idle: Cycles(self.idle.get()),
            scheduling: Cycles(self.scheduling.get()),
        };
        (own, work)
    }
}

/// Whether every cycle is on one account.
fn adds_up((own, work): &(HartCounters, Vec<WorkCounters>)) -> bool {
    let mut sum = own.idle.0.wrapping_add(own.scheduling.0);
    for counters in work {
        let simulation = ExitCause::ALL
            .into_iter()
            .map(|cause| counters.simulation(cause).0);
        let of_vm = [counters.guest.0, counters.scheduling.0]
            .into_iter()
            .chain(simulation);
        sum = of_vm.fold(sum, u64::wrapping_add);
    }
    sum == own.elapsed.0
}
