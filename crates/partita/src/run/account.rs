//! What is known of a run: what its console said, how its computer ended, and what follows from both.

use super::console::Line;
use super::session::Ending;
use crate::computer::End;
use crate::measures::Guests;
use crate::report::{Collector, Report};
use abi::system::VmName;
use machine::monitor::Report as Monitor;
use std::time::Duration;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// The performance monitor's last report.
    pub report: Option<Report>,
    /// What the hardware monitor counted, on the machine.
    pub monitor: Option<Monitor>,
    /// What the guests' workloads said of themselves.
    pub guests: Guests,
    /// What went wrong, for people.
    pub failures: Vec<String>,
}

/// What is known of a run while it goes on.
#[derive(Debug, Default)]
pub struct Account {
    /// The VM that has the console at the start.
    focus: Option<String>,
    collector: Collector,
    /// Lines from before the hypervisor's first one; told if there never is one.
    firmware: Vec<String>,
    hypervisor_spoke: bool,
    failures: Vec<String>,
    monitor: Option<Monitor>,
    guests: Guests,
}

impl Account {
    /// An account of a run in which this VM has the console.
    pub fn new(focus: Option<&VmName>) -> Self {
        Self {
            focus: focus.map(|name| String::from(name.as_str())),
            ..Self::default()
        }
    }

    /// An account of a run that goes on from a point at which the hypervisor had spoken.
    pub fn resumed() -> Self {
        Self {
            hypervisor_spoke: true,
            ..Self::default()
        }
    }

    /// The performance monitor's last report.
    pub fn report(&self) -> Option<Report> {
        self.collector.report()
    }

    /// Whether a VM has the console.
    pub const fn has_focus(&self) -> bool {
        self.focus.is_some()
    }

    /// Whether the hypervisor has said anything yet.
    pub const fn hypervisor_spoke(&self) -> bool {
        self.hypervisor_spoke
    }

    /// Keeps what a line of the console says that ended at this time since the computer was switched on. True if it is
    /// for people.
    pub fn line(&mut self, line: &str, at: Duration) -> bool {
        let for_programs = match Line::of(line) {
            Line::Guest { vm, text } => {
                self.guests.line(vm, text, at);
                self.collector.line(Some(vm), text)
            }
            Line::Bare(text) => match &self.focus {
                Some(vm) => {
                    self.guests.line(vm, text, at);
                    self.collector.line(Some(vm), text)
                }
                None => false,
            },
            Line::Hypervisor(text) => {
                self.hypervisor_spoke = true;
                self.collector.line(None, text)
            }
        };
        if !self.hypervisor_spoke {
            self.firmware.push(String::from(line));
        }
        !for_programs
    }

    /// Counts the ends of a VM's jobs from this time on.
    pub fn begin(&mut self, vm: &str, at: Duration) {
        self.guests.begin(vm, at);
    }

    /// Keeps how the computer ended.
    pub fn end(&mut self, end: End) {
        self.failures.extend(end.failure);
        self.monitor = end.monitor;
        if let Some(users) = end.users {
            users.figures(&mut self.guests);
            self.failures.extend(users.failures());
        }
    }

    /// What the workload counted of a VM that ran alone, without a hypervisor, and what went wrong.
    pub fn judge_alone(mut self) -> (Guests, Vec<String>) {
        self.failures
            .extend(self.collector.failures().iter().cloned());
        (self.guests, self.failures)
    }

    /// Draws the conclusions.
    pub fn judge(mut self, ending: Ending) -> Outcome {
        let mut failures = std::mem::take(&mut self.failures);
        if !self.hypervisor_spoke {
            failures.push(String::from(
                "the hypervisor never spoke; the console said:",
            ));
            failures.append(&mut self.firmware);
        }
        failures.extend(self.collector.errors().iter().map(ToString::to_string));
        failures.extend(self.collector.failures().iter().cloned());
        let report = self.collector.report();
        match &report {
            None => failures.push(String::from(
                "there is no report of the performance monitor",
            )),
            Some(report) => {
                for vm in report.vms.iter().filter(|vm| !vm.is_orderly()) {
                    let (name, state, reason) = (&vm.name, vm.state, vm.reason);
                    failures.push(format!(
                        "{name} did not power off: {state}, reason {reason}"
                    ));
                }
            }
        }
        Outcome {
            ending,
            report,
            monitor: self.monitor,
            guests: self.guests,
            failures,
        }
    }
}
