//! Accounts of a hart's cycles: guest, handling of exits, scheduling, idling.
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

/// Set if anything is counted. A build without counting is the baseline for the monitor's own cost.
const MONITORED: bool = !cfg!(feature = "unmonitored");

/// Tries of a reader while the hart writes. A charge takes some ten instructions, so that a few tries do.
const LOOKS: u32 = 16;

/// A quantity that one hart alone adds to.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    /// Adds to it; on the hart that owns it.
    #[inline]
    fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    /// Adds one to it, if anything is counted; on the hart that owns it.
    #[inline]
    fn count(&self) {
        if MONITORED {
            self.add(1);
        }
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The accounts of one hart, on cache lines that no other hart writes to.
#[derive(Debug)]
#[repr(align(64))]
pub struct Accounts {
    charged_to: Counter,
    started: Counter,
    idle: Counter,
    scheduling: Counter,
    work: Vec<Work>,
    /// Account for VMs that the system does not have: every VM has its place in `work`, and looking for it cannot panic.
    spare: Work,
    /// Cycles of what is not yet charged that another account has been charged with already.
    booked: Counter,
}

/// Work of a hart for one VM. The fields that every exit writes stand together.
#[derive(Debug)]
#[repr(C, align(64))]
struct Work {
    guest: Counter,
    scheduling: Counter,
    dispatches: Counter,
    calls: Counter,
    injected: Counter,
    exits: [Exits; ExitCause::COUNT],
    events: [Counter; Event::COUNT],
}

/// Exits for one cause: how many, and the cycles that they took.
#[derive(Debug, Default)]
struct Exits {
    count: Counter,
    simulation: Counter,
}

impl Work {
    fn new() -> Self {
        Self {
            guest: Counter::default(),
            scheduling: Counter::default(),
            dispatches: Counter::default(),
            calls: Counter::default(),
            injected: Counter::default(),
            exits: core::array::from_fn(|_| Exits::default()),
            events: core::array::from_fn(|_| Counter::default()),
        }
    }

    fn copy(&self, own: &Self) {
        let pairs = [
            (&self.guest, &own.guest),
            (&self.scheduling, &own.scheduling),
            (&self.dispatches, &own.dispatches),
            (&self.calls, &own.calls),
            (&self.injected, &own.injected),
        ];
        let exits = self.exits.iter().zip(&own.exits);
        let exits = exits.flat_map(|(copy, own)| {
            [
                (&copy.count, &own.count),
                (&copy.simulation, &own.simulation),
            ]
        });
        let events = self.events.iter().zip(&own.events);
        for (copy, counter) in pairs.into_iter().chain(exits).chain(events) {
            copy.set(counter.get());
        }
    }

    fn read(&self) -> WorkCounters {
        let mut counters = WorkCounters::new();
        counters.guest = Cycles(self.guest.get());
        counters.scheduling = Cycles(self.scheduling.get());
        counters.dispatches = self.dispatches.get();
        counters.calls = self.calls.get();
        counters.injected = self.injected.get();
        for (cause, exits) in ExitCause::ALL.into_iter().zip(&self.exits) {
            counters.add_exits(cause, exits.count.get(), Cycles(exits.simulation.get()));
        }
        for (event, count) in Event::ALL.into_iter().zip(&self.events) {
            counters.add_events(event, count.get());
        }
        counters
    }
}

/// The hart's clock, for [`CpuTime::charge_exit`].
#[inline]
pub fn clock() -> u64 {
    if MONITORED { hart::cycles() } else { 0 }
}

/// Account of a hart for one VM: looked up once for as long as a vCPU has the hart.
#[derive(Debug, Clone, Copy)]
pub struct CpuTime<'a> {
    hart: &'a Accounts,
    work: &'a Work,
}

