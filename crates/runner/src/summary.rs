//! Summary of a run in five lines.

use crate::measures::{Figures, Measure};
use crate::report::{Report, VmReport};
use crate::table::number;

/// The five lines. `failures` are what went wrong.
pub fn summary(report: &Report, figures: &Figures, failures: &[String]) -> String {
    let value = |measure| figures.get(measure);
    let or_dash = |measure| value(measure).map_or_else(|| String::from("-"), number);
    let harts = match report.harts.len() {
        1 => String::from("1 hart"),
        count => format!("{count} harts"),
    };
    let (orderly, others): (Vec<_>, Vec<_>) = report.vms.iter().partition(|vm| vm.is_orderly());
    let names = |vms: &[&VmReport]| -> String {
        let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
        match &names[..] {
            [] => String::from("no VM"),
            [one] => String::from(*one),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    };
    let others = match &others[..] {
        [] => String::new(),
        others => format!("; {} did not", names(others)),
    };
    let hypervisor = value(Measure::SchedulingOverhead).zip(value(Measure::SimulationOverhead));
    let hypervisor =
        hypervisor.map_or_else(|| String::from("-"), |(one, other)| number(one + other));
    let work = match (value(Measure::Completions), value(Measure::Throughput)) {
        (Some(completions), Some(rate)) => {
            let response = value(Measure::ResponseP50);
            let response = response.map_or_else(String::new, |time| {
                format!(", half of them within {} ms", number(time))
            });
            format!(
                "{completions} completions, {} a second{response}",
                number(rate)
            )
        }
        _ => String::from("nothing that the guests count"),
    };
    let exits = figures.members(Measure::CauseExitsPerSecond);
    let most = exits.max_by(|a, b| a.1.total_cmp(&b.1));
    let most = most.map_or_else(String::new, |(cause, rate)| {
        format!(", most of them {cause} ({})", number(rate))
    });
    let wrong = match failures {
        [] => String::from("nothing"),
        [one] => one.lines().next().unwrap_or_default().into(),
        [first, rest @ ..] => format!(
            "{} (and {} more)",
            first.lines().next().unwrap_or_default(),
            rest.len()
        ),
    };
    format!(
        "ended:  {} after {:.3} s on {harts}{others}\n\
         time:   guests {} %, hypervisor {hypervisor} %, idle {} %\n\
         work:   {work}\n\
         exits:  {} a second{most}\n\
         wrong:  {wrong}\n",
        names(&orderly),
        report.seconds,
        or_dash(Measure::GuestUtilisation),
        or_dash(Measure::Idle),
        or_dash(Measure::ExitsPerSecond),
    )
}

/// Relation of the table's times of guests to the measures, where guests waited with harts that no other vCPU
/// wanted: the table says whose a hart was, the measures what was done with it.
pub fn waits(report: &Report, figures: &Figures) -> Option<String> {
    let whole: u64 = report.harts.iter().map(|hart| hart.elapsed).sum();
    let work = report.vms.iter().flat_map(|vm| &vm.work);
    let held: u64 = work.map(|work| work.guest).sum();
    let busy = figures.get(Measure::GuestUtilisation)?;
    let held = held as f64 * 100.0 / whole.max(1) as f64;
    let waited = held - busy;
    (waited >= 0.005).then(|| {
        format!(
            "Guests held the harts for {held:.2} % of the time. For {waited:.2} % of it they waited in WFI or WRS on a \
             hart that no other vCPU wanted. The measure guest-utilisation ({busy:.2} %) leaves this waiting out, and \
             the measure idle counts it."
        )
    })
}
