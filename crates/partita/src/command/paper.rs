//! `partita paper`.

use super::failure::Failure;
use super::laboratory::{Laboratory, LaboratoryArguments};
use super::output::{self, write_json};
use super::trace;
use clap::ValueEnum;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use runner::measures::Measure;
use std::ffi::OsStr;
use std::path::PathBuf;
use study::laboratory::tidy::Tidy;
use study::laboratory::{Computer, Entry, Forecast};
use study::paper::{
    self, Agreement, Case, Group, Judgement, Picture, Plan, Published, Selection, Wanted,
    registration, registration::RegistrationError,
};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  partita paper --all                                what is known, from the results that are kept\n  \
    partita paper --all --run --quick --report p.html  runs what is missing in its short form, and draws it\n  \
    partita paper --all --run --full --shard 2/8 --results part-2.jsonl\n                                                     \
    an eighth of the full runs, for `partita results merge`"
)]
pub(super) struct PaperArguments {
    /// The paper, by its number
    #[arg(value_parser = PaperNumber, required_unless_present = "all")]
    paper: Option<Paper>,
    /// Shows all claims of all papers beside what the kept results have for them
    #[arg(long, conflicts_with_all = ["paper", "table", "cases", "methods", "seeds", "tidy", "experiments", "register"])]
    pub(super) all: bool,
    /// With --all: runs what is missing of the papers' results first, as `partita results refresh` does: broken off, it goes on where
    /// it was
    #[arg(long, requires = "all")]
    pub(super) run: bool,
    /// One of its tables; without it, all
    #[arg(long, value_name = "NUMBER")]
    pub(super) table: Option<u32>,
    /// One of its cases, by its name; may be given many times; without it, all
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Some of the cases' methods, such as directed,reservation,kvm; without it, all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    methods: Vec<String>,
    /// Shorter runs, fewer of them; with --all --run, each result is made as it was made before without this and --full
    #[arg(long, conflicts_with = "full")]
    pub(super) quick: bool,
    /// With --all --run: the full runs
    #[arg(long, requires = "run")]
    pub(super) full: bool,
    /// Registers the paper's files as they are in the last commit, and runs nothing: what is run and what is predicted is fixed from
    /// here on, and every report says what has changed since
    #[arg(long, conflicts_with_all = ["table", "cases", "methods", "quick", "seeds", "json", "tidy", "report"])]
    register: bool,
    /// How many start phases each method is run with; without it 20, with --quick 12, the fewest that can decide the largest table
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) seeds: Option<u32>,
    /// Where the papers' folders are; without it, `experiments` in the tree that this command was built in
    #[arg(long, value_name = "FOLDER")]
    experiments: Option<PathBuf>,
    /// Writes the judgement as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Writes every figure of every run as a line of its own: comma-separated values, or Parquet where the file's name ends in .parquet;
    /// may be given many times
    #[arg(long, value_name = "FILE")]
    tidy: Vec<PathBuf>,
    /// Writes the judgement as a page: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) laboratory: LaboratoryArguments,
}

/// Papers whose tables are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// WOPD, WAPD and RSLP at spins
    #[value(name = "000")]
    Paper000,
    /// Fast I/O simulation against general
    #[value(name = "001")]
    Paper001,
    /// Self-wait against host interrupts
    #[value(name = "002")]
    Paper002,
    /// TLB entries that follow a vCPU
    #[value(name = "003")]
    Paper003,
    /// Storms of pause-loop exits
    #[value(name = "004")]
    Paper004,
}

impl Paper {
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Paper000 => "paper-000",
            Self::Paper001 => "paper-001",
            Self::Paper002 => "paper-002",
            Self::Paper003 => "paper-003",
            Self::Paper004 => "paper-004",
        }
    }
}

/// Former names of papers, and their numbers.
const FORMER_NAMES: [(&str, &str); 5] = [
    ("spins", "000"),
    ("fast-io", "001"),
    ("self-wait", "002"),
    ("tlb-reuse", "003"),
    ("pause-loops", "004"),
];

/// Parser of a paper's number. A former name is refused with the number.
#[derive(Debug, Clone, Copy)]
struct PaperNumber;

impl TypedValueParser for PaperNumber {
    type Value = Paper;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Paper, clap::Error> {
        let former = FORMER_NAMES.iter().find(|(name, _)| value == *name);
        if let Some((name, number)) = former {
            let message = format!("the paper {name} is called {number} now\n");
            let error = clap::Error::raw(clap::error::ErrorKind::InvalidValue, message);
            return Err(error.with_cmd(command));
        }
        EnumValueParser::<Paper>::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = Paper::value_variants().iter();
        Some(Box::new(all.filter_map(ValueEnum::to_possible_value)))
    }
}

