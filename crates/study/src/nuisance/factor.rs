//! Nuisance factors, and how a point gets a level of one.

use super::{design, structure};
use crate::laboratory::{Computer, Point, PointError};
use abi::keys;
use abi::system::MEMORY_GRANULE;
use machine::timing::Profile;
use runner::computer::Shift;
use std::path::Path;
use system::installed;
use system::{Bytes, EXERCISER, FileName, SHUFFLED, System};

/// By how much a boot is later at the second level, in nanoseconds: no whole part of any time slice or tick.
const BOOT_OFFSET: u64 = 777_777;
/// By which factor the costs that a profile marks as estimates go down and up: nobody has measured them.
const ESTIMATE: i64 = 2;
/// Marks of a cost that is an estimate, and of one that is like the cost above it.
const MARKS: [&str; 2] = ["estimate", "the same"];
/// Groups of factors: the first part of their names.
const COST: &str = "costs";
const STRUCTURE: &str = "structure";
/// The table of costs in a profile.
const COSTS: &str = "[costs]";

/// Something that is varied between two levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels in words.
    pub levels: [String; 2],
    setting: Setting,
}

/// How a point gets a level.
#[derive(Debug, Clone, PartialEq)]
enum Setting {
    /// The whole computer begins later.
    Boot,
    /// Slices end at other times on each hart. So many harts, and a slice in nanoseconds.
    Slices(u64, u64),
    /// The VMs are numbered the other way round.
    Order,
    /// Changes of keys at the second level.
    Changes(Vec<String>),
    /// A cost, at either level.
    Cost(String, [i64; 2]),
}

/// Why nuisance factors cannot be varied.
#[derive(Debug, thiserror::Error)]
pub enum NuisanceError {
    /// The computer.
    #[error("--nuisance is for the machine: on QEMU everything varies by itself")]
    NotTheMachine,
    /// A name that is not known.
    #[error("--nuisance {name}: no such factor; there are {known}", known = .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Factors of this system.
        known: Vec<String>,
    },
    /// There are none.
    #[error("--nuisance: this system has nothing that could be varied")]
    None,
    /// The system.
    #[error(transparent)]
    Point(#[from] PointError),
}

/// The factors that can be varied for these points: those of this name, or all. `costs` names all costs that the profile marks as
/// estimates, `structure` all [`structure`]s. `first` is the first point with its short keys written out.
///
/// # Errors
/// [`NuisanceError`].
pub fn factors(
    points: &[Point],
    first: &Point,
    names: &[String],
) -> Result<Vec<Factor>, NuisanceError> {
    if points.iter().any(|point| point.computer == Computer::Qemu) {
        return Err(NuisanceError::NotTheMachine);
    }
    let system = first.read()?;
    let mut all = of_system(first, &system);
    // Costs that are to be compared, or that not all points have, are left as they are.
    let mut computers = points.iter().map(|point| &point.computer);
    if let Some(Computer::Machine {
        profile: Some(profile),
    }) = computers.next()
        && computers.all(
            |other| matches!(other, Computer::Machine { profile: Some(other) } if other == profile),
        )
    {
        all.extend(estimates(&profile_text(profile)));
        let structures = Profile::find(profile).map(|profile| structure::of(&profile));
        all.extend(structures.unwrap_or_default().into_iter().map(|one| {
            Factor::new(
                &format!("{STRUCTURE}.{}", one.name),
                one.levels,
                Setting::Changes(one.changes),
            )
        }));
    }
    let is_set = |key: &str| {
        let changes = points.iter().flat_map(|point| &point.changes);
        changes
            .filter_map(|change| change.split_once('='))
            .any(|(other, _)| other.trim() == key)
    };
    all.retain(|factor| match &factor.setting {
        Setting::Cost(key, _) => !is_set(key),
        Setting::Changes(changes) => {
            let mut keys = changes.iter().filter_map(|change| change.split_once('='));
            keys.all(|(key, _)| !is_set(key))
        }
        _ => true,
    });
    let is = |factor: &Factor, name: &str| {
        let is_of = |group: &str| {
            factor
                .name
                .split_once('.')
                .is_some_and(|(of, _)| of == group)
        };
        factor.name == name || ([COST, STRUCTURE].contains(&name) && is_of(name))
    };
    for name in names.iter().filter(|name| *name != "all") {
        if !all.iter().any(|factor| is(factor, name)) {
            return Err(NuisanceError::Unknown {
                name: name.clone(),
                known: all.into_iter().map(|factor| factor.name).collect(),
            });
        }
    }
    if !names.iter().any(|name| name == "all") {
        all.retain(|factor| names.iter().any(|name| is(factor, name)));
    }
    match all.is_empty() {
        true => Err(NuisanceError::None),
        false => Ok(all),
    }
}

