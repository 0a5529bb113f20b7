//! From a paper's cases to points.

use super::published::{KVM, NATIVE, PROFILE, Part};
use super::{Case, Published, Setting, Word};
use crate::laboratory::from_checkpoint;
use crate::laboratory::usual_start;
use crate::laboratory::with_phase;
use crate::laboratory::with_window;
use crate::laboratory::within;
use crate::laboratory::{Computer, Entry, Point, PointError};
use machine::timing::{Profile, ProfileError};
use runner::checkpoint::Span;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Frequency of the computers on which the workloads' times hold, in hertz (`mainframe-1994`).
const MEASURED_AT: u64 = 45_000_000;
/// Parameters that are times, and are shortened on faster computers so that the work in them stays the same.
const TIMES: [&str; 2] = ["duration-ms", "think-us"];

/// Selection of a paper's parts and phases.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The table; without it, all.
    pub table: Option<u32>,
    /// Short runs.
    pub quick: bool,
    /// Start phases of each method.
    pub seeds: u32,
    /// The computer.
    pub computer: Computer,
    /// The machine's frequency in hertz, if its profile says one.
    pub hertz: Option<u64>,
}

impl Wanted {
    /// Choices with a case's own computer, unless the computer is another than the papers' already.
    fn on(&self, profile: Option<&str>) -> Result<Self, PlanError> {
        let mut wanted = self.clone();
        if let (Some(name), true) = (profile, is_papers(&self.computer)) {
            let error = |error| PlanError::Profile {
                name: String::from(name),
                error,
            };
            wanted.hertz = Some(Profile::find(name).map_err(error)?.hertz);
            wanted.computer = Computer::Machine {
                profile: Some(String::from(name)),
            };
        }
        Ok(wanted)
    }
}

/// Returns whether this is the computer that the papers measured on.
fn is_papers(computer: &Computer) -> bool {
    matches!(computer, Computer::Machine { profile: Some(profile) } if profile == PROFILE)
}

/// Why a paper cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no such table.
    #[error("the paper has no table {wanted} of results; there are {}", .there.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    NoTable {
        /// The name that was asked for.
        wanted: u32,
        /// The names that exist.
        there: Vec<u32>,
    },
    /// There is no such case.
    #[error("the paper has no case {wanted}; there are {}", .there.join("; "))]
    NoCase {
        /// The name that was asked for.
        wanted: String,
        /// The names that exist.
        there: Vec<String>,
    },
    /// None of the cases has such a method.
    #[error("the cases have no method {wanted}; there are {}", .there.join(", "))]
    NoMethod {
        /// The name that was asked for.
        wanted: String,
        /// The names that exist.
        there: Vec<String>,
    },
    /// A system file has mistakes or is not there.
    #[error(transparent)]
    Point(#[from] PointError),
    /// A case names a profile that is not to be had.
    #[error("profile {name}: {error}")]
    Profile {
        /// Which.
        name: String,
        /// The problem.
        error: ProfileError,
    },
}

/// The runs of one case or one negative, by method.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The methods in their order, each with its points; the native run is the last, if there is one.
    pub methods: Vec<(String, Vec<Point>)>,
}

/// All runs of a paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The cases that are run, and their runs.
    pub cases: Vec<(Case, Group)>,
    /// The negatives' runs, in the paper's order.
    pub negatives: Vec<Group>,
    /// The cases that short runs leave out.
    pub left_out: Vec<String>,
    /// The cases that are run only where they are named, and were not.
    pub by_name: Vec<String>,
}

