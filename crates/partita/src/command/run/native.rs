//! A run without the hypervisor.

use super::arguments::computer;
use super::ending::its_limit;
use super::report::{EXPLAIN, write_report};
use crate::command::failure::Failure;
use crate::command::output;
use crate::command::run::RunArguments;
use runner::checkpoint::Boot;
use runner::computer::ComputerKind;
use runner::document::RunDocument;
use runner::measures::{self, Inputs};
use runner::native::NativeFailure;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use system::System;
use system::cache::Cache;

/// The first VM's kernel on the computer itself, or all VMs under KVM on it.
pub(super) fn native(
    arguments: &RunArguments,
    system: &System,
    cache: &Cache,
) -> Result<(), Failure> {
    let ComputerKind::Machine(chosen) = computer(arguments)? else {
        let option = if arguments.kvm { "--kvm" } else { "--native" };
        return Err(Failure::MachineOnly(option));
    };
    let limit = arguments.timeout.map(Duration::from_secs);
    let mut show = |line: &str| {
        if !arguments.quiet {
            output::say_line(format_args!("{line}"));
        }
    };
    let outcome = if let (Some(path), Some(span)) = (&arguments.checkpoint, &arguments.span) {
        let stop = AtomicBool::new(false);
        let boot = Boot {
            system,
            cache,
            // It is not below them.
            hypervisor: Path::new(""),
            chosen: *chosen,
            text: "",
            limit,
            stop: &stop,
        };
        if arguments.kvm {
            runner::kvm::kvm_span(&boot, path, span, &mut show)?
        } else {
            runner::native::native_span(&boot, path, span, &mut show)?
        }
    } else if arguments.kvm {
        runner::kvm::under_kvm(system, cache, &chosen, limit, &mut show)?
    } else {
        runner::native::native(system, cache, &chosen, limit, &mut show)?
    };
    let figures = measures::compute(&Inputs {
        report: None,
        hardware: Some(&outcome.hardware),
        storms: outcome.storms.as_ref(),
        exit_latency: &[],
        guests: &outcome.guests,
    });
    let table = measures::show(&figures);
    output::say(format_args!("\n{table}{EXPLAIN}"));
    if let Some(path) = &arguments.json {
        let document = RunDocument {
            guests: outcome.guests,
            hardware: Some(outcome.hardware),
            ..RunDocument::of_figures(figures)
        };
        let document = document.with_storms(outcome.storms.as_ref());
        write_report(arguments, cache, path, document)?;
    }
    match outcome.failure {
        None => Ok(()),
        Some(NativeFailure::TimeLimit) => Err(Failure::TimeLimit(its_limit(arguments, system))),
        Some(NativeFailure::Other(why)) => Err(Failure::Vm(vec![why])),
    }
}
