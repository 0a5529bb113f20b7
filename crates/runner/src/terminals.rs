//! Terminals: users who edit at a guest's console ports, and what they see of it from outside of the guest.
//!
//! A VM with `terminals` has a virtio console device (virtio 1.2, §5.3) with a port for each. At the other end of each
//! sits a [`User`], who waits for a prompt, thinks, sends a line, and waits for the next prompt. How long that took is
//! the response time, in machine time, with everything in it that lies between a keyboard and a screen: the device, its
//! interrupt, the vCPU's way to a hart, the guest's terminal driver, its shell and its editor.

mod record;
mod script;
#[cfg(test)]
mod tests;
mod user;

pub use record::{Record, Shared};
pub use user::User;

use crate::workloads::Guests;
use machine::device::{Clock, Console, Cycles, Random};
use std::sync::PoisonError;
use system::Habits;

/// The users of all VMs.
#[derive(Debug, Clone)]
pub struct Users {
    clock: Clock,
    vms: Vec<(String, Vec<Shared>)>,
}

impl Users {
    /// No users yet, at a machine with this clock.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            vms: Vec::new(),
        }
    }

    /// Puts users in front of a VM's terminals; what they do follows from `seed`.
    pub fn sit_down(&mut self, vm: &str, habits: Habits, seed: u64) -> Vec<Box<dyn Console>> {
        let mut random = Random::new(seed);
        let think = u64::try_from(habits.think.as_nanos()).unwrap_or(u64::MAX);
        let think = self.clock.cycles_in_nanoseconds(think);
        let mut records = Vec::new();
        let mut consoles: Vec<Box<dyn Console>> = Vec::new();
        for _ in 0..habits.count {
            let record = Shared::default();
            let user = User::new(habits.transactions, think, random.next(), record.clone());
            consoles.push(Box::new(user));
            records.push(record);
        }
        self.vms.push((String::from(vm), records));
        consoles
    }

    /// Adds what the users of each VM saw to the figures: their ends, the time for all of them, and quantiles of the
    /// response times.
    pub fn figures(&self, guests: &mut Guests) {
        let nanoseconds = |cycles: u64| self.clock.nanoseconds(Cycles(cycles));
        for (vm, records) in &self.vms {
            let records: Vec<Record> = records.iter().map(snapshot).collect();
            let mut responses: Vec<u64> = records
                .iter()
                .flat_map(|record| record.responses.iter().copied().map(nanoseconds))
                .collect();
            responses.sort_unstable();
            let first = records.iter().filter_map(|record| record.first).min();
            let Some(first) = first else { continue };
            let last = records.iter().map(|record| record.last).max();
            let elapsed = nanoseconds(last.unwrap_or(first).saturating_sub(first));
            guests.set(vm, "completions", responses.len() as f64);
            guests.set(vm, "elapsed-us", elapsed as f64 / 1e3);
            guests.set_responses(vm, &responses);
        }
    }

    /// Failures, for people: answers that were wrong, and users who did not come to their end.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (vm, records) in &self.vms {
            for (number, record) in records.iter().enumerate() {
                let record = snapshot(record);
                let wrong = record.wrong.iter();
                failures.extend(wrong.map(|what| format!("{vm}, terminal {number}: {what}")));
                if !record.left {
                    let done = record.responses.len();
                    failures.push(format!(
                        "{vm}, terminal {number}: the user still waits after {done} answers; does the guest's \
                         command line say partita.workload=tss?"
                    ));
                }
            }
        }
        failures
    }
}

fn snapshot(record: &Shared) -> Record {
    record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