impl Plan {
    /// Plans a paper's runs. `folder` is where its systems lie.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(paper: &Published, folder: &Path, wanted: &Wanted) -> Result<Self, PlanError> {
        let tables = paper.tables();
        if let Some(table) = wanted.table.filter(|table| !tables.contains(table)) {
            return Err(PlanError::NoTable {
                wanted: table,
                there: tables.into_iter().filter(|table| *table != 0).collect(),
            });
        }
        let cases = paper.cases.iter();
        let asked = cases.filter(|case| wanted.table.is_none_or(|table| case.table == table));
        let (by_name, asked): (Vec<&Case>, Vec<&Case>) =
            asked.partition(|case| case.by_name && wanted.table.is_none());
        let is_left_out = |case: &&Case| wanted.quick && case.quick_phases == Some(0);
        let (left_out, cases): (Vec<&Case>, Vec<&Case>) = asked.into_iter().partition(is_left_out);
        let names = |cases: Vec<&Case>| cases.into_iter().map(|case| case.name.clone()).collect();
        let cases: Result<Vec<_>, PlanError> = cases
            .into_iter()
            .map(|case| {
                let has_fewer = wanted.quick && !case.quick_methods.is_empty();
                let beside =
                    |name| !has_fewer || case.quick_methods.iter().any(|method| method == name);
                let group = Runs {
                    paper,
                    wanted: &wanted.on(case.profile.as_deref())?,
                    system: folder.join(&case.system),
                    methods: match has_fewer {
                        true => &case.quick_methods,
                        false => &case.methods,
                    },
                    parameters: [&case.parameters, &case.quick],
                    phases: match case.quick_phases.filter(|_| wanted.quick) {
                        Some(quick) => (quick, case.max_phases),
                        None => (case.phases, case.max_phases),
                    },
                    hardware: &case.hardware,
                    exit_latency: case.exit_latency,
                    native: case.native.as_ref().filter(|_| beside(NATIVE)),
                    kvm: case.kvm && beside(KVM),
                    beside: case.beside_phases,
                    kvm_phases: case.kvm_phases,
                    part: match wanted.quick {
                        true => case.quick_part.as_ref().or(case.part.as_ref()),
                        false => case.part.as_ref(),
                    },
                };
                Ok((case.clone(), group.plan()?))
            })
            .collect();
        let negatives: Result<Vec<_>, PlanError> = paper
            .negatives
            .iter()
            .map(|negative| {
                let group = Runs {
                    paper,
                    wanted: &wanted.on(negative.profile.as_deref())?,
                    system: folder.join(&negative.system),
                    methods: &negative.methods,
                    parameters: [&negative.parameters, &negative.quick],
                    phases: (negative.phases, None),
                    hardware: &BTreeMap::new(),
                    exit_latency: false,
                    native: None,
                    kvm: false,
                    beside: None,
                    kvm_phases: None,
                    part: None,
                };
                group.plan()
            })
            .collect();
        Ok(Self {
            cases: cases?,
            negatives: negatives?,
            left_out: names(left_out),
            by_name: names(by_name),
        })
    }

    /// Every point, in order.
    pub fn points(&self) -> Vec<Point> {
        let groups = self.cases.iter().map(|(_, group)| group);
        let groups = groups.chain(&self.negatives);
        let methods = groups.flat_map(|group| &group.methods);
        methods.flat_map(|(_, points)| points.clone()).collect()
    }

    /// The computers on which the points run, each once, in the order of their first points.
    pub fn computers(&self) -> Vec<Computer> {
        let mut computers = Vec::new();
        for point in self.points() {
            if !computers.contains(&point.computer) {
                computers.push(point.computer);
            }
        }
        computers
    }

    /// The fewest and the most start phases of a method.
    pub fn phases(&self) -> (usize, usize) {
        let groups = self.cases.iter().map(|(_, group)| group);
        let methods = groups
            .chain(&self.negatives)
            .flat_map(|group| &group.methods);
        let phases = methods.map(|(_, points)| points.len());
        let bounds = phases.map(|count| (count, count));
        let bounds = bounds.reduce(|(least, most), (count, _)| (least.min(count), most.max(count)));
        bounds.unwrap_or_default()
    }

    /// Divides entries, in the order of [`Self::points`], among the groups again.
    pub fn divide<'a>(&self, entries: &'a [Entry]) -> Vec<Vec<(String, &'a [Entry])>> {
        let mut rest = entries;
        let groups = self.cases.iter().map(|(_, group)| group);
        groups
            .chain(&self.negatives)
            .map(|group| {
                let methods = group.methods.iter();
                methods
                    .map(|(method, points)| {
                        let (own, others) = rest.split_at(points.len().min(rest.len()));
                        rest = others;
                        (method.clone(), own)
                    })
                    .collect()
            })
            .collect()
    }
}

/// Inputs of the runs of one group.
struct Runs<'a> {
    paper: &'a Published,
    wanted: &'a Wanted,
    system: PathBuf,
    methods: &'a [String],
    parameters: [&'a BTreeMap<String, Word>; 2],
    phases: (u32, Option<u32>),
    hardware: &'a BTreeMap<String, Setting>,
    native: Option<&'a BTreeMap<String, Word>>,
    exit_latency: bool,
    kvm: bool,
    beside: Option<u32>,
    kvm_phases: Option<u32>,
    part: Option<&'a Part>,
}

/// Software below the guests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Hypervisor,
    Nobody,
    Kvm,
}

