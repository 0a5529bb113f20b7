//! `partita compare --random`.

use super::compare::{self, CompareArguments};
use super::failure::Failure;
use super::failure::at;
use super::laboratory::Laboratory;
use super::output::{self, write_json};
use std::path::{Path, PathBuf};
use study::compare::{Grid, Variation};
use study::laboratory::with_phase;
use study::laboratory::{Computer, Entry, Point};
use study::random::{self, Drawn, Regret};

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
    let mut points: Vec<Point> = Vec::new();
    for system in &drawn {
        let file = file(&folder, system);
        output::write(&file, system.text().as_bytes())?;
        points.extend(grid.points(&file, &arguments.changes, &computer));
    }
    let points: Result<Vec<Point>, Failure> = laboratory
        .expand(points)?
        .into_iter()
        .map(|point| {
            let mut point = with_phase(point)?;
            point.shares = matches!(point.computer, Computer::Machine { .. });
            Ok(point)
        })
        .collect();
    let entries = laboratory.run(points?)?;
    let regret = Regret::new(&drawn, &grid.combinations, grid.seeds.len(), &entries);
    show(&regret, &drawn, &folder);
    write(arguments, &regret, &entries)?;
    let failures = regret.rows.iter().flat_map(|row| {
        let say = |why: &String| format!("{}, {why}", row.name);
        row.failures.iter().map(say)
    });
    let failures: Vec<String> = failures.collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Vm(failures)),
    }
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

fn show(regret: &Regret, drawn: &[Drawn], folder: &Path) {
    output::say_line(format_args!("{}", regret.table()));
    for system in regret
        .worst_systems()
        .iter()
        .filter_map(|&at| drawn.get(at))
    {
        output::say_line(format_args!(
            "{}: {}",
            system.name,
            file(folder, system).display()
        ));
    }
}

fn write(arguments: &CompareArguments, regret: &Regret, entries: &[Entry]) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        write_json(
            path,
            &serde_json::json!({ "regret": regret, "runs": entries }),
        )?;
    }
    output::write_tidy(&arguments.tidy, entries)?;
    if let Some(path) = &arguments.report {
        output::write(path, study::pages::regret(regret, entries).as_bytes())?;
    }
    Ok(())
}