/// The points with the levels that the design gives their phases. A phase has the same levels whatever is compared in it.
pub fn vary(points: Vec<Point>, factors: &[Factor]) -> Vec<Point> {
    let set = |mut point: Point| {
        for (index, factor) in factors.iter().enumerate() {
            let second = design::is_second(factors.len(), index, point.seed);
            factor.set(&mut point, second);
        }
        point
    };
    points.into_iter().map(set).collect()
}

impl Factor {
    fn new(name: &str, levels: [&str; 2], setting: Setting) -> Self {
        Self {
            name: String::from(name),
            levels: levels.map(String::from),
            setting,
        }
    }

    /// A factor that changes nothing.
    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        Self::new(name, ["no", "yes"], Setting::Changes(Vec::new()))
    }

    /// Gives a point a level.
    fn set(&self, point: &mut Point, second: bool) {
        match &self.setting {
            Setting::Cost(key, values) => {
                let value = values[usize::from(second)];
                point.changes.push(format!("{key}={value}"));
            }
            _ if !second => {}
            Setting::Boot => shift(point).boot = BOOT_OFFSET,
            Setting::Slices(harts, slice) => {
                let part = |hart| slice * (hart + 1) / (harts + 1);
                shift(point).harts = (0..*harts).map(part).collect();
            }
            Setting::Order => shift(point).reversed = true,
            Setting::Changes(changes) => point.changes.extend_from_slice(changes),
        }
    }
}

fn shift(point: &mut Point) -> &mut Shift {
    point.shift.get_or_insert_default()
}

/// The slice in microseconds where the system does not give one: that of a computer of today.
const USUAL_SLICE_US: u64 = 1000;

/// The factors that have nothing to do with the profile.
fn of_system(point: &Point, system: &System) -> Vec<Factor> {
    let mut all = vec![Factor::new(
        "boot-offset",
        ["none", "0.778 ms"],
        Setting::Boot,
    )];
    let harts = u64::from(system.harts.value);
    let slice = system
        .get(keys::TIME_SLICE)
        .map_or(USUAL_SLICE_US, u64::from);
    let slice = slice.saturating_mul(1000);
    let slices = Setting::Slices(harts, slice);
    all.push(Factor::new("slice-phase", ["none", "apart"], slices));
    if system.vms.len() > 1 {
        all.push(Factor::new(
            "vm-order",
            ["as it is", "reversed"],
            Setting::Order,
        ));
    }
    if let Some(vm) = system.vms.first() {
        let more = Bytes(vm.memory.value.0.saturating_add(MEMORY_GRANULE));
        let change = format!("vm.{}.memory=\"{more}\"", vm.name);
        let mut moved = point.clone();
        moved.changes.push(change.clone());
        // There may be no room for it.
        if moved.read().is_ok() {
            all.push(Factor::new(
                "placement",
                ["as it is", "2 MiB on"],
                Setting::Changes(vec![change]),
            ));
        }
    }
    let command = installed::command();
    let own = installed::program(&command, EXERCISER);
    let exercisers = system.vms.iter().filter(|vm| match &vm.kernel.value {
        FileName::Path(path) => *path == own,
        FileName::Built(_) => false,
    });
    let changes: Vec<String> = exercisers
        .map(|vm| format!("vm.{}.kernel=\"{}{SHUFFLED}\"", vm.name, FileName::BUILT))
        .collect();
    if !changes.is_empty() && installed::program(&command, SHUFFLED).is_file() {
        all.push(Factor::new(
            "link-order",
            ["as built", "shuffled"],
            Setting::Changes(changes),
        ));
    }
    all
}

/// A profile's text with its comments; empty where there is none.
fn profile_text(profile: &str) -> String {
    let file = std::fs::read_to_string(Path::new(profile)).ok();
    let shipped = || Profile::shipped(profile).map(String::from);
    file.or_else(shipped).unwrap_or_default()
}