impl CpuTime<'_> {
    /// An exit has been handled, for which the guest was left at `left_at`: the time before that was its own.
    #[inline]
    pub fn charge_exit(self, left_at: u64, cause: ExitCause) {
        if !MONITORED {
            return;
        }
        self.work.guest.add(self.hart.until(left_at));
        // A cause's number is below the array's length by construction; `get` keeps panics out of the exit path.
        if let Some(exits) = self.work.exits.get(cause.index()) {
            exits.count.add(1);
            exits.simulation.add(self.hart.until_now());
        }
    }

    /// A vCPU of the VM has been chosen and made ready to enter, or has been put away.
    #[inline]
    pub fn charge_scheduling(self) {
        if MONITORED {
            self.work.scheduling.add(self.hart.until_now());
        }
    }

    /// A piece of the VM has been loaded: the hypervisor's work for the VM, and not what its guest does.
    pub fn charge_loading(self) {
        self.charge_work(ExitCause::Loading);
    }

    /// Devices of the VM have been served before its guest is entered.
    pub fn charge_devices(self) {
        self.charge_work(ExitCause::HostExternal);
    }

    /// Charges work that no exit of the guest asked for.
    fn charge_work(self, cause: ExitCause) {
        if let (true, Some(exits)) = (MONITORED, self.work.exits.get(cause.index())) {
            exits.simulation.add(self.hart.until_now());
        }
    }

    /// Books cycles of work for devices of the VM that the hart has done beside whatever it was doing otherwise: they are the VM's, not those of
    /// whose guest was left for it.
    pub fn book_devices(self, cycles: u64) {
        if let (true, Some(exits)) = (
            MONITORED,
            self.work.exits.get(ExitCause::HostExternal.index()),
        ) {
            exits.simulation.add(cycles);
            self.hart.booked.add(cycles);
        }
    }

    /// Since `began` (of [`clock`]) the hart has forwarded interrupts of the VM or has taken them, whatever it was doing
    /// otherwise: the time is the VM's, not that of whose guest was left for it.
    pub fn book_forwarding(self, began: u64) {
        if let (true, Some(exits)) = (
            MONITORED,
            self.work.exits.get(ExitCause::GuestExternal.index()),
        ) {
            let passed = clock().wrapping_sub(began);
            exits.simulation.add(passed);
            self.hart.booked.add(passed);
        }
    }

    /// Counts a dispatch.
    #[inline]
    pub fn count_dispatch(self) {
        self.work.dispatches.count();
    }

    /// Counts something that happened to a vCPU of the VM.
    #[inline]
    pub fn count(self, event: Event) {
        // As for `charge_exit`.
        if let Some(count) = self.work.events.get(event.index()) {
            count.count();
        }
    }

    /// Counts something that happened to the VM several times.
    #[inline]
    pub fn count_times(self, event: Event, times: u64) {
        if let (true, Some(count)) = (MONITORED, self.work.events.get(event.index())) {
            count.add(times);
        }
    }

    /// Counts an SBI call of the guest.
    #[inline]
    pub fn count_call(self) {
        self.work.calls.count();
    }

    /// Counts an interrupt that the hypervisor delivered.
    #[inline]
    pub fn count_injected(self) {
        self.work.injected.count();
    }
}

/// Beginning of work whose cycles are booked when it ends.
#[derive(Debug, Clone, Copy)]
pub struct Booking {
    clock: u64,
    booked: u64,
}

impl Accounts {
    /// Begins work whose cycles are booked when it ends. Nothing is charged before that.
    #[must_use]
    pub fn begin_booking(&self) -> Booking {
        Booking {
            clock: clock(),
            booked: self.booked.get(),
        }
    }

    /// Cycles since `began`, except those that other work has booked meanwhile.
    #[must_use]
    pub fn cycles_since(&self, began: Booking) -> u64 {
        let passed = clock().wrapping_sub(began.clock);
        passed.saturating_sub(self.booked.get().wrapping_sub(began.booked))
    }

    /// The bytes that the accounts of one hart take for so many VMs, beside themselves.
    #[must_use]
    pub const fn bytes(vms: usize) -> usize {
        vms * size_of::<Work>()
    }