/// Judgement of a paper's runs, with the runs.
pub(super) struct Repeated {
    pub(super) judgement: Judgement,
    /// The cases that were run, each with the names of its methods and how many runs each had, in the order of the runs.
    cases: Vec<(Case, Vec<(String, usize)>)>,
    pub(super) entries: Vec<Entry>,
    /// How it was made, in words.
    pub(super) how: String,
}

impl PaperArguments {
    /// Arguments of a paper's result.
    pub(super) fn of(quick: bool, seeds: Option<u32>, laboratory: &LaboratoryArguments) -> Self {
        Self {
            paper: None,
            all: false,
            run: false,
            full: false,
            table: None,
            cases: Vec::new(),
            methods: Vec::new(),
            quick,
            register: false,
            seeds,
            experiments: None,
            json: None,
            tidy: Vec::new(),
            report: None,
            laboratory: laboratory.clone(),
        }
    }

    fn experiments(&self) -> PathBuf {
        let experiments = self.experiments.clone();
        experiments.unwrap_or_else(super::laboratory::experiments)
    }

    /// The paper's published figures, and its runs.
    fn plan(&self, paper: Paper) -> Result<(Published, Plan), Failure> {
        self.plan_as(paper, self.quick)
    }

    /// The paper's published figures, and its runs in the short or in the full form.
    fn plan_as(&self, paper: Paper, quick: bool) -> Result<(Published, Plan), Failure> {
        let folder = self.experiments().join(paper.folder());
        let published = Published::read(&folder.join("published.toml"))?;
        let published = published.narrowed(&Selection {
            cases: self.cases.clone(),
            methods: self.methods.clone(),
        })?;
        let computer = match self.laboratory.computer()? {
            Computer::Machine { profile: None } => Computer::Machine {
                profile: Some(String::from(paper::PROFILE)),
            },
            other => other,
        };
        let hertz = match &computer {
            Computer::Machine {
                profile: Some(profile),
            } => Some(super::laboratory::profile(profile)?.hertz),
            _ => None,
        };
        let usual = if quick { 12 } else { 20 };
        let wanted = Wanted {
            table: self.table,
            quick,
            seeds: self.seeds.unwrap_or(usual),
            computer,
            hertz,
        };
        let plan = Plan::new(&published, &folder, &wanted)?;
        Ok((published, plan))
    }

    /// Forecast of the runs, and how many are made at a time.
    pub(super) fn ahead(&self, paper: Paper) -> Result<(Forecast, usize), Failure> {
        let (_, plan) = self.plan(paper)?;
        let laboratory = Laboratory::new(&self.laboratory, paper.folder())?;
        let points = laboratory.with_phases(plan.points())?;
        Ok((laboratory.ahead(points)?, laboratory.jobs()))
    }

    /// Runs what is missing, and judges.
    pub(super) fn repeat(&self, paper: Paper) -> Result<Repeated, Failure> {
        let name = paper.folder();
        let (published, plan) = self.plan(paper)?;
        // What is registered is the whole, whatever part of it is run.
        let whole = self.experiments().join(name).join("published.toml");
        let state = registration::state(&self.experiments(), name, &Published::read(&whole)?)?;
        let too_few = paper::too_few(&published, &plan, Agreement::All);
        if let Some(first) = too_few.first() {
            let all = too_few.len();
            eprintln!(
                "partita: these start phases cannot decide {all} comparisons, such as {first}"
            );
        }
        let laboratory = Laboratory::new(&self.laboratory, name)?;
        let entries = laboratory.run(laboratory.with_phases(plan.points())?)?;
        let judgement = paper::judge(&published, &plan, &entries, state);
        let runs = match plan.phases() {
            (least, most) if least == most => format!("{most} start phases each"),
            (least, most) => format!("{least} to {most} start phases each"),
        };
        let computers = plan.computers().into_iter().map(|computer| {
            let hardware = match &computer {
                Computer::Machine {
                    profile: Some(profile),
                } if profile == paper::PROFILE => published.hardware_text(),
                _ => String::new(),
            };
            format!("{computer}{hardware}")
        });
        let computers = computers.collect::<Vec<_>>().join(", and on ");
        let left_out = match plan.left_out.join("; ") {
            names if names.is_empty() => String::new(),
            names => format!(" Without --quick there are besides: {names}."),
        };
        let by_name = match plan.by_name.join("; ") {
            names if names.is_empty() => String::new(),
            names => format!(" Run where they are named, with --table or --case: {names}."),
        };
        let how =
            format!("On {computers}; {runs}; medians and their intervals.{left_out}{by_name}");
        let of = |(_, methods): &(Case, Group)| {
            let methods = methods.methods.iter();
            let each = methods.map(|(name, points)| (name.clone(), points.len()));
            each.collect::<Vec<_>>()
        };
        let cases = plan.cases.iter();
        Ok(Repeated {
            judgement,
            cases: cases.map(|one| (one.0.clone(), of(one))).collect(),
            entries,
            how,
        })
    }

