//! A run of which a part is measured.

use super::RunArguments;
use super::arguments::computer;
use crate::command::failure::Failure;
use crate::command::output;
use runner::checkpoint::Start;
use runner::checkpoint::{self, Boot};
use runner::computer::ComputerKind;
use runner::fairness;
use runner::measures::Figures;
use runner::run;
use runner::window;
use runner::window::Window;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use system::System;
use system::cache::Cache;

/// The part of a run that is measured.
pub(super) enum Part<'a> {
    /// From a checkpoint on.
    From(&'a Path),
    /// In a window.
    Within(&'a Window),
    /// All of it, and its shares in a window.
    Shares(&'a Window),
}

/// Measures a part of a run, without a terminal.
pub(super) fn alone(
    arguments: &RunArguments,
    system: &System,
    cache: &Cache,
    part: Part<'_>,
) -> Result<(run::Outcome, Figures), Failure> {
    let ComputerKind::Machine(chosen) = computer(arguments)? else {
        let option = match part {
            Part::From(_) => "--checkpoint",
            Part::Within(_) => "--steady-state",
            Part::Shares(_) => "--shares",
        };
        return Err(Failure::MachineOnly(option));
    };
    let stop = AtomicBool::new(false);
    let boot = Boot {
        system,
        cache,
        hypervisor: &arguments.hypervisor.path()?,
        chosen: *chosen,
        text: "",
        limit: arguments.timeout.map(Duration::from_secs),
        stop: &stop,
    };
    let mut show = |line: &str| {
        output::say_line(format_args!("{line}"));
    };
    let outcome = match part {
        Part::From(path) => {
            let start = Start {
                text: String::new(),
                commands: arguments.commands.clone(),
                span: arguments.span,
            };
            checkpoint::measure(&boot, path, &start, &mut show)
                .map(|outcome| (outcome, Figures::new()))
        }
        Part::Within(window) => {
            window::measure(&boot, window, &mut show).map(|outcome| (outcome, Figures::new()))
        }
        Part::Shares(window) => fairness::measure(&boot, window, &mut show),
    };
    Ok(outcome?)
}
