//! Messages about a run that has reached its limit.

use super::RunArguments;
use crate::command::input::Computer;
use runner::run;
use system::System;

/// The limit that a run has run into.
pub(super) fn its_limit(arguments: &RunArguments, system: &System) -> String {
    match (arguments.timeout, system.time_limit(), arguments.on) {
        (Some(seconds), ..) => {
            format!("--timeout {seconds}, in seconds of the host's time, was reached")
        }
        (None, Some(limit), Computer::Machine) => {
            format!("time-limit = \"{limit}\", of machine time, was reached")
        }
        (None, Some(limit), Computer::Qemu) => {
            format!("time-limit = \"{limit}\", of the host's time, was reached")
        }
        (None, None, _) => String::from("its limit was reached"),
    }
}

/// The same with who had not come to an end by then, and what else was wrong.
pub(super) fn limit_reached(
    arguments: &RunArguments,
    system: &System,
    outcome: &run::Outcome,
) -> String {
    let limit = its_limit(arguments, system);
    let who = match &outcome.unfinished[..] {
        [] if outcome.report.is_some() => String::from("every VM had ended"),
        [] => String::from("the hypervisor did not answer any more"),
        [one] => format!("{one} had not come to an end"),
        several => format!("{} had not come to an end", several.join(" and ")),
    };
    let failures = outcome
        .failures
        .iter()
        .map(|failure| format!("\npartita: {failure}"));
    format!("{limit}; {who}{}", failures.collect::<String>())
}