    /// The waits with the most pause-loop exits of the methods that a case wants drawn, each found in the start phase that has it, and
    /// recorded in a run that is the same again.
    fn pictures(
        &self,
        cases: &[(Case, Vec<(String, usize)>)],
        entries: &[Entry],
    ) -> Result<Vec<Picture>, Failure> {
        let mut pictures = Vec::new();
        let mut rest = entries;
        for (case, methods) in cases {
            for (method, runs) in methods {
                let (own, others) = rest.split_at((*runs).min(rest.len()));
                rest = others;
                if !case.worst_waits.contains(method) {
                    continue;
                }
                let most = |entry: &&Entry| {
                    let figures = entry.outcome.figures();
                    let most = figures.and_then(|figures| figures.get(Measure::MaxExitsPerWait));
                    most.map_or(0, |most| most as u64)
                };
                let Some(worst) = own.iter().max_by_key(most).filter(|worst| most(worst) > 0)
                else {
                    continue;
                };
                let hypervisor = &self.laboratory.hypervisor;
                let drawn = trace::draw_worst_wait(&worst.point, hypervisor)?;
                let (phases, seed) = (own.len(), worst.point.seed);
                pictures.push(Picture {
                    case: case.name.clone(),
                    words: format!(
                        "{method}, start phase {seed} of {phases}: {}. A lane is a vCPU: its upper bar says which hart it has, the middle one \
                         that it spins, the lower one that it has a lock for which others wait, and each stroke is an exit.",
                        drawn.words
                    ),
                    svg: drawn.svg,
                    colours: drawn.colours,
                });
            }
        }
        Ok(pictures)
    }

    fn register(&self, paper: Paper) -> Result<(), Failure> {
        let experiments = self.experiments();
        let name = paper.folder();
        let published = Published::read(&experiments.join(name).join("published.toml"))?;
        let (_, plan) = self.plan_as(paper, false)?;
        let too_few = paper::too_few(&published, &plan, Agreement::NineInTen);
        if !too_few.is_empty() {
            return Err(RegistrationError::TooFewPhases(too_few).into());
        }
        let registration = registration::register(&experiments, name, &published)?;
        let (files, commit) = (registration.files.len(), registration.commit);
        output::say_line(format_args!(
            "registered {files} files as they are in commit {commit}; commit {name}/{}",
            registration::FILE
        ));
        let (published, plan) = self.plan_as(paper, true)?;
        for line in paper::too_few(&published, &plan, Agreement::All) {
            output::say_line(format_args!("the phases of --quick cannot decide {line}"));
        }
        Ok(())
    }
}

pub(super) fn execute(arguments: &PaperArguments) -> Result<(), Failure> {
    let Some(paper) = arguments.paper else {
        return Err(Failure::Usage(String::from("name a paper")));
    };
    if arguments.register {
        return arguments.register(paper);
    }
    let outputs = [&arguments.json, &arguments.report];
    output::check(outputs.map(Option::as_ref))?;
    output::check(arguments.tidy.iter().map(Some))?;
    let Repeated {
        judgement,
        cases,
        entries,
        how,
    } = arguments.repeat(paper)?;
    let text = paper::show(&judgement);
    output::say(format_args!("{text}\n{how}\n"));
    output::write_tidy(&arguments.tidy, || Tidy::of(&entries))?;
    if let Some(path) = &arguments.report {
        let pictures = arguments.pictures(&cases, &entries)?;
        let page = paper::page(&judgement, &pictures, &how, &entries);
        output::write(path, page.as_bytes())?;
    }
    if let Some(path) = &arguments.json {
        let whole = serde_json::json!({ "judgement": judgement, "runs": entries });
        write_json(path, &whole)?;
    }
    let failures = judgement.failures();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::Different(failures.join("\npartita: ")))
    }
}
