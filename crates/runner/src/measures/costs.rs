//! Costs of events, the hypervisor's own instructions, and uses of the guests' devices (paper 001).

use super::inputs::{Inputs, ratio};
use super::measure::{Better, Measure, measure};
use crate::exit_latency::{LatencyKind, Row};
use crate::report::{Report, Work};
use abi::monitor::ExitCause;
use machine::monitor::{Counts, Event, Report as Monitor};
use std::collections::BTreeMap;

/// The measures of this file.
pub(super) const COSTS: [Measure; 18] = [
    measure(
        "event-cycles",
        "cycles",
        Better::Less,
        "time of the harts for each event that a workload repeats",
        "Cycles in which harts did not wait / events, whoever had the cycles: the part of the harts' time that they were busy, by the hardware \
         monitor, x the work's elapsed time in cycles / the events that the exerciser counted (`event=`); where it repeats none, its \
         reads. The part is that of the steady window, where there is one (paper 001, table 1).",
    ),
    measure(
        "event-instructions",
        "",
        Better::Less,
        "instructions for each event that a workload repeats",
        "As event-cycles, with instructions retired in all modes in place of cycles.",
    ),
    measure(
        "event-expansion",
        "",
        Better::Less,
        "event-cycles under the hypervisor over those on the computer itself",
        "event-cycles / event-cycles of the native run of the same start phase: Tsv / Tsb of paper 001, table 1.",
    ),
    measure(
        "passage-cycles.",
        "cycles",
        Better::Less,
        "mean time from a guest's last instruction to its next, for one cause",
        "Cycles from the trap out of a guest to the return into the same guest, mean over the passages in the steady window whose cause the name \
         ends in, from the machine's events. Waits are left out. With --passages alone.",
    ),
    measure(
        "passage-instructions.",
        "",
        Better::Less,
        "the same in instructions",
        "As passage-cycles, with instructions retired in place of cycles.",
    ),
    measure(
        "passage-cycles-per-event.",
        "cycles",
        Better::Less,
        "time of all passages of one cause for each event of the workload",
        "Cycles of these passages / cycles of the steady window x the work's elapsed time in cycles / events, which are those of event-cycles: what is rare \
         counts as rare. With --passages alone.",
    ),
    measure(
        "passage-instructions-per-event.",
        "",
        Better::Less,
        "the same in instructions",
        "As passage-cycles-per-event, with instructions of these passages in place of their cycles.",
    ),
    measure(
        "dispatch-passage-cycles",
        "cycles",
        Better::Less,
        "mean time from a guest's last instruction to the next of another vCPU",
        "As passage-cycles, over the passages that end in another vCPU, whatever the guest was left for. Those from an idle hart are not in it. With --passages \
         alone.",
    ),
    measure(
        "hypervisor-pauses",
        "%",
        Better::Less,
        "part of the harts' time that the hypervisor waited for locks or for other harts",
        "Cycles of its waits in loops with PAUSE / cycles of all harts in the steady window. A wait counts from the look before its first PAUSE to its last. \
         With --passages alone, whose --json names each loop's address.",
    ),
    measure(
        "exit-cycles.",
        "cycles",
        Better::Less,
        "mean time of handling an exit, for one cause, as the hypervisor counts it",
        "The performance monitor's cycles of exits of the cause that the name ends in / their number. The trap itself and the way back are not in \
         it; passage-cycles has them.",
    ),
    measure(
        "io-share",
        "%",
        Better::Neither,
        "part of the hypervisor's time that simulated devices take",
        "100 x cycles of exits by accesses to virtio devices and by interrupts of the computer's devices / cycles of scheduling and of exits \
         (TIOcr of paper 001, fig. 1).",
    ),
    measure(
        "operations-per-million",
        "",
        Better::Neither,
        "operations of the devices for each million of the guests' instructions",
        "1,000,000 x requests that the virtio devices took / instructions retired in VS and VU mode, natively those in S and U mode, from the hardware \
         monitor (I/O frequency of paper 001, table 2).",
    ),
    measure(
        "hypervisor-time",
        "%",
        Better::Less,
        "part of the harts' time spent in HS mode",
        "100 x cycles in HS mode in which the hart did not wait / cycles, over all harts, from the hardware monitor: supervisor-state time of the \
         hypervisor (paper 001, §5.4). Natively it is the guest's.",
    ),
    measure(
        "hypervisor-instruction-time",
        "cycles",
        Better::Less,
        "mean time of an instruction of the hypervisor",
        "VMCP-MIET of paper 001, table 3: cycles in HS mode in which the hart did not wait / instructions retired there, from the hardware monitor.",
    ),
    measure(
        "hypervisor-cache-miss-ratio",
        "%",
        Better::Less,
        "first-level cache misses per instruction of the hypervisor",
        "VMCP-NIBR of paper 001, table 3: as cache-miss-ratio, in HS mode.",
    ),
    measure(
        "hypervisor-tlb-miss-ratio",
        "%",
        Better::Less,
        "translations that no TLB had, per instruction of the hypervisor",
        "VMCP-NITLBR of paper 001, table 3: as tlb-miss-ratio, in HS mode.",
    ),
    measure(
        "disks",
        "",
        Better::Neither,
        "disks of the computer",
        "The virtio disks that the hardware monitor tells of: what figure 7 of paper 001 has across, as far as each is a device of one VM.",
    ),
    measure(
        "hypervisor-memory",
        "KiB",
        Better::Less,
        "memory that the hypervisor has for itself",
        "What its first line says: its image with heap and first stack, the other stacks, the G-stage tables, and the areas of simulated and shared devices;          guests' memory is not in it. One without areas, of the same VMs, is the base of what areas cost (paper 001, fig. 7).",
    ),
];