/// The costs that a profile's comments mark as estimates.
fn estimates(text: &str) -> Vec<Factor> {
    let mut found = Vec::new();
    let (mut in_costs, mut above) = (false, false);
    for line in text.lines() {
        if line.starts_with('[') {
            in_costs = line.trim() == COSTS;
            continue;
        }
        let Some((name, rest)) = line.split_once('=').filter(|_| in_costs) else {
            continue;
        };
        let (value, comment) = rest.split_once('#').unwrap_or((rest, ""));
        let comment = comment.trim();
        let is_estimate = comment.starts_with(MARKS[0]) || (comment.starts_with(MARKS[1]) && above);
        above = is_estimate;
        let Ok(value) = value.trim().replace('_', "").parse::<i64>() else {
            continue;
        };
        if is_estimate {
            let name = name.trim();
            let low = (value / ESTIMATE).min(value - 1).max(0);
            let high = value.saturating_mul(ESTIMATE).max(value.saturating_add(1));
            found.push(Factor::new(
                &format!("{COST}.{name}"),
                [&low.to_string(), &high.to_string()],
                Setting::Cost(format!("profile.costs.{name}"), [low, high]),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "harts = 2\nmemory = \"1 GiB\"\ntime-slice = \"6 ms\"\n\
        [vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n\
        [vm.b]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n";

    fn point(folder: &Path, changes: &[&str]) -> Point {
        std::fs::write(folder.join("kernel"), "").unwrap();
        std::fs::write(folder.join("system.toml"), SYSTEM).unwrap();
        Point {
            system: folder.join("system.toml"),
            changes: changes.iter().copied().map(String::from).collect(),
            computer: Computer::Machine {
                profile: Some(String::from("mainframe-1994")),
            },
            seed: 0,
            ..Point::default()
        }
    }

    fn names(factors: &[Factor]) -> Vec<&str> {
        factors.iter().map(|factor| factor.name.as_str()).collect()
    }

    #[test]
    fn only_estimated_costs_are_varied() {
        let text = "# Estimate of all\nhertz = 1 # estimate\n[costs]\na = 8 # estimate: ours\nb = 10 # the same\n\
                    c = 4 # measured\nd = 5 # the same\ne = 1_000 # estimate\nf = 0 # estimate\n[disk]\ng = 7 # estimate\n";
        let found = estimates(text);
        assert_eq!(names(&found), ["costs.a", "costs.b", "costs.e", "costs.f"]);
        let levels: Vec<&[String; 2]> = found.iter().map(|factor| &factor.levels).collect();
        assert_eq!(*levels[0], ["4", "16"]);
        assert_eq!(*levels[2], ["500", "2000"]);
        assert_eq!(*levels[3], ["0", "1"]);
    }

    #[test]
    fn what_is_compared_is_not_varied_besides() {
        let folder = tempfile::tempdir().unwrap();
        let all = [String::from("all")];
        let base = point(folder.path(), &[]);
        let of = |points: &[Point], names: &[String]| factors(points, &base, names);
        let free = of(std::slice::from_ref(&base), &all).unwrap();
        let has = |factors: &[Factor], name: &str| names(factors).contains(&name);
        for name in [
            "boot-offset",
            "slice-phase",
            "vm-order",
            "placement",
            "costs.l2_hit",
            "structure.predictor",
            "structure.tlb-replacement",
        ] {
            assert!(has(&free, name), "{name}: {:?}", names(&free));
        }
        // The kernel is no exerciser of ours, and trap is no estimate that could be left out of this profile.
        assert!(!has(&free, "link-order"));
        let bound = point(
            folder.path(),
            &["profile.costs.l2_hit=9", "vm.a.memory=\"32 MiB\""],
        );
        let bound = of(&[bound], &all).unwrap();
        assert!(!has(&bound, "costs.l2_hit") && !has(&bound, "placement"));
        assert_eq!(bound.len() + 2, free.len());
        let chosen = [String::from("vm-order"), String::from("costs")];
        let chosen = of(std::slice::from_ref(&base), &chosen).unwrap();
        assert!(has(&chosen, "vm-order") && !has(&chosen, "placement") && chosen.len() > 5);
        let structures = [String::from("structure")];
        let structures = of(std::slice::from_ref(&base), &structures).unwrap();
        assert!(structures.len() == 6 && has(&structures, "structure.bandwidth"));
        let wrong = of(std::slice::from_ref(&base), &[String::from("moon")]).unwrap_err();
        assert!(wrong.to_string().contains("moon"), "{wrong}");
        let mut qemu = point(folder.path(), &[]);
        qemu.computer = Computer::Qemu;
        assert!(matches!(
            of(&[qemu], &all),
            Err(NuisanceError::NotTheMachine)
        ));
    }

    #[test]
    fn phase_takes_levels_of_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["boot-offset", "slice-phase", "vm-order"].map(String::from);
        let base = point(folder.path(), &["spin=wapd"]);
        let factors = factors(std::slice::from_ref(&base), &base, &names).unwrap();
        let phases = (0..4).map(|seed| Point {
            seed,
            ..base.clone()
        });
        let varied = vary(phases.collect(), &factors);
        assert_eq!(varied[0], base);
        let shift = |phase: usize| varied[phase].shift.clone().unwrap();
        // Rows of Sylvester's matrix of order 4, columns 1 to 3.
        let slices = vec![2_000_000, 4_000_000];
        assert_eq!((shift(1).boot, shift(1).reversed), (BOOT_OFFSET, true));
        assert_eq!((shift(2).boot, shift(2).harts), (0, slices.clone()));
        assert_eq!((shift(3).boot, shift(3).harts), (BOOT_OFFSET, slices));
        assert!(!shift(3).reversed && shift(2).reversed && shift(1).harts.is_empty());
    }
}
