//! The performance monitor's report in Prometheus' text format (version 0.0.4), which OpenMetrics' readers take too.

use crate::report::{Report, VmReport, Work};
use std::fmt::Write;

/// Media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A family of samples.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

impl Family {
    fn new(name: &'static str, kind: &'static str, help: &'static str) -> Self {
        let samples = String::new();
        Self {
            name,
            kind,
            help,
            samples,
        }
    }

    /// Adds a sample with these labels, whose values are names that need no escapes.
    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let labels = match &labels[..] {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        // A text takes whatever is written.
        let _ = writeln!(self.samples, "{}{labels} {value}", self.name);
    }
}

/// The text of a report.
pub fn text(report: &Report) -> String {
    let mut families = vec![uptime(report)];
    families.extend(of_harts(report));
    families.extend(of_vms(report));
    families.extend(of_work(report));
    families.extend(of_exits(report));
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let Family {
            name,
            kind,
            help,
            samples,
        } = family;
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
    }
    text
}

fn uptime(report: &Report) -> Family {
    let mut family = Family::new(
        "partita_uptime_seconds",
        "gauge",
        "Time since the hypervisor's entry.",
    );
    family.sample(&[], report.seconds);
    family
}

fn of_harts(report: &Report) -> [Family; 4] {
    let mut elapsed = Family::new(
        "partita_hart_cycles_total",
        "counter",
        "Cycles of the hart since it entered the hypervisor.",
    );
    let mut idle = Family::new(
        "partita_hart_idle_cycles_total",
        "counter",
        "Cycles of the hart with nothing to run.",
    );
    let mut scheduling = Family::new(
        "partita_hart_scheduling_cycles_total",
        "counter",
        "Cycles of the hart in the hypervisor that are owed to no VM.",
    );
    let mut memory = Family::new(
        "partita_hypervisor_memory_bytes",
        "gauge",
        "Memory that the hypervisor has for itself.",
    );
    for hart in &report.harts {
        let number = hart.hart.to_string();
        let labels = [("hart", number.as_str())];
        elapsed.sample(&labels, hart.elapsed);
        idle.sample(&labels, hart.idle);
        scheduling.sample(&labels, hart.scheduling);
    }
    if let Some(kibibytes) = report.own_memory {
        memory.sample(&[], kibibytes.saturating_mul(1 << 10));
    }
    [elapsed, idle, scheduling, memory]
}

fn of_vms(report: &Report) -> [Family; 2] {
    let mut state = Family::new("partita_vm_state", "gauge", "1 for the state of the VM.");
    let mut restarts = Family::new(
        "partita_vm_restarts_total",
        "counter",
        "Times that the VM was started again.",
    );
    for vm in &report.vms {
        state.sample(&[("vm", &vm.name), ("state", &vm.state)], 1);
        restarts.sample(&[("vm", &vm.name)], vm.restarts);
    }
    [state, restarts]
}

/// Work of all harts for all VMs, each with the hart's number as a text.
fn work(report: &Report) -> impl Iterator<Item = (&VmReport, String, &Work)> {
    let vms = report.vms.iter();
    vms.flat_map(|vm| {
        let work = vm.work.iter();
        work.map(move |work| (vm, work.hart.to_string(), work))
    })
}

fn of_work(report: &Report) -> [Family; 4] {
    let mut cycles = Family::new(
        "partita_vm_cycles_total",
        "counter",
        "Cycles of the hart for the VM: in the guest, for the choice and the change of its vCPUs, and for the handling of its exits.",
    );
    let mut dispatches = Family::new(
        "partita_dispatches_total",
        "counter",
        "Times that a vCPU of the VM was given the hart.",
    );
    let mut calls = Family::new(
        "partita_sbi_calls_total",
        "counter",
        "SBI calls of the VM on the hart.",
    );
    let mut injected = Family::new(
        "partita_injected_interrupts_total",
        "counter",
        "Interrupts that reached the VM through the hypervisor.",
    );
    for (vm, hart, work) in work(report) {
        let labels = [("vm", vm.name.as_str()), ("hart", hart.as_str())];
        let parts = [
            ("guest", work.guest),
            ("scheduling", work.scheduling),
            ("exits", work.simulation),
        ];
        for (part, value) in parts {
            cycles.sample(&[labels[0], labels[1], ("in", part)], value);
        }
        dispatches.sample(&labels, work.dispatches);
        calls.sample(&labels, work.calls);
        injected.sample(&labels, work.injected);
    }
    [cycles, dispatches, calls, injected]
}

