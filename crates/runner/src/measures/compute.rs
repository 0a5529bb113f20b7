//! From reports to figures.

use super::inputs::{Inputs, ratio};
use super::{Figures, Measure, costs, pause_loops};
use crate::report::{Report, Work};
use crate::workloads::Guests;
use abi::monitor::{Event as Counted, ExitCause};
use machine::monitor::Event;
use std::collections::BTreeMap;

/// Every measure that can be computed. A measure whose parts are not known is left out, rather than shown as zero.
pub fn compute(inputs: &Inputs<'_>) -> Figures {
    let mut figures = Figures::new();
    let guests = inputs.guests;
    workloads(guests, &mut figures);
    pause_loops::pause_loops(inputs, &mut figures);
    let waited = inputs.hardware.map_or(0, guests_waits);
    let busy = inputs
        .report
        .map(|report| hypervisor(report, waited, &mut figures));
    let busy = busy.or_else(|| inputs.hardware.and_then(native_busy));
    figures.put(Measure::Busy, busy.map(|part| part * 100.0));
    let throughput = figures.get(Measure::Throughput);
    figures.put(Measure::CompletionsPerBusySecond, ratio(throughput, busy));
    if let Some(report) = inputs.hardware {
        hardware(report, &mut figures);
        let seconds = busy_cycles(report) / report.hertz as f64;
        let each = ratio(Some(seconds * 1e6), figures.get(Measure::Completions));
        figures.put(Measure::CpuTimePerCompletion, each);
    }
    costs::costs(inputs, &mut figures);
    figures
}

/// The measures that compare a run with the native one of the same work: [`Measure::RELATIVE`].
pub fn relative(run: &Figures, native: &Figures) -> Figures {
    let part = |measure| ratio(run.get(measure), native.get(measure));
    let mut figures = Figures::new();
    let throughput = part(Measure::Throughput);
    let per_cent = throughput.map(|part| part * 100.0);
    figures.put(Measure::RelativeThroughput, per_cent);
    // Time for a completion is the reciprocal of throughput: real time of the external, processor time of the internal.
    let expansion = |part: f64| (1.0 / part - 1.0) * 100.0;
    figures.put(Measure::ElapsedTimeExpansion, throughput.map(expansion));
    let of_busy_time = part(Measure::CompletionsPerBusySecond);
    figures.put(Measure::CpuTimeExpansion, of_busy_time.map(expansion));
    figures.put(Measure::EventSlowdown, part(Measure::CyclesPerEvent));
    figures
}

/// Adds what the guests' workloads counted.
fn workloads(guests: &Guests, figures: &mut Figures) {
    let completions = guests.sum("completions");
    let elapsed = guests.largest("elapsed-us").map(|time| time / 1e6);
    figures.put(Measure::Completions, completions);
    figures.put(Measure::Elapsed, elapsed);
    figures.put(Measure::Throughput, ratio(completions, elapsed));
    for (vm, completions, elapsed) in guests.throughputs() {
        let own = ratio(Some(completions), Some(elapsed / 1e6));
        figures.put_member(Measure::VmThroughput, vm, own);
    }
    for (measure, name, unit) in [
        (Measure::ResponseP50, "response-ns.p50", 1e6),
        (Measure::ResponseP99, "response-ns.p99", 1e6),
        (Measure::ResponseP999, "response-ns.p99.9", 1e6),
        (Measure::LockWaitP99, "lock-wait-ns.p99", 1e3),
    ] {
        let time = guests.largest(name).map(|time| time / unit);
        figures.put(measure, time);
    }
    let spins = guests.sum("spins");
    figures.put(Measure::Spins, spins);
    figures.put(Measure::PollsPerSpin, ratio(guests.sum("polls"), spins));
    figures.put(Measure::ExcessiveSpins, guests.sum("excessive"));
    figures.put(Measure::OutOfOrderAcquisitions, guests.sum("out-of-order"));
    figures.put(Measure::OfflineCpus, guests.sum("off-line"));
}

/// Cycles that guests waited in WFI and WRS with their harts: no other vCPU wanted them, so nothing trapped.
fn guests_waits(report: &machine::monitor::Report) -> u64 {
    let harts = report.harts.iter();
    let guests = harts.flat_map(|hart| hart.virtual_machines.values());
    guests
        .flat_map(|guest| [&guest.supervisor, &guest.user])
        .filter_map(|counts| counts.get(Event::Waited.name()))
        .sum()
}

