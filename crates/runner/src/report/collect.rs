//! Gathers reports out of a console's lines.

use super::{GuestInterrupts, HartReport, Report, VmReport, Work, own_memory};
use abi::monitor::{HartId, MonitorError, Reader, Record, VmId, WorkCounters};
use std::collections::BTreeMap;

/// Beginning of a guest's line for programs.
const GUEST_PREFIX: &str = "partita-guest ";

/// Beginning of the exerciser's last line if its exercise failed.
const EXERCISER_FAILED: &str = "exerciser: FAIL";
/// Beginning of every line of the exerciser.
const EXERCISER: &str = "exerciser: ";
/// Most failures of guests that are kept: a guest may write what it likes.
const MAX_FAILURES: usize = 100;

/// The parts of a report that has begun.
#[derive(Debug, Default)]
struct Parts {
    seconds: f64,
    vms: BTreeMap<VmId, VmReport>,
    harts: Vec<HartReport>,
    work: BTreeMap<(VmId, HartId), WorkCounters>,
}

/// Gathers what a run's console says.
#[derive(Debug, Default)]
pub struct Collector {
    reader: Reader,
    parts: Parts,
    report: Option<Report>,
    /// How many reports were whole.
    reports: usize,
    errors: Vec<MonitorError>,
    interrupts: BTreeMap<String, GuestInterrupts>,
    failures: Vec<String>,
    /// Last line of each VM's exerciser.
    said: BTreeMap<String, String>,
    own_memory: Option<u64>,
}

impl Collector {
    /// A collector that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a line of the console, which VM `owner` wrote if it is a guest's. True if it is part of a
    /// monitor's report and not for people.
    pub fn line(&mut self, owner: Option<&str>, line: &str) -> bool {
        if let Some(vm) = owner {
            self.guest_line(vm, line);
            return false;
        }
        match self.reader.line(line) {
            Ok(None) => {
                self.own_memory = self.own_memory.or_else(|| own_memory(line));
                false
            }
            Ok(Some(record)) => {
                self.record(record);
                true
            }
            Err(error) => {
                self.errors.push(error);
                true
            }
        }
    }

    /// The last report that was whole, with what the guests said.
    pub fn report(&self) -> Option<Report> {
        let mut report = self.report.clone()?;
        report.own_memory = self.own_memory;
        for vm in &mut report.vms {
            vm.guest_interrupts = self.interrupts.get(&vm.name).copied();
        }
        Some(report)
    }

    /// How many reports have been whole so far.
    pub const fn reports(&self) -> usize {
        self.reports
    }

    /// Lines of reports that were bad.
    pub fn errors(&self) -> &[MonitorError] {
        &self.errors
    }

    /// Failures that guests reported: a workload that failed, complaints of the kernel.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    fn fail(&mut self, failure: String) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(failure);
        }
    }

    fn guest_line(&mut self, vm: &str, line: &str) {
        if let Some(rest) = line.strip_prefix(EXERCISER_FAILED) {
            let before = self.said.remove(vm);
            let before = before.map_or_else(String::new, |said| format!(", after it said: {said}"));
            return self.fail(format!("{vm}: the exercise failed:{rest}{before}"));
        }
        if let Some(said) = line.strip_prefix(EXERCISER) {
            self.said.insert(String::from(vm), String::from(said));
            return;
        }
        let Some(fields) = line.strip_prefix(GUEST_PREFIX) else {
            return;
        };
        let mut words = fields.split_whitespace();
        let kind = words.next();
        let fields: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
        let number = |name| fields.get(name).and_then(|value| value.parse::<u64>().ok());
        match kind {
            Some("interrupts") => {
                if let (Some(timer), Some(ipi), Some(device)) =
                    (number("timer"), number("ipi"), number("device"))
                {
                    let interrupts = GuestInterrupts { timer, ipi, device };
                    self.interrupts.insert(String::from(vm), interrupts);
                }
            }
            Some("result") if fields.get("ok") != Some(&"yes") => {
                let workload = fields.get("workload").unwrap_or(&"?");
                self.fail(format!("{vm}: the workload {workload} failed"));
            }
            Some("job") if fields.get("ok") != Some(&"yes") => {
                let workload = fields.get("workload").unwrap_or(&"?");
                let number = fields.get("number").unwrap_or(&"?");
                self.fail(format!(
                    "{vm}: job {number} of the workload {workload} failed"
                ));
            }
            Some("end") if fields.get("ok") != Some(&"yes") => {
                self.fail(format!("{vm}: its work did not end well (ok=no)"));
            }
            Some("failed") => self.fail(format!("{vm}: {line}")),
            Some("complaints") if number("count") != Some(0) => {
                let count = fields.get("count").unwrap_or(&"?");
                self.fail(format!("{vm}: the kernel complained {count} times"));
            }
            _ => {}
        }
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Begin(header) => {
                let seconds = header.elapsed.0 as f64 / header.timebase as f64;
                self.parts = Parts {
                    seconds,
                    ..Parts::default()
                };
            }
            Record::Vm(record) => {
                let vm = VmReport {
                    name: String::from(record.name.as_str()),
                    state: record.state.name().into(),
                    stop_reason: record.stop_reason.name().into(),
                    restarts: record.restarts,
                    guest_interrupts: None,
                    work: Vec::new(),
                };
                self.parts.vms.insert(record.vm, vm);
            }
            Record::Hart(record) => self.parts.harts.push(HartReport {
                hart: record.hart.0,
                elapsed: record.counters.elapsed.0,
                idle: record.counters.idle.0,
                scheduling: record.counters.scheduling.0,
            }),
            Record::Work(record) => {
                let counters = self.parts.work.entry((record.vm, record.hart)).or_default();
                counters.guest = record.guest;
                counters.scheduling = record.scheduling;
                counters.dispatches = record.dispatches;
                counters.calls = record.calls;
                counters.injected = record.injected;
            }
            Record::Exits(record) => {
                let counters = self.parts.work.entry((record.vm, record.hart)).or_default();
                counters.add_exits(record.cause, record.count, record.cycles);
            }
            Record::Events(record) => {
                let counters = self.parts.work.entry((record.vm, record.hart)).or_default();
                counters.add_events(record.event, record.count);
            }
            Record::End => {
                self.report = Some(std::mem::take(&mut self.parts).finish());
                self.reports += 1;
            }
        }
    }
}

impl Parts {
    fn finish(mut self) -> Report {
        for ((vm, hart), counters) in &self.work {
            if let Some(vm) = self.vms.get_mut(vm) {
                vm.work.push(Work::new(*hart, counters));
            }
        }
        self.harts.sort_by_key(|hart| hart.hart);
        let vms = self.vms.into_values().collect();
        Report {
            seconds: self.seconds,
            vms,
            harts: self.harts,
            own_memory: None,
        }
    }
}
