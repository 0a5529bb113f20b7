//! Costs of events, the hypervisor's own instructions, and uses of the guests' devices (paper 001).

use super::inputs::{Inputs, ratio};
use super::{Figures, Measure};
use crate::exit_latency::{LatencyKind, Row};
use crate::report::{Report, Work};
use abi::monitor::ExitCause;
use machine::monitor::{Counts, Event, Report as Monitor};

/// Adds the measures that need nothing but these inputs.
pub(super) fn costs(inputs: &Inputs<'_>, figures: &mut Figures) {
    for row in inputs.exit_latency {
        exit_latency(row, inputs, figures);
    }
    dispatches_and_pauses(inputs, figures);
    if let Some(report) = inputs.report {
        exits(report, figures);
    }
    if let Some(report) = inputs.hardware {
        events(inputs, report, figures);
        supervisor(report, inputs.report.is_none(), figures);
    }
}

/// Adds the latency of the exits of one cause, for each exit and for each event of the workload.
fn exit_latency(row: &Row, inputs: &Inputs<'_>, figures: &mut Figures) {
    if row.kind != LatencyKind::Exit {
        return;
    }
    let cause = row.cause.replace(", ", "-").replace(' ', "-");
    let cause = cause.to_lowercase();
    let ([_, instructions, _], [_, cycles, _]) = (row.instructions, row.cycles);
    for (family, per_event_family, mean) in [
        (
            Measure::ExitLatencyCycles,
            Measure::ExitLatencyCyclesPerEvent,
            cycles,
        ),
        (
            Measure::ExitLatencyInstructions,
            Measure::ExitLatencyInstructionsPerEvent,
            instructions,
        ),
    ] {
        figures.put_member(family, &cause, Some(mean as f64));
        let all = row.count.saturating_mul(mean);
        let report = inputs.hardware;
        let each = report.and_then(|report| per_event(all, inputs, report));
        figures.put_member(per_event_family, &cause, each);
    }
}

fn dispatches_and_pauses(inputs: &Inputs<'_>, figures: &mut Figures) {
    let rows = inputs.exit_latency;
    let all = rows
        .iter()
        .find(|row| row.kind == LatencyKind::Dispatch && row.cause == "all");
    let mean = all.map(|all| all.cycles[1] as f64);
    figures.put(Measure::DispatchLatencyCycles, mean);
    if let Some(report) = inputs.hardware
        && !rows.is_empty()
    {
        let pauses = rows.iter().filter(|row| row.kind == LatencyKind::Pauses);
        let waited: u64 = pauses.map(|row| row.count * row.cycles[1]).sum();
        let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
        let part = ratio(Some(100.0 * waited as f64), Some(cycles as f64));
        figures.put(Measure::HypervisorSpinning, part);
    }
}

/// Counts in the window, over the whole work and for each of its events.
fn per_event(count: u64, inputs: &Inputs<'_>, report: &Monitor) -> Option<f64> {
    let guests = inputs.guests;
    let events = guests.sum("events").or_else(|| guests.sum("reads"));
    let elapsed = guests.largest("elapsed-us").map(|time| time / 1e6);
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let harts = report.harts.len() as f64;
    let of_work = elapsed? * report.hertz as f64 * harts;
    let part = ratio(Some(count as f64), Some(cycles as f64))?;
    ratio(Some(part * of_work), events)
}

/// Adds the cost of exits by the hypervisor's own monitor.
fn exits(report: &Report, figures: &mut Figures) {
    let memory = report.own_memory.map(|kib| kib as f64);
    figures.put(Measure::HypervisorMemory, memory);
    let causes = report.exits_by_cause();
    for (cause, exits) in &causes {
        let mean = ratio(Some(exits.cycles as f64), Some(exits.count as f64));
        figures.put_member(Measure::ExitHandlingCycles, cause, mean);
    }
    let work = report.vms.iter().flat_map(|vm| &vm.work);
    let own: u64 = report.harts.iter().map(|hart| hart.scheduling).sum();
    let of_vms = |work: &Work| work.scheduling + work.simulation;
    let all = own + work.map(of_vms).sum::<u64>();
    let of_devices = [ExitCause::MmioVirtio, ExitCause::HostExternal];
    let cycles = of_devices.map(|cause| causes.get(cause.name()).map_or(0, |exits| exits.cycles));
    let devices: u64 = cycles.iter().sum();
    let share = ratio(Some(100.0 * devices as f64), Some(all as f64));
    figures.put(Measure::IoShare, share);
}