/// Adds the performance monitor's measures; returns the part of the harts' time that they were busy. `waited` are the cycles
/// in guests in which they only waited.
fn hypervisor(report: &Report, waited: u64, figures: &mut Figures) -> f64 {
    let work = || report.vms.iter().flat_map(|vm| &vm.work);
    let sum = |count: fn(&Work) -> u64| work().map(count).sum::<u64>() as f64;
    let whole = report.harts.iter().map(|hart| hart.elapsed).sum::<u64>() as f64;
    let idle = report.harts.iter().map(|hart| hart.idle).sum::<u64>() as f64;
    let own = report.harts.iter().map(|hart| hart.scheduling).sum::<u64>() as f64;
    let guest = sum(|work| work.guest);
    let waited = (waited as f64).min(guest);
    let (guest, idle) = (guest - waited, idle + waited);
    let scheduling = sum(|work| work.scheduling) + own;
    let simulation = sum(|work| work.simulation);
    let per_cent = |part: f64| ratio(Some(part * 100.0), Some(whole));
    figures.put(Measure::GuestUtilisation, per_cent(guest));
    figures.put(Measure::SchedulingOverhead, per_cent(scheduling));
    figures.put(Measure::SimulationOverhead, per_cent(simulation));
    figures.put(Measure::Idle, per_cent(idle));
    figures.put(Measure::Uptime, Some(report.seconds));
    let dispatches = Some(sum(|work| work.dispatches));
    let rate = ratio(dispatches, Some(report.seconds));
    figures.put(Measure::DispatchesPerSecond, rate);
    let busy = (guest + scheduling + simulation) / whole;
    exits(report, whole, busy, figures);
    events(report, figures);
    busy
}

/// Adds the measures of exits. `whole` are the harts' cycles, of which they were busy for the part `busy`.
fn exits(report: &Report, whole: f64, busy: f64, figures: &mut Figures) {
    let a_second = |count: f64| ratio(Some(count), Some(report.seconds));
    let causes = report.exits_by_cause();
    let all: u64 = causes.values().map(|exits| exits.count).sum();
    figures.put(Measure::ExitsPerSecond, a_second(all as f64));
    for (cause, exits) in &causes {
        let rate = a_second(exits.count as f64);
        figures.put_member(Measure::CauseExitsPerSecond, cause, rate);
        let share = ratio(Some(exits.cycles as f64 * 100.0), Some(whole));
        figures.put_member(Measure::CauseOverhead, cause, share);
    }
    let count = |cause: ExitCause| causes.get(cause.name()).map_or(0, |exits| exits.count);
    let calls = count(ExitCause::WrsNto) + count(ExitCause::SbiPartita);
    let rate = ratio(Some(calls as f64), Some(busy * report.seconds));
    figures.put(Measure::SpinExitsPerBusySecond, rate);
}

/// Adds the hypervisor's counts of events.
fn events(report: &Report, figures: &mut Figures) {
    let work = report.vms.iter().flat_map(|vm| &vm.work);
    let mut events: BTreeMap<&str, u64> = BTreeMap::new();
    for (event, count) in work.flat_map(|work| &work.events) {
        *events.entry(event).or_default() += count;
    }
    for (event, count) in &events {
        figures.put_member(Measure::Events, event, Some(*count as f64));
    }
    let count = |event: Counted| events.get(event.name()).copied().unwrap_or_default() as f64;
    let (fast, general) = (count(Counted::RequestFast), count(Counted::RequestGeneral));
    let hits = ratio(Some(fast * 100.0), Some(fast + general));
    figures.put(Measure::FastPathRatio, hits);
}

/// Cycles of all harts in which they did not wait, of guests and hypervisor together.
fn busy_cycles(report: &machine::monitor::Report) -> f64 {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    cycles.saturating_sub(report.total(Event::Waited)) as f64
}

/// The part of the harts' time that a computer without a hypervisor was busy.
fn native_busy(report: &machine::monitor::Report) -> Option<f64> {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    ratio(Some(busy_cycles(report)), Some(cycles as f64))
}

/// Interrupts that are taken in HS-mode: their names in measures, and in the machine. VS-mode's have names of their own.
const HOST_INTERRUPTS: [(&str, &str); 4] = [
    ("software", "supervisor software interrupt"),
    ("timer", "supervisor timer interrupt"),
    ("external", "supervisor external interrupt"),
    ("guest", "supervisor guest external interrupt"),
];