impl Runs<'_> {
    fn plan(&self) -> Result<Group, PlanError> {
        let mut parameters = self.parameters[0].clone();
        if self.wanted.quick {
            parameters.extend(self.parameters[1].clone());
        }
        let mut methods = Vec::new();
        let own_profile = is_papers(&self.wanted.computer);
        let of_ours = |method: &&String| *method != NATIVE && *method != KVM;
        for method in self.methods.iter().filter(of_ours) {
            if let Some((value, hardware)) = self.paper.method(method, own_profile) {
                let change = format!("{}={value}", self.paper.vary);
                let points = self.points(&[change], &hardware, &parameters, Below::Hypervisor)?;
                methods.push((method.clone(), points));
            }
        }
        // Only the machine boots a guest by itself, or KVM, in the same way.
        if !matches!(self.wanted.computer, Computer::Machine { .. }) {
            return Ok(Group { methods });
        }
        let hardware = self.paper.method("", own_profile);
        let hardware = hardware.map_or(Vec::new(), |(_, hardware)| hardware);
        if self.kvm {
            let points = self.points(&[], &hardware, &parameters, Below::Kvm)?;
            methods.push((String::from(KVM), points));
        }
        if let Some(native) = self.native {
            parameters.extend(native.clone());
            let points = self.points(&[], &hardware, &parameters, Below::Nobody)?;
            methods.push((String::from(NATIVE), points));
        }
        Ok(Group { methods })
    }

    fn points(
        &self,
        changes: &[String],
        hardware: &[String],
        parameters: &BTreeMap<String, Word>,
        below: Below,
    ) -> Result<Vec<Point>, PlanError> {
        let point = |seed| Point {
            system: self.system.clone(),
            changes: changes.to_vec(),
            computer: self.wanted.computer.clone(),
            seed,
            native: below == Below::Nobody,
            kvm: below == Below::Kvm,
            // There are none where our hypervisor is not below the guest.
            exit_latency: self.exit_latency && below == Below::Hypervisor,
            ..Point::default()
        };
        let (fewest, most) = self.phases;
        let all = self.wanted.seeds.max(fewest);
        let all = most.map_or(all, |most| most.min(all));
        let most = match below {
            Below::Hypervisor => None,
            Below::Nobody => self.beside,
            Below::Kvm => self.kvm_phases.or(self.beside),
        };
        (0..u64::from(most.map_or(all, |most| most.min(all))))
            .map(|seed| {
                let point = with_parameters(point(seed), parameters, self.wanted.hertz)?;
                // Keys of the profile are no keys of the system, so the window is found before they are added.
                let mut point = with_window(with_phase(point)?)?;
                // Debian's boot is no part of what is compared, and most of a run.
                if let Some(part) = self.part {
                    let span = Span {
                        settle_us: part.settle_us,
                        count_us: part.count_us,
                    };
                    point = within(point, &part.after, span)?;
                } else if let Some(text) = usual_start(&point.read()?) {
                    point = from_checkpoint(point, text)?;
                }
                point.changes.extend_from_slice(hardware);
                let own = self.hardware.iter();
                point
                    .changes
                    .extend(own.map(|(key, value)| format!("profile.{key}={value}")));
                Ok(point)
            })
            .collect()
    }
}

/// The point with words of its guests' command lines set, and with times shortened by how much faster a computer of
/// `hertz` is than those that the workloads were written for.
///
/// # Errors
/// The system has mistakes.
pub fn with_parameters(
    mut point: Point,
    parameters: &BTreeMap<String, Word>,
    hertz: Option<u64>,
) -> Result<Point, PointError> {
    let system = point.read()?;
    for vm in &system.vms {
        let mut words: Vec<(String, Option<String>)> = vm
            .command_line
            .split_whitespace()
            .map(|word| match word.split_once('=') {
                Some((name, value)) => (String::from(name), Some(String::from(value))),
                None => (String::from(word), None),
            })
            .collect();
        for (name, value) in parameters {
            let value = Some(value.to_string());
            match words.iter_mut().find(|(word, _)| word == name) {
                Some((_, old)) => *old = value,
                None => words.push((name.clone(), value)),
            }
        }
        for (name, value) in &mut words {
            let time = TIMES.contains(&name.as_str());
            let number = value.as_ref().and_then(|value| value.parse::<u64>().ok());
            if let (true, Some(number), Some(hertz)) = (time, number, hertz) {
                let scaled =
                    u128::from(number) * u128::from(MEASURED_AT) / u128::from(hertz.max(1));
                let least = u128::from(number != 0);
                *value = Some(scaled.max(least).to_string());
            }
        }
        let words = words.into_iter().map(|(name, value)| match value {
            Some(value) => format!("{name}={value}"),
            None => name,
        });
        let line = words.collect::<Vec<_>>().join(" ");
        if line != vm.command_line {
            let change = format!("vm.{}.command-line=\"{line}\"", vm.name);
            point.changes.push(change);
        }
    }
    Ok(point)
}
