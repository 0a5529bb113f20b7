//! `partita run`.

use super::{Computer, Failure, RunArguments, write_json};
use partita::cache::Cache;
use partita::computer::{Chosen, Kind};
use partita::images::{self, Progress};
use partita::run::{self, Ending, Options};
use partita::system::{FileName, System};
use std::io::Write;
use std::time::Duration;

pub(super) fn execute(arguments: &RunArguments) -> Result<(), Failure> {
    let system = arguments.system.read()?;
    let cache = Cache::from_environment()?;
    images::ensure(&cache, &built_files(&system), &Progress::new())?;
    let options = Options {
        console: arguments.console.clone(),
        time_limit: arguments.timeout.map(Duration::from_secs),
        hypervisor: arguments.hypervisor.path()?,
        verbose: arguments.verbose,
        on: computer(arguments)?,
    };
    let outcome = run::run(&system, &cache, &options)?;
    if let Some(report) = &outcome.report {
        // A reader that has gone needs no table.
        let _ = write!(std::io::stdout(), "\n{report}");
        if let Some(path) = &arguments.json {
            write_json(path, report)?;
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

/// The files that the system names as built.
fn built_files(system: &System) -> Vec<&str> {
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
