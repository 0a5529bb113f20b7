//! `partita run`.

mod arguments;
mod ending;
mod native;
mod part;
mod report;

pub(super) use arguments::{RunArguments, point};

use super::beside::Beside;
use super::failure::Failure;
use super::output::{self, write_json};
use crate::command::input::ensure_images;
use arguments::computer;
use ending::limit_reached;
use native::native;
use part::{Part, alone};
use report::{EXPLAIN, write_report};
use runner::computer::ComputerKind;
use runner::document::RunDocument;
use runner::measures::{self, Figures, Inputs};
use runner::report::Report;
use runner::run::{self, Ending, Options, Outcome};
use runner::window::Window;
use std::path::Path;
use std::time::Duration;
use system::System;
use system::cache::Cache;

pub(super) fn execute(arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.explain {
        let text = measures::explain(name).map_err(Failure::Measure)?;
        output::say_line(format_args!("{text}"));
        return Ok(());
    }
    if let Some(parent) = arguments.parent {
        end_with(parent)?;
    }
    let mut system = match &arguments.hypervisor.elf {
        Some(hypervisor) => arguments.system.read_for(hypervisor)?,
        None => arguments.system.read()?,
    };
    if arguments.shift.as_ref().is_some_and(|shift| shift.reversed) {
        system.vms.reverse();
    }
    if let (Some(name), ComputerKind::Machine(chosen)) = (&arguments.profile, computer(arguments)?)
        && let Some(profile) = &chosen.profile
    {
        runner::vector_length::check(&system, name, profile)?;
    }
    output::check([arguments.json.as_ref(), arguments.monitor.as_ref()])?;
    let cache = Cache::made()?;
    ensure_images(&system, &cache)?;
    if arguments.native || arguments.kvm {
        return native(arguments, &system, &cache);
    }
    let options = Options {
        console: arguments.console.clone(),
        time_limit: arguments.timeout.map(Duration::from_secs),
        hypervisor: arguments.hypervisor.path()?,
        verbose: arguments.verbose,
        quiet: arguments.quiet,
        logs: arguments.logs.clone(),
        control: arguments.control.clone(),
        metrics: arguments.metrics,
        on: computer(arguments)?,
    };
    let beside = Beside::start(arguments, &system, &cache)?;
    let outcome = outcome(arguments, &system, &cache, &options);
    let finished = matches!(&outcome, Ok((outcome, _)) if outcome.ending == Ending::Finished);
    let native = beside.and_then(|beside| beside.end(finished));
    let (outcome, of_shares) = outcome?;
    if let Some(report) = &outcome.report {
        let reported = Reported {
            arguments,
            system: &system,
            cache: &cache,
            outcome: &outcome,
            report,
        };
        reported.show_and_write(of_shares, native.as_ref())?;
    }
    if let (Some(monitor), Some(path)) = (&outcome.monitor, &arguments.monitor) {
        write_json(path, monitor)?;
    }
    if let Some(error) = outcome.unwritten {
        return Err(Failure::Unshown(error));
    }
    match outcome.ending {
        Ending::Interrupted => Err(Failure::Interrupted),
        Ending::TimeLimit => Err(Failure::TimeLimit(limit_reached(
            arguments, &system, &outcome,
        ))),
        Ending::Waiting => Err(Failure::Waiting),
        Ending::Finished if outcome.failures.is_empty() => Ok(()),
        Ending::Finished => Err(Failure::Vm(outcome.failures)),
    }
}

/// Runs the system, or the part of its run that is measured; with the figures of shares, where they are measured.
fn outcome(
    arguments: &RunArguments,
    system: &System,
    cache: &Cache,
    options: &Options,
) -> Result<(Outcome, Figures), Failure> {
    if let Some(checkpoint) = &arguments.checkpoint {
        return alone(arguments, system, cache, Part::From(checkpoint));
    }
    if !arguments.steady_state && !arguments.shares {
        let outcome = run::run(system, cache, options)?;
        return Ok((outcome, Figures::new()));
    }
    let window = Window::of(system).ok_or_else(|| {
        Failure::Usage(String::from(
            "--steady-state and --shares: not every VM is an exerciser that works for a time; each needs exercise=work \
             duration-ms=... of more than 100",
        ))
    })?;
    let part = match arguments.steady_state {
        true => Part::Within(&window),
        false => Part::Shares(&window),
    };
    alone(arguments, system, cache, part)
}

/// Run whose monitor has reported.
struct Reported<'a> {
    arguments: &'a RunArguments,
    system: &'a System,
    cache: &'a Cache,
    outcome: &'a Outcome,
    report: &'a Report,
}

impl Reported<'_> {
    /// Shows the summary and the tables, and writes the report.
    fn show_and_write(&self, of_shares: Figures, native: Option<&Figures>) -> Result<(), Failure> {
        let mut figures = measures::compute(&Inputs {
            report: Some(self.report),
            hardware: self.outcome.monitor.as_ref(),
            storms: self.outcome.storms.as_ref(),
            exit_latency: &self.outcome.exit_latency,
            guests: &self.outcome.guests,
        });
        figures.extend(of_shares);
        let against = native.map(|native| measures::relative(&figures, native));
        self.show(&figures, against.as_ref());
        match &self.arguments.json {
            Some(path) => self.write(path, figures, against),
            None => Ok(()),
        }
    }

    fn show(&self, figures: &Figures, against: Option<&Figures>) {
        let mut shown = figures.clone();
        let relative = against.into_iter().flatten();
        shown.extend(relative.map(|(name, value)| (name.clone(), *value)));
        let from_host = self.system.from_host();
        if !from_host.is_empty() {
            let what = from_host.join(" and ");
            output::note(format_args!(
                "{what} came from the host: this run cannot be repeated"
            ));
        }
        let mut wrong = self.outcome.failures.clone();
        match self.outcome.ending {
            Ending::TimeLimit => {
                wrong.insert(0, limit_reached(self.arguments, self.system, self.outcome))
            }
            Ending::Interrupted => wrong.insert(0, String::from("it was broken off")),
            Ending::Waiting => wrong.insert(0, String::from("everybody waited")),
            Ending::Finished => {}
        }
        let summary = runner::summary::summary(self.report, &shown, &wrong);
        if self.arguments.quiet {
            output::say(format_args!("{summary}"));
            return;
        }
        let (report, table) = (self.report, measures::show(&shown));
        let waits = runner::summary::waits(report, figures);
        let waits = waits.map_or_else(String::new, |waits| waits + "\n\n");
        output::say(format_args!(
            "\n{summary}\n{report}\n{waits}{table}{EXPLAIN}"
        ));
    }

    fn write(
        &self,
        path: &Path,
        figures: Figures,
        against: Option<Figures>,
    ) -> Result<(), Failure> {
        let outcome = self.outcome;
        let document = RunDocument {
            guests: outcome.guests.clone(),
            hardware: outcome.monitor.clone(),
            exit_latency: outcome.exit_latency.clone(),
            against_native: against,
            from_host: self.system.from_host(),
            ..RunDocument::of_figures(figures)
        };
        let document = document
            .with_monitor(self.report.clone())
            .with_storms(outcome.storms.as_ref());
        write_report(self.arguments, self.cache, path, document)
    }
}

/// Asks the host's system to end this process with its parent, which may have ended already.
fn end_with(parent: u32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Failure::Host("--parent", error.into()))?;
    let present = getppid().map(|id| id.as_raw_nonzero().get());
    if present.and_then(|id| u32::try_from(id).ok()) == Some(parent) {
        return Ok(());
    }
    Err(Failure::Interrupted)
}
