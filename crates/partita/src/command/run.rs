//! `partita run`.

use super::{Computer, Failure, RunArguments, write_json};
use partita::cache::Cache;
use partita::computer::{Chosen, Kind};
use partita::images::{self, Progress};
use partita::laboratory::{Computer as Place, Fingerprints, MadeBy, Point};
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
    if uses_built_files(&system) {
        images::ensure(&cache, &Progress::new())?;
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
            let mut whole = to_json(path, report)?;
            let makers = (!arguments.without_makers).then(|| makers(arguments, &cache));
            if let Some(object) = whole.as_object_mut() {
                object.insert(String::from("measures"), to_json(path, &figures)?);
                object.insert(String::from("guests"), to_json(path, &outcome.guests)?);
                object.insert(String::from("hardware"), to_json(path, &outcome.monitor)?);
                if let Some(makers) = makers {
                    let (point, made_by) = makers?;
                    object.insert(String::from("point"), to_json(path, &point)?);
                    object.insert(String::from("made-by"), to_json(path, &made_by)?);
                }
            }
            write_json(path, &whole)?;
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
        native: false,
    };
    let hypervisor = arguments.hypervisor.path()?;
    let command = std::env::current_exe().unwrap_or_default();
    let programs = [("partita", command.as_path()), ("hypervisor", &hypervisor)];
    let made_by = point.made_by(&programs, cache, &mut Fingerprints::new())?;
    Ok((point, made_by))
}

/// Which computer, with what was chosen about it.
fn computer(arguments: &RunArguments) -> Result<Kind, Failure> {
    let only = [
        ("--profile", arguments.profile.is_some()),
        ("--seed", arguments.seed != 0),
        ("--monitor", arguments.monitor.is_some()),
    ];
    match (arguments.on, only.iter().find(|(_, given)| *given)) {
        (Computer::Qemu, Some((option, _))) => Err(Failure::MachineOnly(option)),
        (Computer::Qemu, None) => Ok(Kind::Qemu),
        (Computer::Machine, _) => Ok(Kind::Machine(Box::new(Chosen::named(
            arguments.profile.as_deref(),
            arguments.seed,
        )?))),
    }
}

fn uses_built_files(system: &System) -> bool {
    let mut files = system.vms.iter().flat_map(|vm| {
        let disks = vm.disks.iter().map(|disk| &disk.file);
        std::iter::once(&vm.kernel).chain(&vm.initrd).chain(disks)
    });
    files.any(|file| matches!(file.value, FileName::Built(_)))
}
