//! `partita compare --random`.

use super::compare::{self, CompareArguments};
use super::failure::Failure;
use super::failure::at;
use super::laboratory::Laboratory;
use super::output::{self, write_json};
use std::path::{Path, PathBuf};
use study::compare::{Grid, Variation};
use study::laboratory::tidy::Tidy;
use study::laboratory::with_phase;
use study::laboratory::{Computer, Entry, Point};
use study::random::{self, Drawn, Floor, Regret};

/// Every spin policy: what is compared without --vary.
const POLICIES: &str = "spin=none,wopd,wapd,rslp,yield,not-same,directed,reservation,gang";
/// Cycles a second of the machine without a profile.
const IDEAL_HERTZ: u64 = 1_000_000_000;

pub(super) fn execute(arguments: &CompareArguments) -> Result<(), Failure> {
    let computer = arguments.laboratory.computer()?;
    let mut variations = compare::variations(&arguments.vary)?;
    if variations.is_empty() {
        variations.push(Variation::parse(POLICIES)?);
    }
    let phases = arguments.seeds.unwrap_or(1);
    let grid = Grid::new(&variations, phases, &computer)?;
    output::check([&arguments.json, &arguments.report].map(Option::as_ref))?;
    output::check(arguments.tidy.iter().map(Some))?;
    let wanted = &arguments.random;
    let laboratory = Laboratory::new(&arguments.laboratory, &format!("random-{}", wanted.seed))?;
    let length = random::milliseconds(hertz(&computer)?);
    let drawn = (0..u64::from(wanted.random.unwrap_or(0)))
        .map(|number| random::draw(wanted.seed, number, length));
    let drawn: Vec<Drawn> = drawn.collect();
    let usual = || laboratory.folder("random").join(length.to_string());
    let folder = wanted.systems.clone().unwrap_or_else(usual);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for system in &drawn {
        let file = file(&folder, system);
        output::write(&file, system.text().as_bytes())?;
        together.extend(grid.points(&file, &arguments.changes, &computer));
        if wanted.floor {
            let files = write_alone(system, &folder)?;
            alone.extend(random::alone(&grid, &files, &arguments.changes, &computer));
        }
    }
    // One series, so that a shard has its part of both.
    let together = begun(&laboratory, together, true)?;
    let count = together.len();
    let alone = begun(&laboratory, alone, false)?;
    let entries = laboratory.run(together.into_iter().chain(alone).collect())?;
    let (together, alone) = entries.split_at(count.min(entries.len()));
    let regret = Regret::new(&drawn, &grid.combinations, grid.seeds.len(), together);
    let floor = wanted
        .floor
        .then(|| Floor::new(&drawn, &grid, together, alone));
    show(&regret, floor.as_ref(), &drawn, &folder);
    write(arguments, &regret, floor.as_ref(), &entries)?;
    let failures = failures(&regret, floor.as_ref());
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Vm(failures)),
    }
}

/// Writes a system file for each VM of a drawn system alone. Returns the files.
fn write_alone(system: &Drawn, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let vms = (0..).map_while(|vm| system.alone(vm));
    let write = |(name, text): (String, String)| {
        let file = folder.join(format!("{name}.toml"));
        output::write(&file, text.as_bytes())?;
        Ok(file)
    };
    vms.map(write).collect()
}

/// The points with their start phases; `shares` measures what part of its share each VM had.
fn begun(laboratory: &Laboratory, points: Vec<Point>, shares: bool) -> Result<Vec<Point>, Failure> {
    let points = laboratory.expand(points)?.into_iter();
    let begin = |point| {
        let mut point = with_phase(point)?;
        point.shares = shares && matches!(point.computer, Computer::Machine { .. });
        Ok(point)
    };
    points.map(begin).collect()
}

/// Failures of all runs, with the row of each.
fn failures(regret: &Regret, floor: Option<&Floor>) -> Vec<String> {
    let together = regret.rows.iter().map(|row| (&row.name, &row.failures));
    let alone = floor.into_iter().flat_map(|floor| &floor.rows);
    let alone = alone.map(|row| (&row.name, &row.failures));
    let named = |(name, failures): (&String, &Vec<String>)| {
        let say = |why: &String| format!("{name}, {why}");
        failures.iter().map(say).collect::<Vec<_>>()
    };
    together.chain(alone).flat_map(named).collect()
}

/// Where a drawn system is written.
fn file(folder: &Path, system: &Drawn) -> PathBuf {
    folder.join(format!("{}.toml", system.name))
}

/// Cycles a second of the computer.
fn hertz(computer: &Computer) -> Result<u64, Failure> {
    Ok(match computer {
        Computer::Machine {
            profile: Some(name),
        } => super::laboratory::profile(name)?.hertz,
        Computer::Machine { profile: None } | Computer::Qemu => IDEAL_HERTZ,
    })
}

fn show(regret: &Regret, floor: Option<&Floor>, drawn: &[Drawn], folder: &Path) {
    output::say_line(format_args!("{}", regret.table()));
    let worst = regret.worst_systems();
    show_files(worst.iter().filter_map(|&at| drawn.get(at)), folder);
    if let Some(floor) = floor {
        output::say_line(format_args!("{}", floor.table()));
        let worst = floor.worst_systems();
        let is_worst = |system: &&Drawn| worst.contains(&system.name.as_str());
        show_files(drawn.iter().filter(is_worst), folder);
    }
}

/// Shows the files of these systems, which can be run again.
fn show_files<'a>(systems: impl Iterator<Item = &'a Drawn>, folder: &Path) {
    for system in systems {
        let path = file(folder, system);
        output::say_line(format_args!("{}: {}", system.name, path.display()));
    }
}

fn write(
    arguments: &CompareArguments,
    regret: &Regret,
    floor: Option<&Floor>,
    entries: &[Entry],
) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        write_json(
            path,
            &serde_json::json!({ "regret": regret, "floor": floor, "runs": entries }),
        )?;
    }
    output::write_tidy(&arguments.tidy, || Tidy::of(entries))?;
    if let Some(path) = &arguments.report {
        output::write(
            path,
            study::pages::regret(regret, floor, entries).as_bytes(),
        )?;
    }
    Ok(())
}