/// The measures that need nothing but these inputs.
pub(super) fn costs(inputs: &Inputs<'_>, put: &mut impl FnMut(&str, Option<f64>)) {
    for row in inputs.passages {
        passage(row, put);
        if let Some(report) = inputs.hardware {
            passages_per_event(row, inputs, report, put);
        }
    }
    dispatches_and_pauses(inputs, put);
    if let Some(report) = inputs.report {
        exits(report, put);
    }
    if let Some(report) = inputs.hardware {
        events(inputs, report, put);
        supervisor(report, inputs.report.is_none(), put);
    }
}

fn passage(row: &Row, put: &mut impl FnMut(&str, Option<f64>)) {
    if row.kind != LatencyKind::Exit {
        return;
    }
    let name = name_of(row);
    let ([_, instructions, _], [_, cycles, _]) = (row.instructions, row.cycles);
    put(&format!("passage-cycles.{name}"), Some(cycles as f64));
    put(
        &format!("passage-instructions.{name}"),
        Some(instructions as f64),
    );
}

fn dispatches_and_pauses(inputs: &Inputs<'_>, put: &mut impl FnMut(&str, Option<f64>)) {
    let rows = inputs.passages;
    let all = rows
        .iter()
        .find(|row| row.kind == LatencyKind::Dispatch && row.cause == "all");
    if let Some(all) = all {
        put("dispatch-passage-cycles", Some(all.cycles[1] as f64));
    }
    if let Some(report) = inputs.hardware
        && !rows.is_empty()
    {
        let pauses = rows.iter().filter(|row| row.kind == LatencyKind::Pauses);
        let waited: u64 = pauses.map(|row| row.count * row.cycles[1]).sum();
        let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
        let part = ratio(Some(100.0 * waited as f64), Some(cycles as f64));
        put("hypervisor-pauses", part);
    }
}

/// The end of a measure's name for a passage's cause.
fn name_of(row: &Row) -> String {
    let name = row.cause.replace(", ", "-").replace(' ', "-");
    name.to_lowercase()
}

