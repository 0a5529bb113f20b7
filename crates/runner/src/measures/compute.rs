//! From reports to figures.

use super::costs;
use super::inputs::{Inputs, ratio};
use crate::measures::Figures;
use crate::report::{Report, Work};
use crate::storms::{Class, Storms};
use abi::monitor::{Event as Counted, ExitCause};
use machine::monitor::Event;
use std::collections::BTreeMap;

/// Every measure that can be computed. A measure whose parts are not known is left out, rather than shown as zero.
pub fn compute(inputs: &Inputs<'_>) -> Figures {
    let mut figures = Figures::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            figures.insert(String::from(name), value);
        }
    };
    let guests = inputs.guests;
    let ends = guests.sum("ends");
    let elapsed = guests.largest("elapsed-us").map(|time| time / 1e6);
    put("ends", ends);
    put("elapsed", elapsed);
    let etr = ratio(ends, elapsed);
    put("etr", etr);
    for (vm, ends, elapsed) in guests.throughputs() {
        put(&format!("etr.{vm}"), ratio(Some(ends), Some(elapsed / 1e6)));
    }
    let milliseconds = |name| guests.largest(name).map(|time| time / 1e6);
    put("response-p50", milliseconds("response-ns.p50"));
    put("response-p99", milliseconds("response-ns.p99"));
    put("response-p99.9", milliseconds("response-ns.p99.9"));
    let microseconds = |name| guests.largest(name).map(|time| time / 1e3);
    put("lock-wait-p99", microseconds("lock-wait-ns.p99"));
    let spins = guests.sum("spins");
    put("spins", spins);
    put("looks-per-spin", ratio(guests.sum("looks"), spins));
    put("excessive-spins", guests.sum("excessive"));
    put("overtaken", guests.sum("overtaken"));
    put("off-line", guests.sum("off-line"));

    if let Some(watched) = inputs.storms {
        // No loop exits where there is no hypervisor.
        if inputs.report.is_some() {
            storms(watched, &mut put);
        }
        times(watched, &mut put);
        if let Some(report) = inputs.hardware {
            holds(watched, report.hertz, &mut put);
        }
    }
    let waited = inputs.hardware.map_or(0, guests_waits);
    let busy = inputs
        .report
        .map(|report| hypervisor(report, waited, &mut put));
    let busy = busy.or_else(|| inputs.hardware.and_then(native_busy));
    put("busy", busy.map(|part| part * 100.0));
    put("itr", ratio(etr, busy));
    if let Some(report) = inputs.hardware {
        hardware(report, &mut put);
        let seconds = busy_cycles(report) / report.hertz as f64;
        put("busy-per-end", ratio(Some(seconds * 1e6), ends));
    }
    costs::costs(inputs, &mut put);
    figures
}

/// The measures that compare a run with the native one of the same work: `native-etr`, `er`, `cr` and `event-expansion`.
pub fn relative(run: &Figures, native: &Figures) -> Figures {
    let per_cent = |measure: &str| ratio(run.get(measure).copied(), native.get(measure).copied());
    let mut figures = Figures::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            figures.insert(String::from(name), value);
        }
    };
    put("native-etr", per_cent("etr").map(|part| part * 100.0));
    // Time for an end is the reciprocal of throughput: real time of the external, processor time of the internal.
    let expansion = |part: f64| (1.0 / part - 1.0) * 100.0;
    put("er", per_cent("etr").map(expansion));
    put("cr", per_cent("itr").map(expansion));
    put("event-expansion", per_cent("event-cycles"));
    figures
}

/// Cycles that guests waited in WFI and WRS with their harts: nobody else wanted them, so nothing trapped.
fn guests_waits(report: &machine::monitor::Report) -> u64 {
    let harts = report.harts.iter();
    let guests = harts.flat_map(|hart| hart.virtual_machines.values());
    guests
        .flat_map(|guest| [&guest.supervisor, &guest.user])
        .filter_map(|counts| counts.get(Event::Waited.name()))
        .sum()
}

/// The performance monitor's measures; returns the part of the harts' time that they were busy. `waited` are the cycles
/// in guests in which they only waited.
fn hypervisor(report: &Report, waited: u64, put: &mut impl FnMut(&str, Option<f64>)) -> f64 {
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
    put("guest-utilisation", per_cent(guest));
    put("scheduling-overhead", per_cent(scheduling));
    put("simulation-overhead", per_cent(simulation));
    put("idle", per_cent(idle));
    put("seconds", Some(report.seconds));

    let a_second = |count: f64| ratio(Some(count), Some(report.seconds));
    put(
        "dispatches-per-second",
        a_second(sum(|work| work.dispatches)),
    );
    let mut causes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (cause, exits) in work().flat_map(|work| &work.exits) {
        let total = causes.entry(cause).or_default();
        *total = (total.0 + exits.count, total.1 + exits.cycles);
    }
    let all: u64 = causes.values().map(|(count, _)| count).sum();
    put("exits-per-second", a_second(all as f64));
    for (cause, (count, cycles)) in &causes {
        put(
            &format!("exits-per-second.{cause}"),
            a_second(*count as f64),
        );
        let share = per_cent(*cycles as f64);
        put(&format!("simulation-overhead.{cause}"), share);
    }
    let mut events: BTreeMap<&str, u64> = BTreeMap::new();
    for (event, count) in work().flat_map(|work| &work.events) {
        *events.entry(event).or_default() += count;
    }
    for (event, count) in &events {
        put(&format!("events.{event}"), Some(*count as f64));
    }
    let count = |event: Counted| events.get(event.name()).copied().unwrap_or_default() as f64;
    let (fast, general) = (count(Counted::RequestFast), count(Counted::RequestGeneral));
    put(
        "fast-translations",
        ratio(Some(fast * 100.0), Some(fast + general)),
    );
    let busy = (guest + scheduling + simulation) / whole;
    let exits = |cause: ExitCause| causes.get(cause.name()).map_or(0, |(count, _)| *count);
    let calls = exits(ExitCause::WrsNto) + exits(ExitCause::SbiPartita);
    let busy_seconds = busy * report.seconds;
    put(
        "calls-per-busy-second",
        ratio(Some(calls as f64), Some(busy_seconds)),
    );
    busy
}

