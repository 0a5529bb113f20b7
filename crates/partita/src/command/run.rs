//! `partita run`.

use super::{Computer, Failure, RunArguments, write_json};
use partita::cache::Cache;
use partita::computer::{Chosen, Kind};
use partita::images::{self, Progress};
use partita::laboratory::{self, Computer as Place, Fingerprints, MadeBy, NativeFailure, Point};
use partita::measures::{self, Inputs};
use partita::run::{self, Ending, Options};
use partita::system::{FileName, System};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub(super) fn execute(arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.explain {
        let text = measures::explain(name).map_err(Failure::Measure)?;
        let _ = writeln!(std::io::stdout(), "{text}");
        return Ok(());
    }
    let system = arguments.system.read()?;
    let cache = Cache::from_environment()?;
    images::ensure(&cache, &built_files(&system), &Progress::new())?;
    if arguments.native {
        return native(arguments, &system, &cache);
    }
    let options = Options {
        console: arguments.console.clone(),
        time_limit: arguments.timeout.map(Duration::from_secs),
        hypervisor: arguments.hypervisor.path()?,
        verbose: arguments.verbose,
        on: computer(arguments)?,
    };
    let outcome = run::run(&system, &cache, &options)?;
    if let Some(report) = &outcome.report {
        let figures = measures::compute(&Inputs {
            report: Some(report),
            hardware: outcome.monitor.as_ref(),
            guests: &outcome.guests,
        });
        // A reader that has gone needs no table.
        let table = measures::show(&figures);
        let _ = write!(std::io::stdout(), "\n{report}\n{table}{EXPLAIN}");
        if let Some(path) = &arguments.json {
            let whole = to_json(path, report)?;
            let parts = [
                ("measures", to_json(path, &figures)?),
                ("guests", to_json(path, &outcome.guests)?),
                ("hardware", to_json(path, &outcome.monitor)?),
            ];
            write_report(arguments, &cache, path, whole, parts)?;
        }
    }
    if let (Some(monitor), Some(path)) = (&outcome.monitor, &arguments.monitor) {
        write_json(path, monitor)?;
    }
    match outcome.ending {
        Ending::Interrupted => Err(Failure::Interrupted),
        Ending::TimeLimit => Err(Failure::TimeLimit),
        Ending::Finished if outcome.failures.is_empty() => Ok(()),
        Ending::Finished => Err(Failure::Vm(outcome.failures)),
    }
}

/// Stands below the measures.
const EXPLAIN: &str = "What a measure means: partita run SYSTEM.toml --explain NAME\n";

/// Writes a report, with these parts of it and with what made it.
fn write_report(
    arguments: &RunArguments,
    cache: &Cache,
    path: &Path,
    mut whole: serde_json::Value,
    parts: [(&str, serde_json::Value); 3],
) -> Result<(), Failure> {
    if let Some(object) = whole.as_object_mut() {
        for (name, part) in parts {
            object.insert(String::from(name), part);
        }
        if !arguments.without_makers {
            let (point, made_by) = makers(arguments, cache)?;
            object.insert(String::from("point"), to_json(path, &point)?);
            object.insert(String::from("made-by"), to_json(path, &made_by)?);
        }
    }
    write_json(path, &whole)
}

/// The first VM's kernel on the computer itself.
fn native(arguments: &RunArguments, system: &System, cache: &Cache) -> Result<(), Failure> {
    let Kind::Machine(chosen) = computer(arguments)? else {
        return Err(Failure::MachineOnly("--native"));
    };
    let limit = arguments.timeout.map(Duration::from_secs);
    let limit = limit.or_else(|| system.time_limit.map(Duration::from));
    let mut out = std::io::stdout().lock();
    let outcome = laboratory::native(system, cache, &chosen, limit, &mut |line| {
        // A reader that has gone needs no line.
        let _ = writeln!(out, "{line}");
    })?;
    let figures = measures::compute(&Inputs {
        report: None,
        hardware: Some(&outcome.hardware),
        guests: &outcome.guests,
    });
    let table = measures::show(&figures);
    let _ = write!(out, "\n{table}{EXPLAIN}");
    if let Some(path) = &arguments.json {
        let parts = [
            ("measures", to_json(path, &figures)?),
            ("guests", to_json(path, &outcome.guests)?),
            ("hardware", to_json(path, &outcome.hardware)?),
        ];
        write_report(arguments, cache, path, serde_json::json!({}), parts)?;
    }
    match outcome.failure {
        None => Ok(()),
        Some(NativeFailure::TimeLimit) => Err(Failure::TimeLimit),
        Some(NativeFailure::Other(why)) => Err(Failure::Vm(vec![why])),
    }
}

fn to_json(path: &Path, value: &impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::File {
        path: path.to_owned(),
        error: error.into(),
    })
}

/// What makes this run's result, so that `partita rerun` can repeat it.
fn makers(arguments: &RunArguments, cache: &Cache) -> Result<(Point, MadeBy), Failure> {
    let point = Point {
        system: arguments.system.file.clone(),
        changes: arguments.system.changes.clone(),
        computer: match arguments.on {
            Computer::Qemu => Place::Qemu,
            Computer::Machine => Place::Machine {
                profile: arguments.profile.clone(),
            },
        },
        seed: arguments.seed,
        native: arguments.native,
    };
    let hypervisor = arguments.hypervisor.path()?;
    let command = std::env::current_exe().unwrap_or_default();
    let programs = [("partita", command.as_path()), ("hypervisor", &hypervisor)];
    let made_by = point.made_by(&programs, cache, &mut Fingerprints::new())?;
    Ok((point, made_by))
}

/// Which computer, with what was chosen about it.
fn computer(arguments: &RunArguments) -> Result<Kind, Failure> {
    let only: [(&str, bool); 5] = [
        ("--profile", arguments.profile.is_some()),
        ("--seed", arguments.seed != 0),
        ("--monitor", arguments.monitor.is_some()),
        ("--check-translations", arguments.check_translations),
        ("--native", arguments.native),
    ];
    match (arguments.on, only.iter().find(|(_, given)| *given)) {
        (Computer::Qemu, Some((option, _))) => Err(Failure::MachineOnly(option)),
        (Computer::Qemu, None) => Ok(Kind::Qemu),
        (Computer::Machine, _) => {
            let mut chosen = Chosen::named(arguments.profile.as_deref(), arguments.seed)?;
            chosen.check_translations = arguments.check_translations;
            Ok(Kind::Machine(Box::new(chosen)))
        }
    }
}

/// The files that the system names as built.
pub(super) fn built_files(system: &System) -> Vec<&str> {
    let files = system.vms.iter().flat_map(|vm| {
        let disks = vm.disks.iter().map(|disk| &disk.file);
        std::iter::once(&vm.kernel).chain(&vm.initrd).chain(disks)
    });
    let names = files.filter_map(|file| match &file.value {
        FileName::Built(name) => Some(name.as_str()),
        FileName::Path(_) => None,
    });
    names.collect()
}