fn passages_per_event(
    row: &Row,
    inputs: &Inputs<'_>,
    report: &Monitor,
    put: &mut impl FnMut(&str, Option<f64>),
) {
    if row.kind != LatencyKind::Exit {
        return;
    }
    let name = name_of(row);
    let ([_, instructions, _], [_, cycles, _]) = (row.instructions, row.cycles);
    let of_all = |mean: u64| per_event(row.count.saturating_mul(mean), inputs, report);
    put(&format!("passage-cycles-per-event.{name}"), of_all(cycles));
    put(
        &format!("passage-instructions-per-event.{name}"),
        of_all(instructions),
    );
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

/// Exits by the hypervisor's own monitor.
fn exits(report: &Report, put: &mut impl FnMut(&str, Option<f64>)) {
    put("hypervisor-memory", report.own_memory.map(|kib| kib as f64));
    let work = || report.vms.iter().flat_map(|vm| &vm.work);
    let mut causes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (cause, exits) in work().flat_map(|work| &work.exits) {
        let total = causes.entry(cause).or_default();
        *total = (total.0 + exits.count, total.1 + exits.cycles);
    }
    for (cause, (count, cycles)) in &causes {
        let mean = ratio(Some(*cycles as f64), Some(*count as f64));
        put(&format!("exit-cycles.{cause}"), mean);
    }
    let own: u64 = report.harts.iter().map(|hart| hart.scheduling).sum();
    let of_vms = |work: &Work| work.scheduling + work.simulation;
    let all = own + work().map(of_vms).sum::<u64>();
    let of_devices = [ExitCause::MmioVirtio, ExitCause::HostExternal];
    let cycles = of_devices.map(|cause| causes.get(cause.name()).map_or(0, |exits| exits.1));
    let devices: u64 = cycles.iter().sum();
    put(
        "io-share",
        ratio(Some(100.0 * devices as f64), Some(all as f64)),
    );
}

/// Cost of an event.
fn events(inputs: &Inputs<'_>, report: &Monitor, put: &mut impl FnMut(&str, Option<f64>)) {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let instructions: u64 = report.harts.iter().map(|hart| hart.instructions).sum();
    let busy = cycles.saturating_sub(report.total(Event::Waited));
    let disks = report
        .devices
        .iter()
        .filter(|device| device.kind == "block");
    put("disks", Some(disks.count() as f64));
    put("event-cycles", per_event(busy, inputs, report));
    put(
        "event-instructions",
        per_event(instructions, inputs, report),
    );
}

/// Time of the hypervisor's own instructions, and uses of the guests' devices. `native` says that HS mode is the guest's.
fn supervisor(report: &Monitor, native: bool, put: &mut impl FnMut(&str, Option<f64>)) {
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
    put(
        "operations-per-million",
        ratio(Some(1e6 * requests as f64), Some(guests as f64)),
    );
    let own = |event| of_mode("HS", event) as f64;
    let busy = own(Event::Cycles) - own(Event::Waited);
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    put(
        "hypervisor-time",
        ratio(Some(100.0 * busy), Some(cycles as f64)),
    );
    if native || !report.measured {
        return;
    }
    let instructions = Some(own(Event::Instructions));
    put(
        "hypervisor-instruction-time",
        ratio(Some(busy), instructions),
    );
    let misses: f64 = [Event::FetchMisses, Event::LoadMisses, Event::StoreMisses]
        .map(own)
        .iter()
        .sum();
    put(
        "hypervisor-cache-miss-ratio",
        ratio(Some(100.0 * misses), instructions),
    );
    put(
        "hypervisor-tlb-miss-ratio",
        ratio(Some(100.0 * own(Event::Walks)), instructions),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Guests;
    use machine::monitor::{DeviceReport, HartReport};
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
            .map(|(event, count)| (event.name(), count))
            .collect()
    }

    /// One hart at a megahertz, which has counted for a second: half of it waiting, a tenth in HS mode.
    fn monitor() -> Monitor {
        let modes = [
            ("HS", counts(100_000, 80_000, 20_000)),
            ("VS", counts(900_000, 200_000, 480_000)),
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
            kind: "block",
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
            harts: vec![hart],
            devices: vec![disk],
            definitions: BTreeMap::new(),
        }
    }

    fn figures(lines: &[&str], passages: &[Row], report: Option<&Report>) -> BTreeMap<String, f64> {
        let mut guests = Guests::default();
        for line in lines {
            guests.line("one", line, Duration::ZERO);
        }
        let inputs = Inputs {
            report,
            hardware: Some(&monitor()),
            storms: None,
            passages,
            guests: &guests,
        };
        let mut figures = BTreeMap::new();
        costs(&inputs, &mut |name, value| {
            if let Some(value) = value {
                figures.insert(String::from(name), value);
            }
        });
        figures
    }

    /// The work took two seconds, of which one was the window.
    const WORK: &str = "exerciser: work ends=10 elapsed-us=2000000 ends-per-second=5.000 reads=80";

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
            exits: BTreeMap::from([(ExitCause::MmioVirtio.name(), exits)]),
            events: BTreeMap::new(),
        };
        Report {
            seconds: 1.0,
            vms: vec![crate::report::VmReport {
                name: String::from("one"),
                state: "running",
                reason: "none",
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
        assert_eq!(figures["event-cycles"], 1000.0);
        assert_eq!(figures["event-instructions"], 560.0);
    }

    #[test]
    fn reads_are_events_without_repetition() {
        let figures = figures(&[WORK], &[], None);
        assert_eq!(figures["event-cycles"], 1_000_000.0 / 80.0);
    }

    #[test]
    fn a_rare_passage_counts_as_rare() {
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
        assert_eq!(figures["passage-cycles.wfi-which-waits"], 100.0);
        assert_eq!(figures["passage-instructions.wfi-which-waits"], 50.0);
        // Four in the second of the window, so eight in the work of eighty reads.
        assert_eq!(figures["passage-cycles-per-event.wfi-which-waits"], 10.0);
        assert!(!figures.contains_key("passage-cycles.sbi-call"));
    }

    #[test]
    fn hypervisor_instructions_are_those_of_hs_mode() {
        let report = an_exit();
        let figures = figures(&[WORK], &[], Some(&report));
        assert_eq!(figures["hypervisor-time"], 8.0);
        assert_eq!(figures["hypervisor-instruction-time"], 1.0);
        assert_eq!(figures["disks"], 1.0);
        assert_eq!(figures["hypervisor-cache-miss-ratio"], 2.0);
        assert_eq!(figures["hypervisor-tlb-miss-ratio"], 0.0);
        assert_eq!(figures["operations-per-million"], 200.0);
        assert_eq!(figures["exit-cycles.mmio-virtio"], 200.0);
        assert_eq!(figures["io-share"], 80.0);
    }

    #[test]
    fn natively_hs_mode_is_the_guests() {
        let figures = figures(&[WORK], &[], None);
        assert_eq!(figures["operations-per-million"], 500.0);
        assert!(!figures.contains_key("hypervisor-instruction-time"));
    }
}
