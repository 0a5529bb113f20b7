//! A run in five lines: what a reader wants to know before any table.

use super::Report;
use crate::laboratory::Figures;
use crate::measures::number;

/// The five lines. `failures` are what went wrong.
pub fn summary(report: &Report, figures: &Figures, failures: &[String]) -> String {
    let value = |name: &str| figures.get(name).copied();
    let or_dash = |name: &str| value(name).map_or_else(|| String::from("-"), number);
    let harts = match report.harts.len() {
        1 => String::from("1 hart"),
        count => format!("{count} harts"),
    };
    let (orderly, others): (Vec<_>, Vec<_>) = report.vms.iter().partition(|vm| vm.is_orderly());
    let names = |vms: &[&super::VmReport]| -> String {
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
    let hypervisor = value("scheduling-overhead").zip(value("simulation-overhead"));
    let hypervisor =
        hypervisor.map_or_else(|| String::from("-"), |(one, other)| number(one + other));
    let work = match (value("ends"), value("etr")) {
        (Some(ends), Some(rate)) => {
            let response = value("response-p50");
            let response = response.map_or_else(String::new, |time| {
                format!(", half of them within {} ms", number(time))
            });
            format!("{ends} ends, {} a second{response}", number(rate))
        }
        _ => String::from("nothing that the guests count"),
    };
    let exits = figures
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("exits-per-second.")?, *value)));
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
        or_dash("guest-utilisation"),
        or_dash("idle"),
        or_dash("exits-per-second"),
    )
}