    /// Accounts of a hart that runs `vms` VMs.
    pub fn new(vms: usize) -> Self {
        Self {
            charged_to: Counter::default(),
            started: Counter::default(),
            idle: Counter::default(),
            scheduling: Counter::default(),
            work: (0..vms).map(|_| Work::new()).collect(),
            spare: Work::new(),
            booked: Counter::default(),
        }
    }

    /// Makes these accounts a copy of those of the calling hart, which charges nothing meanwhile. Others read the copy when the hart has told them.
    pub fn copy(&self, own: &Self) {
        let pairs = [
            (&self.charged_to, &own.charged_to),
            (&self.started, &own.started),
            (&self.idle, &own.idle),
            (&self.scheduling, &own.scheduling),
            (&self.booked, &own.booked),
        ];
        for (copy, counter) in pairs {
            copy.set(counter.get());
        }
        for (copy, work) in self.work.iter().zip(&own.work) {
            copy.copy(work);
        }
    }

    /// Starts counting.
    pub fn open(&self) {
        let now = hart::cycles();
        self.started.set(now);
        self.charged_to.set(now);
    }

    /// Account for `vm`.
    #[inline]
    #[must_use]
    pub fn of(&self, vm: VmId) -> CpuTime<'_> {
        CpuTime {
            hart: self,
            work: self.work.get(vm.index()).unwrap_or(&self.spare),
        }
    }

    /// The cycles from the last charge until `now`, which are charged now.
    #[inline]
    fn until(&self, now: u64) -> u64 {
        let passed = now.wrapping_sub(self.charged_to.get());
        self.charged_to.set(now);
        passed
    }

    #[inline]
    fn until_now(&self) -> u64 {
        let passed = self.until(hart::cycles());
        let booked = self.booked.get();
        if booked != 0 {
            self.booked.set(0);
        }
        passed.wrapping_sub(booked)
    }

    /// The hart has looked for something to run in vain.
    pub fn charge_scheduling(&self) {
        if MONITORED {
            self.scheduling.add(self.until_now());
        }
    }

    /// The hart has waited with nothing to run.
    pub fn charge_idle(&self) {
        if MONITORED {
            self.idle.add(self.until_now());
        }
    }

    /// The counters as they stand: the hart's own, with the cycles since it started, and those for each VM.
    ///
    /// Another hart may read in the middle of a charge. Then the accounts do not add up, and it looks again. Where the hart charges more often than
    /// it can be read, because it changes vCPUs all the time, each account is as it was at some moment of the last look, and the cycles are their sum.
    ///
    /// Allocates nothing if `work` has room for all VMs.
    pub fn read_into(&self, work: &mut Vec<WorkCounters>) -> HartCounters {
        let mut own = self.read_once(work);
        for _ in 0..LOOKS {
            if sum(&own, work) == own.elapsed {
                return own;
            }
            own = self.read_once(work);
        }
        own.elapsed = sum(&own, work);
        own
    }

    /// The counters, as [`read_into`](Self::read_into) reads them.
    #[cfg(test)]
    #[must_use]
    pub fn read(&self) -> (HartCounters, Vec<WorkCounters>) {
        let mut work = Vec::new();
        (self.read_into(&mut work), work)
    }

    fn read_once(&self, work: &mut Vec<WorkCounters>) -> HartCounters {
        work.clear();
        work.extend(self.work.iter().map(Work::read));
        let (charged_to, started) = (self.charged_to.get(), self.started.get());
        HartCounters {
            // What is not yet charged is left out on both sides, so that the sum closes.
            elapsed: Cycles(
                charged_to
                    .wrapping_sub(started)
                    .wrapping_add(self.booked.get()),
            ),
            idle: Cycles(self.idle.get()),
            scheduling: Cycles(self.scheduling.get()),
        }
    }
}

/// Sum of all accounts.
fn sum(own: &HartCounters, work: &[WorkCounters]) -> Cycles {
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
    Cycles(sum)
}

#[cfg(test)]
mod tests;
