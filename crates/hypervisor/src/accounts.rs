//! Where a hart's cycles go: to a guest, to the handling of an exit, to scheduling, or to idling.
//!
//! Each account is charged with the cycles since the last charge, whatever it was, so that the accounts of a hart add up
//! to the cycles since it started, to the cycle.

use alloc::vec::Vec;

use abi::monitor::{Cycles, Event, ExitCause, HartCounters, WorkCounters};
use scheduler::VmId;
use spin::Mutex;

use crate::hart;

/// The accounts of one hart.
#[derive(Debug, Default)]
pub struct Accounts {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    started: u64,
    charged_to: u64,
    hart: HartCounters,
    work: Vec<WorkCounters>,
}

impl Books {
    fn since_last(&mut self) -> Cycles {
        let now = hart::cycles();
        let passed = now.wrapping_sub(self.charged_to);
        self.charged_to = now;
        Cycles(passed)
    }

    fn of(&mut self, vm: VmId) -> Option<&mut WorkCounters> {
        self.work.get_mut(vm.index())
    }
}

impl Accounts {
    /// Starts counting, for `vms` VMs.
    pub fn open(&self, vms: usize) {
        let mut books = self.books.lock();
        books.work.resize(vms, WorkCounters::new());
        books.started = hart::cycles();
        books.charged_to = books.started;
    }

    /// The guest has just been left: the time since the last charge was its own.
    pub fn charge_guest(&self, vm: VmId) {
        let mut books = self.books.lock();
        let passed = books.since_last();
        if let Some(work) = books.of(vm) {
            work.guest += passed;
        }
    }

    /// An exit has been handled.
    pub fn charge_exit(&self, vm: VmId, cause: ExitCause) {
        let mut books = self.books.lock();
        let passed = books.since_last();
        if let Some(work) = books.of(vm) {
            work.exit(cause, passed);
        }
    }

    /// A vCPU of `vm` has been chosen and made ready to enter, or has been put away.
    pub fn charge_scheduling(&self, vm: Option<VmId>) {
        let mut books = self.books.lock();
        let passed = books.since_last();
        match vm {
            Some(vm) => {
                if let Some(work) = books.of(vm) {
                    work.scheduling += passed;
                }
            }
            None => books.hart.scheduling += passed,
        }
    }

    /// The hart has waited with nothing to run.
    pub fn charge_idle(&self) {
        let mut books = self.books.lock();
        let passed = books.since_last();
        books.hart.idle += passed;
    }

    /// Counts a dispatch.
    pub fn count_dispatch(&self, vm: VmId) {
        if let Some(work) = self.books.lock().of(vm) {
            work.dispatches = work.dispatches.wrapping_add(1);
        }
    }

    /// Counts something that happened to a vCPU of `vm`.
    pub fn count(&self, vm: VmId, event: Event) {
        if let Some(work) = self.books.lock().of(vm) {
            work.add_events(event, 1);
        }
    }

    /// Counts an SBI call of a guest.
    pub fn count_call(&self, vm: VmId) {
        if let Some(work) = self.books.lock().of(vm) {
            work.calls = work.calls.wrapping_add(1);
        }
    }

    /// Counts an interrupt that the hypervisor delivered.
    pub fn count_injected(&self, vm: VmId) {
        if let Some(work) = self.books.lock().of(vm) {
            work.injected = work.injected.wrapping_add(1);
        }
    }

    /// The counters as they stand: the hart's own, with the cycles since it started, and those for each VM.
    #[must_use]
    pub fn read(&self) -> (HartCounters, Vec<WorkCounters>) {
        let books = self.books.lock();
        let mut hart = books.hart;
        // What is not yet charged is left out on both sides, so that the sum closes.
        hart.elapsed = Cycles(books.charged_to.wrapping_sub(books.started));
        (hart, books.work.clone())
    }
}