/// Adds how often HS-mode was interrupted, from whatever mode.
fn host_interrupts(report: &machine::monitor::Report, figures: &mut Figures) {
    let seconds = report.cycles as f64 / report.hertz as f64;
    let mut all = 0;
    for (name, cause) in HOST_INTERRUPTS {
        let traps = report.harts.iter().flat_map(|hart| hart.traps.values());
        let count: u64 = traps.filter_map(|traps| traps.get(cause)).sum();
        all += count;
        let rate = ratio(Some(count as f64), Some(seconds));
        figures.put_member(Measure::CauseHostInterruptsPerSecond, name, rate);
    }
    let rate = ratio(Some(all as f64), Some(seconds));
    figures.put(Measure::HostInterruptsPerSecond, rate);
}

/// Misses of the caches nearest to the harts.
const FIRST_LEVEL: [Event; 3] = [Event::FetchMisses, Event::LoadMisses, Event::StoreMisses];

/// Adds the hardware monitor's measures.
fn hardware(report: &machine::monitor::Report, figures: &mut Figures) {
    host_interrupts(report, figures);
    let longest = report.longest_hypervisor_stretch.as_ref();
    let microseconds = longest.map(|stretch| stretch.nanoseconds as f64 / 1e3);
    figures.put(Measure::LongestHypervisorStretch, microseconds);
    let instructions: u64 = report.harts.iter().map(|hart| hart.instructions).sum();
    let instructions = instructions as f64;
    figures.put(Measure::Instructions, Some(instructions / 1e6));
    let nanoseconds = 1e9 / report.hertz as f64;
    let time = busy_cycles(report) * nanoseconds;
    let mean = ratio(Some(time), Some(instructions));
    figures.put(Measure::MeanInstructionTime, mean);
    if !report.measured {
        return;
    }
    // NITR of paper 003 counts translations that no TLB had, NIBR references that the cache nearest to the hart had not.
    for (measure, events, scale) in [
        (Measure::TlbMissRatio, &[Event::Walks][..], 100.0),
        (Measure::CacheMissRatio, &FIRST_LEVEL, 100.0),
        (
            Measure::TlbMpki,
            &[
                Event::FetchTlbMisses,
                Event::LoadTlbMisses,
                Event::StoreTlbMisses,
            ],
            1000.0,
        ),
        (
            Measure::WalkReferences,
            &[Event::WalkReferences, Event::GuestWalkReferences],
            1000.0,
        ),
        (Measure::CacheMpki, &FIRST_LEVEL, 1000.0),
    ] {
        let count: u64 = events.iter().map(|&event| report.total(event)).sum();
        let rate = ratio(Some(count as f64 * scale), Some(instructions));
        figures.put(measure, rate);
    }
    hardware_in_guests(report, figures);
}

/// Adds the hardware monitor's measures of VS and VU mode.
fn hardware_in_guests(report: &machine::monitor::Report, figures: &mut Figures) {
    let in_guests = |event: Event| {
        let harts = report.harts.iter();
        let vms = harts.flat_map(|hart| hart.virtual_machines.values());
        let counts = vms.flat_map(|vm| [&vm.supervisor, &vm.user]);
        counts
            .filter_map(|counts| counts.get(event.name()))
            .sum::<u64>()
    };
    let instructions = Some(in_guests(Event::Instructions) as f64);
    let harts = Some(report.harts.len() as f64);
    let walks = in_guests(Event::Walks) as f64;
    let misses: u64 = FIRST_LEVEL.iter().map(|&event| in_guests(event)).sum();
    let busy = in_guests(Event::Cycles).saturating_sub(in_guests(Event::Waited)) as f64;
    let walking = in_guests(Event::WalkCycles) as f64;
    let millions = |count: f64| Some(count / 1e6);
    for (measure, part, whole) in [
        (
            Measure::GuestInstructions,
            instructions.and_then(millions),
            harts,
        ),
        (Measure::GuestPageWalks, millions(walks), harts),
        (Measure::GuestCpi, Some(busy), instructions),
        (Measure::GuestBaseCpi, Some(busy - walking), instructions),
        (Measure::GuestCyclesPerWalk, Some(walking), Some(walks)),
        (
            Measure::GuestTlbMissRatio,
            Some(walks * 100.0),
            instructions,
        ),
        (
            Measure::GuestCacheMissRatio,
            Some(misses as f64 * 100.0),
            instructions,
        ),
    ] {
        figures.put(measure, ratio(part, whole));
    }
}