fn of_exits(report: &Report) -> [Family; 3] {
    let mut exits = Family::new(
        "partita_exits_total",
        "counter",
        "Exits of the VM on the hart, by cause.",
    );
    let mut cycles = Family::new(
        "partita_exit_handling_cycles_total",
        "counter",
        "Cycles that the handling of these exits took.",
    );
    let mut events = Family::new(
        "partita_events_total",
        "counter",
        "Events of the hypervisor and the scheduler for the VM on the hart.",
    );
    for (vm, hart, work) in work(report) {
        let labels = [("vm", vm.name.as_str()), ("hart", hart.as_str())];
        for (cause, of_cause) in &work.exits {
            let labels = [labels[0], labels[1], ("cause", cause)];
            exits.sample(&labels, of_cause.count);
            cycles.sample(&labels, of_cause.cycles);
        }
        for (event, count) in &work.events {
            events.sample(&[labels[0], labels[1], ("event", event)], count);
        }
    }
    [exits, cycles, events]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Exits, HartReport, Name};
    use std::collections::{BTreeMap, BTreeSet};

    /// A report with a sample of every family.
    fn report() -> Report {
        let exits = Exits {
            count: 7,
            cycles: 900,
        };
        let work = Work {
            hart: 2,
            guest: 10,
            scheduling: 11,
            simulation: 12,
            dispatches: 13,
            calls: 14,
            injected: 15,
            exits: BTreeMap::from([(Name::from("wfi"), exits)]),
            events: BTreeMap::from([(Name::from("tlb-purged"), 3)]),
        };
        let vm = VmReport {
            name: String::from("web"),
            state: Name::from("running"),
            stop_reason: Name::from("none"),
            restarts: 1,
            guest_interrupts: None,
            work: vec![work],
        };
        let hart = HartReport {
            hart: 2,
            elapsed: 100,
            idle: 40,
            scheduling: 5,
        };
        Report {
            seconds: 1.5,
            vms: vec![vm],
            harts: vec![hart],
            own_memory: Some(2),
        }
    }

    #[test]
    fn every_sample_has_help_and_type() {
        let text = text(&report());
        for line in [
            "partita_uptime_seconds 1.5",
            "partita_hart_idle_cycles_total{hart=\"2\"} 40",
            "partita_hypervisor_memory_bytes 2048",
            "partita_vm_state{vm=\"web\",state=\"running\"} 1",
            "partita_vm_cycles_total{vm=\"web\",hart=\"2\",in=\"exits\"} 12",
            "partita_exits_total{vm=\"web\",hart=\"2\",cause=\"wfi\"} 7",
            "partita_events_total{vm=\"web\",hart=\"2\",event=\"tlb-purged\"} 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}:\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# HELP {name} ")), "{line}");
            let kind = match name.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{line}");
        }
    }

    /// The words of a text that begin with `start`, each of small letters and underscores.
    fn words<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
        text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_')
            .filter(move |word| word.starts_with(start))
    }

    #[test]
    fn dashboard_names_exported_metrics_and_labels() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/grafana/partita.json"
        );
        let dashboard: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let text = text(&report());
        let exported: BTreeSet<&str> = words(&text, "partita_").collect();
        let mut shown = BTreeSet::new();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap());
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            let names: BTreeSet<&str> = words(expression, "partita_").collect();
            assert!(!names.is_empty(), "{expression}");
            assert!(names.is_subset(&exported), "{expression}");
            // Every label of the legend is one that the samples of these names have.
            let legend = target["legendFormat"].as_str().unwrap();
            for label in legend.split("{{").skip(1) {
                let label = label.split("}}").next().unwrap();
                let has_label = |line: &&str| {
                    let name = line.split('{').next().unwrap_or_default();
                    names.contains(name) && line.contains(&format!("{label}=\""))
                };
                assert!(
                    text.lines().any(|line| has_label(&line)),
                    "{legend}: {label}"
                );
            }
            shown.extend(names);
        }
        // Nothing that is exported is left out.
        let families = text.lines().filter(|line| line.starts_with("# TYPE"));
        assert_eq!(shown.len(), families.count(), "{shown:?}");
        let variables = dashboard["templating"].to_string();
        assert!(words(&variables, "partita_").all(|name| exported.contains(name)));
    }
}