/// So many exits, at most, is what the distribution of a wait's exits is given at.
pub const WITHIN: [u64; 12] = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 5000];

/// So many cycles, at most, is what the distributions of how long locks are held and waited for are given at.
pub const HELD: [u64; 10] = [
    128, 256, 512, 1024, 2048, 4096, 8192, 32_768, 262_144, 4_194_304,
];

/// The distributions of how long locks are held, and of how long waits take.
fn holds(storms: &Storms, hertz: u64, put: &mut impl FnMut(&str, Option<f64>)) {
    let times = [
        ("lock-hold-within", &storms.holds),
        ("pause-wait-within", &storms.waits),
    ];
    for (family, times) in times {
        let times = sorted(times);
        for most in HELD {
            let nanoseconds = u128::from(most) * 1_000_000_000 / u128::from(hertz.max(1));
            let within = times.partition_point(|time| u128::from(*time) <= nanoseconds) as f64;
            let part = ratio(Some(within * 100.0), Some(times.len() as f64));
            put(&format!("{family}.{most}"), part);
        }
    }
}

/// The measures of pause-loop exits.
fn storms(storms: &Storms, put: &mut impl FnMut(&str, Option<f64>)) {
    /// Exits from which on a wait is a storm.
    const STORM: u64 = 10;
    let all = storms.all_exits() as f64;
    put("pause-exits", Some(all));
    for (class, exits) in Class::ALL.iter().zip(storms.exits) {
        let name = format!("pause-exits.{}", class.name());
        put(&name, ratio(Some(exits as f64 * 100.0), Some(all)));
    }
    let lost: u64 = storms.lost.iter().sum();
    for (class, time) in Class::ALL.iter().zip(storms.lost) {
        let name = format!("pause-time.{}", class.name());
        put(&name, ratio(Some(time as f64 * 100.0), Some(lost as f64)));
    }
    put(
        "vcpus-exiting",
        ratio(Some(storms.together as f64), Some(all)),
    );
    put(
        "vcpus-exiting-most",
        (all > 0.0).then_some(storms.together_most as f64),
    );
    let of_waits = sorted(&storms.exits_of_waits);
    for most in WITHIN {
        let within = of_waits.partition_point(|exits| *exits <= most) as f64;
        let part = ratio(Some(within * 100.0), Some(of_waits.len() as f64));
        put(&format!("exits-per-wait-within.{most}"), part);
    }
    let on_words: u64 = of_waits.iter().sum();
    let number = of_waits.len() as f64;
    put("exits-per-wait", ratio(Some(on_words as f64), Some(number)));
    put("exits-per-wait-p99", at_part(&of_waits, 990));
    put("exits-per-wait-most", at_part(&of_waits, 1000));
    let storm = of_waits.iter().filter(|&&exits| exits >= STORM).count();
    put("storms", Some(storm as f64));
    let [holder_off, next_off, runs, unknown, ..] = storms.exits;
    let at_locks = holder_off + next_off + runs + unknown;
    let contended = storms.contended as f64;
    put(
        "exits-per-contended",
        ratio(Some(at_locks as f64), Some(contended)),
    );
}

/// How long waits take and how long locks are held.
fn times(storms: &Storms, put: &mut impl FnMut(&str, Option<f64>)) {
    let microseconds = |time: f64| time / 1e3;
    let waits = sorted(&storms.waits);
    put("pause-wait-p50", at_part(&waits, 500).map(microseconds));
    put("pause-wait-p99", at_part(&waits, 990).map(microseconds));
    put("pause-wait-most", at_part(&waits, 1000).map(microseconds));
    let holds = sorted(&storms.holds);
    put("lock-hold-p50", at_part(&holds, 500).map(microseconds));
    put("lock-hold-p99.5", at_part(&holds, 995).map(microseconds));
}

fn sorted(values: &[u64]) -> Vec<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
}

/// The value that so many of a thousand of the sorted `values` do not exceed.
fn at_part(values: &[u64], thousandths: usize) -> Option<f64> {
    let rank = (values.len() * thousandths).div_ceil(1000);
    values.get(rank.checked_sub(1)?).map(|value| *value as f64)
}

