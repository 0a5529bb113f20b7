//! Account of a run: from its console's lines and its computer's end to its result.

use super::console::Line;
use crate::computer::End;
use crate::exit_latency::Row;
use crate::report::{Collector, Report};
use crate::storms::Storms;
use crate::workloads::Guests;
use abi::monitor::StopReason;
use abi::operator::POWERS_OFF;
use abi::system::VmName;
use machine::monitor::Report as Monitor;
use std::time::Duration;

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Finished,
    /// The run took longer than it may.
    TimeLimit,
    /// All guests waited, and nothing was to come.
    Waiting,
    /// The user broke it off.
    Interrupted,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// The performance monitor's last report.
    pub report: Option<Report>,
    /// Report of the machine's hardware monitor.
    pub monitor: Option<Monitor>,
    /// Accounts of the pause-loop exits, on a machine that has them.
    pub storms: Option<Storms>,
    /// The round trips through the hypervisor, where they were counted.
    pub exit_latency: Vec<Row>,
    /// Figures of the guests' workloads.
    pub guests: Guests,
    /// Failures, for people.
    pub failures: Vec<String>,
    /// The VMs that had not come to an end when the run did.
    pub unfinished: Vec<String>,
    /// First failure to write what the console says, which ended the run.
    pub unwritten: Option<std::io::Error>,
}

/// Account of a run that goes on.
#[derive(Debug, Default)]
pub struct Account {
    /// The VM that has the console at the start.
    focus: Option<String>,
    collector: Collector,
    /// Lines from before the hypervisor's first one; told if there never is one.
    firmware: Vec<String>,
    hypervisor_spoke: bool,
    /// The operator wanted everything to end.
    operator_ended: bool,
    failures: Vec<String>,
    monitor: Option<Monitor>,
    storms: Option<Storms>,
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

    /// How many reports of the performance monitor have come so far.
    pub const fn reports(&self) -> usize {
        self.collector.reports()
    }

    /// Returns whether a VM has the console.
    pub const fn has_focus(&self) -> bool {
        self.focus.is_some()
    }

    /// Returns whether the hypervisor has said anything yet.
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
                let said = text.split_once("] ").map_or("", |(_, said)| said);
                self.operator_ended |= said.trim_end() == POWERS_OFF;
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

    /// Counts the ends of a VM's jobs to this time.
    pub fn end_jobs(&mut self, vm: &str, at: Duration) {
        self.guests.end(vm, at);
    }

    /// Keeps how the computer ended.
    pub fn end(&mut self, end: End) {
        self.failures.extend(end.failure);
        self.monitor = end.monitor;
        self.storms = end.storms;
        if let Some(users) = end.users {
            users.figures(&mut self.guests);
            self.failures.extend(users.failures());
        }
    }

    /// Counts of the workload of a VM that ran alone, without a hypervisor, and its failures.
    pub fn judge_alone(mut self) -> (Guests, Vec<String>) {
        self.failures
            .extend(self.collector.failures().iter().cloned());
        (self.guests, self.failures)
    }

    /// Draws the conclusions.
    pub fn judge(mut self, ending: Ending) -> Outcome {
        let mut failures = std::mem::take(&mut self.failures);
        let mut unfinished = Vec::new();
        if !self.hypervisor_spoke {
            failures.push(String::from(
                "the hypervisor never spoke, so the firmware may be none (PARTITA_FIRMWARE names one) or the computer lacks \
                 what it needs; the console said:",
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
                // The escape key and the time limit end VMs that go on.
                let asked = self.operator_ended && ending == Ending::Finished;
                for vm in report.vms.iter().filter(|vm| !vm.is_orderly()) {
                    let (name, state, reason) = (&vm.name, &vm.state, &vm.stop_reason);
                    let goes_on = *reason == StopReason::None.name();
                    if goes_on {
                        unfinished.push(name.clone());
                    }
                    if !(goes_on && (asked || ending == Ending::TimeLimit)) {
                        failures.push(format!(
                            "{name} did not power off: {state}, reason {reason}"
                        ));
                    }
                }
            }
        }
        Outcome {
            ending,
            report,
            monitor: self.monitor,
            storms: self.storms,
            exit_latency: Vec::new(),
            guests: self.guests,
            failures,
            unfinished,
            unwritten: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::monitor::{self as records, Header, Ticks, VmId, VmRecord, VmState};

    /// An account of a run in which one VM goes on and the other has powered off.
    fn account(said: &[&str]) -> Account {
        let mut account = Account::default();
        let mut take = |line: &str| account.line(line, Duration::ZERO);
        take("[partita] hello");
        for line in said {
            take(line);
        }
        let mut text = String::new();
        let (timebase, elapsed) = (10_000_000, Ticks(10_000_000));
        let mut report = records::Report::default();
        let header = Header { timebase, elapsed };
        report.begin(&mut text, header).unwrap();
        let names = ["web", "database"];
        let ends = [
            (VmState::Running, StopReason::None),
            (VmState::Stopped, StopReason::PowerOff),
        ];
        for ((name, (state, reason)), number) in names.iter().zip(ends).zip(0..) {
            let (vm, restarts) = (VmId(number), 0);
            let name = VmName::new(name).unwrap();
            let record = VmRecord {
                vm,
                name,
                state,
                stop_reason: reason,
                restarts,
            };
            report.vm(&mut text, &record).unwrap();
        }
        report.end(&mut text).unwrap();
        for line in text.lines() {
            take(line);
        }
        account
    }

    #[test]
    fn escape_key_end_is_no_failure() {
        let left = account(&[&format!("[partita] {POWERS_OFF}")]).judge(Ending::Finished);
        assert_eq!(left.failures, Vec::<String>::new());
        assert_eq!(left.unfinished, ["web"]);
        // A guest cannot say it in the hypervisor's place.
        let other = account(&["[web] [partita] the operator powers off"]).judge(Ending::Finished);
        assert!(
            other.failures[0].contains("web did not power off"),
            "{:?}",
            other.failures
        );
    }

    #[test]
    fn the_time_limit_names_who_goes_on() {
        let limited = account(&[&format!("[partita] {POWERS_OFF}")]).judge(Ending::TimeLimit);
        assert_eq!(limited.unfinished, ["web"]);
        assert_eq!(limited.failures, Vec::<String>::new());
    }
}