/// Adds the cost of an event.
fn events(inputs: &Inputs<'_>, report: &Monitor, figures: &mut Figures) {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let instructions: u64 = report.harts.iter().map(|hart| hart.instructions).sum();
    let busy = cycles.saturating_sub(report.total(Event::Waited));
    let disks = report
        .devices
        .iter()
        .filter(|device| device.kind == "block");
    figures.put(Measure::Disks, Some(disks.count() as f64));
    let each = |count| per_event(count, inputs, report);
    figures.put(Measure::CyclesPerEvent, each(busy));
    figures.put(Measure::InstructionsPerEvent, each(instructions));
}

/// Adds the time of the hypervisor's own instructions, and uses of the guests' devices. `native` says that HS mode is the guest's.
fn supervisor(report: &Monitor, native: bool, figures: &mut Figures) {
    let of_mode = |mode: &str, event: Event| -> u64 {
        let counts = report.harts.iter().filter_map(|hart| hart.modes.get(mode));
        let count = |counts: &Counts| counts.get(event.name()).copied();
        counts.filter_map(count).sum()
    };
    let modes = if native { ["HS", "U"] } else { ["VS", "VU"] };
    let guests: u64 = modes
        .map(|mode| of_mode(mode, Event::Instructions))
        .iter()
        .sum();
    let requests: u64 = report.devices.iter().map(|device| device.requests).sum();
    let frequency = ratio(Some(1e6 * requests as f64), Some(guests as f64));
    figures.put(Measure::IoPerMillionInstructions, frequency);
    let own = |event| of_mode("HS", event) as f64;
    let busy = own(Event::Cycles) - own(Event::Waited);
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let part = ratio(Some(100.0 * busy), Some(cycles as f64));
    figures.put(Measure::HypervisorTime, part);
    if native || !report.measured {
        return;
    }
    let misses: f64 = [Event::FetchMisses, Event::LoadMisses, Event::StoreMisses]
        .map(own)
        .iter()
        .sum();
    for (measure, part) in [
        (Measure::HypervisorCpi, busy),
        (Measure::HypervisorCacheMissRatio, 100.0 * misses),
        (Measure::HypervisorTlbMissRatio, 100.0 * own(Event::Walks)),
    ] {
        let ratio = ratio(Some(part), Some(own(Event::Instructions)));
        figures.put(measure, ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Guests;
    use machine::monitor::{DeviceReport, HartReport};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn counts(cycles: u64, instructions: u64, waited: u64) -> Counts {
        let counts = [
            (Event::Cycles, cycles),
            (Event::Instructions, instructions),
            (Event::Waited, waited),
            (Event::LoadMisses, instructions / 50),
            (Event::Walks, 0),
        ];
        counts
            .into_iter()
            .map(|(event, count)| (event.name().into(), count))
            .collect()
    }

    /// One hart at a megahertz, which has counted for a second: half of it waiting, a tenth in HS mode.
    fn monitor() -> Monitor {
        let modes = [
            ("HS".into(), counts(100_000, 80_000, 20_000)),
            ("VS".into(), counts(900_000, 200_000, 480_000)),
        ];
        let hart = HartReport {
            hart: 0,
            cycles: 1_000_000,
            instructions: 280_000,
            mean_instruction_picoseconds: None,
            total: counts(1_000_000, 280_000, 500_000),
            modes: modes.into_iter().collect(),
            virtual_machines: BTreeMap::new(),
            exits: BTreeMap::new(),
            exits_to_machine: BTreeMap::new(),
            traps: BTreeMap::new(),
            host_translations: 0,
        };
        let disk = DeviceReport {
            slot: 0,
            kind: "block".into(),
            requests: 40,
            errors: 0,
            bytes: 0,
            busy_cycles: 0,
            waited_cycles: 0,
        };
        Monitor {
            cycles: 1_000_000,
            hertz: 1_000_000,
            measured: true,
            memory_hash: String::new(),
            longest_hypervisor_stretch: None,
            harts: vec![hart],
            devices: vec![disk],
            definitions: BTreeMap::new(),
        }
    }

    fn figures(lines: &[&str], exit_latency: &[Row], report: Option<&Report>) -> Figures {
        let mut guests = Guests::default();
        for line in lines {
            guests.line("one", line, Duration::ZERO);
        }
        let inputs = Inputs {
            report,
            hardware: Some(&monitor()),
            storms: None,
            exit_latency,
            guests: &guests,
        };
        let mut figures = Figures::new();
        costs(&inputs, &mut figures);
        figures
    }

    /// The work took two seconds, of which one was the window.
    const WORK: &str =
        "exerciser: work completions=10 elapsed-us=2000000 completions-per-second=5.000 reads=80";

    fn an_exit() -> Report {
        let exits = crate::report::Exits {
            count: 40,
            cycles: 8000,
        };
        let work = Work {
            hart: 0,
            guest: 900_000,
            scheduling: 2000,
            simulation: 8000,
            dispatches: 0,
            calls: 0,
            injected: 0,
            exits: BTreeMap::from([(ExitCause::MmioVirtio.name().into(), exits)]),
            events: BTreeMap::new(),
        };
        Report {
            seconds: 1.0,
            vms: vec![crate::report::VmReport {
                name: String::from("one"),
                state: "running".into(),
                stop_reason: "none".into(),
                restarts: 0,
                guest_interrupts: None,
                work: vec![work],
            }],
            harts: Vec::new(),
            own_memory: None,
        }
    }

    #[test]
    fn event_cost_is_busy_time_per_event() {
        let lines = [WORK, "exerciser: work events=1000"];
        let figures = figures(&lines, &[], None);
        // Two million cycles, of which half were busy, for a thousand events.
        assert_eq!(figures.get(Measure::CyclesPerEvent), Some(1000.0));
        assert_eq!(figures.get(Measure::InstructionsPerEvent), Some(560.0));
    }

    #[test]
    fn reads_are_events_without_repetition() {
        let figures = figures(&[WORK], &[], None);
        assert_eq!(
            figures.get(Measure::CyclesPerEvent),
            Some(1_000_000.0 / 80.0)
        );
    }

    #[test]
    fn a_rare_round_trip_counts_as_rare() {
        let row = |kind, cause: &str, count| Row {
            kind,
            cause: String::from(cause),
            count,
            instructions: [60, 50, 90],
            cycles: [70, 100, 110],
        };
        let rows = [
            row(LatencyKind::Exit, "WFI, which waits", 4),
            row(LatencyKind::Dispatch, "SBI call", 4),
        ];
        let figures = figures(&[WORK], &rows, None);
        assert_eq!(
            figures.named("exit-latency-cycles.wfi-which-waits"),
            Some(100.0)
        );
        assert_eq!(
            figures.named("exit-latency-instructions.wfi-which-waits"),
            Some(50.0)
        );
        // Four in the second of the window, so eight in the work of eighty reads.
        assert_eq!(
            figures.named("exit-latency-cycles-per-event.wfi-which-waits"),
            Some(10.0)
        );
        assert!(figures.named("exit-latency-cycles.sbi-call").is_none());
    }

    #[test]
    fn hypervisor_instructions_are_those_of_hs_mode() {
        let report = an_exit();
        let figures = figures(&[WORK], &[], Some(&report));
        assert_eq!(figures.get(Measure::HypervisorTime), Some(8.0));
        assert_eq!(figures.get(Measure::HypervisorCpi), Some(1.0));
        assert_eq!(figures.get(Measure::Disks), Some(1.0));
        assert_eq!(figures.get(Measure::HypervisorCacheMissRatio), Some(2.0));
        assert_eq!(figures.get(Measure::HypervisorTlbMissRatio), Some(0.0));
        assert_eq!(figures.get(Measure::IoPerMillionInstructions), Some(200.0));
        assert_eq!(
            figures.named("exit-handling-cycles.mmio-virtio"),
            Some(200.0)
        );
        assert_eq!(figures.get(Measure::IoShare), Some(80.0));
    }

    #[test]
    fn natively_hs_mode_is_the_guests() {
        let figures = figures(&[WORK], &[], None);
        assert_eq!(figures.get(Measure::IoPerMillionInstructions), Some(500.0));
        assert!(figures.get(Measure::HypervisorCpi).is_none());
    }
}