/// Cycles of all harts in which they did not wait, whoever had them.
fn busy_cycles(report: &machine::monitor::Report) -> f64 {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    cycles.saturating_sub(report.total(Event::Waited)) as f64
}

/// The part of the harts' time that a computer without a hypervisor was busy.
fn native_busy(report: &machine::monitor::Report) -> Option<f64> {
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let waited = report.total(Event::Waited);
    ratio(
        Some(cycles.saturating_sub(waited) as f64),
        Some(cycles as f64),
    )
}

/// Interrupts that are taken in HS-mode: how measures name them, and how the machine does. VS-mode's have names of their own.
const HOST_INTERRUPTS: [(&str, &str); 4] = [
    ("software", "supervisor software interrupt"),
    ("timer", "supervisor timer interrupt"),
    ("external", "supervisor external interrupt"),
    ("guest", "supervisor guest external interrupt"),
];

/// How often HS-mode was interrupted, from whatever mode.
fn host_interrupts(report: &machine::monitor::Report, put: &mut impl FnMut(&str, Option<f64>)) {
    let seconds = report.cycles as f64 / report.hertz as f64;
    let mut all = 0;
    for (name, cause) in HOST_INTERRUPTS {
        let traps = report.harts.iter().flat_map(|hart| hart.traps.values());
        let count: u64 = traps.filter_map(|traps| traps.get(cause)).sum();
        all += count;
        let name = format!("host-interrupts.{name}");
        put(&name, ratio(Some(count as f64), Some(seconds)));
    }
    put("host-interrupts", ratio(Some(all as f64), Some(seconds)));
}

/// The hardware monitor's measures.
fn hardware(report: &machine::monitor::Report, put: &mut impl FnMut(&str, Option<f64>)) {
    host_interrupts(report, put);
    let instructions: u64 = report.harts.iter().map(|hart| hart.instructions).sum();
    let instructions = instructions as f64;
    put("instructions", Some(instructions / 1e6));
    let cycles: u64 = report.harts.iter().map(|hart| hart.cycles).sum();
    let waited = report.total(Event::Waited);
    let nanoseconds = 1e9 / report.hertz as f64;
    put(
        "mean-instruction-time",
        ratio(
            Some(cycles.saturating_sub(waited) as f64 * nanoseconds),
            Some(instructions),
        ),
    );
    if !report.measured {
        return;
    }
    // NITR of paper 003 counts translations that no TLB had, NIBR references that the cache nearest to the hart had not.
    let first_level = [Event::FetchMisses, Event::LoadMisses, Event::StoreMisses];
    let total = |events: &[Event]| events.iter().map(|&event| report.total(event)).sum::<u64>();
    let per_cent = |count: u64, of: f64| ratio(Some(count as f64 * 100.0), Some(of));
    put(
        "tlb-miss-ratio",
        per_cent(total(&[Event::Walks]), instructions),
    );
    put(
        "cache-miss-ratio",
        per_cent(total(&first_level), instructions),
    );
    let in_guests = |event: Event| {
        let machines = report
            .harts
            .iter()
            .flat_map(|hart| hart.virtual_machines.values());
        let counts = machines.flat_map(|machine| [&machine.supervisor, &machine.user]);
        counts
            .filter_map(|counts| counts.get(event.name()))
            .sum::<u64>()
    };
    let guests = in_guests(Event::Instructions) as f64;
    let harts = report.harts.len() as f64;
    put("guest-instructions", ratio(Some(guests / 1e6), Some(harts)));
    let walks = in_guests(Event::Walks) as f64;
    put("guest-walks", ratio(Some(walks / 1e6), Some(harts)));
    let busy = in_guests(Event::Cycles).saturating_sub(in_guests(Event::Waited)) as f64;
    let walking = in_guests(Event::WalkCycles) as f64;
    put("guest-instruction-time", ratio(Some(busy), Some(guests)));
    put(
        "guest-basic-time",
        ratio(Some(busy - walking), Some(guests)),
    );
    put("guest-walk-time", ratio(Some(walking), Some(walks)));
    put(
        "guest-tlb-miss-ratio",
        per_cent(in_guests(Event::Walks), guests),
    );
    put(
        "guest-cache-miss-ratio",
        per_cent(
            first_level.iter().map(|&event| in_guests(event)).sum(),
            guests,
        ),
    );
    let mut a_thousand = |name: &str, events: &[Event]| {
        let count: u64 = events.iter().map(|&event| report.total(event)).sum();
        put(name, ratio(Some(count as f64 * 1000.0), Some(instructions)));
    };
    a_thousand(
        "tlb-misses",
        &[
            Event::FetchTlbMisses,
            Event::LoadTlbMisses,
            Event::StoreTlbMisses,
        ],
    );
    a_thousand(
        "walk-references",
        &[Event::WalkReferences, Event::GuestWalkReferences],
    );
    a_thousand(
        "cache-misses",
        &[Event::FetchMisses, Event::LoadMisses, Event::StoreMisses],
    );
}
