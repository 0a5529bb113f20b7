//! `partita paper`.

use super::laboratory::{Laboratory, LaboratoryArguments};
use super::{Failure, output, write_json};
use clap::ValueEnum;
use partita::laboratory::Computer;
use partita::paper::{self, Plan, Published, Wanted};
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct PaperArguments {
    /// The paper
    #[arg(value_enum)]
    paper: Paper,
    /// One of its tables; without it, all
    #[arg(long, value_name = "NUMBER")]
    table: Option<u32>,
    /// Shorter runs, fewer of them
    #[arg(long)]
    quick: bool,
    /// How many start phases each method is run with; without it 20, with --quick 12, the fewest that can decide the largest table
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Where the papers' folders are; without it, `experiments` in the tree that this command was built in
    #[arg(long, value_name = "FOLDER")]
    experiments: Option<PathBuf>,
    /// Writes the judgement as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the judgement as a page: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

/// Papers whose tables are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// Paper 000: WOPD, WAPD, RSLP
    Spins,
    /// Paper 002: self-wait against host interrupts
    SelfWait,
}

impl Paper {
    fn folder(self) -> &'static str {
        match self {
            Self::Spins => "paper-000",
            Self::SelfWait => "paper-002",
        }
    }
}

pub(super) fn execute(arguments: &PaperArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref(), arguments.report.as_ref()])?;
    let experiments = arguments.experiments.clone();
    let experiments = experiments.unwrap_or_else(super::laboratory::experiments);
    let folder = experiments.join(arguments.paper.folder());
    let published = Published::read(&folder.join("published.toml"))?;
    let computer = match arguments.laboratory.computer()? {
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
    let usual = if arguments.quick { 12 } else { 20 };
    let wanted = Wanted {
        table: arguments.table,
        quick: arguments.quick,
        seeds: arguments.seeds.unwrap_or(usual),
        computer,
        hertz,
    };
    let plan = Plan::new(&published, &folder, &wanted)?;
    let laboratory = Laboratory::new(&arguments.laboratory, arguments.paper.folder())?;
    let entries = laboratory.run(laboratory.with_phases(plan.points())?)?;
    let judgement = paper::judge(&published, &plan, &entries);
    let computer = &wanted.computer;
    let runs = wanted.seeds;
    let text = paper::show(&judgement);
    let hardware = match computer {
        Computer::Machine {
            profile: Some(profile),
        } if profile == paper::PROFILE => published.hardware_text(),
        _ => String::new(),
    };
    let below =
        format!("On {computer}{hardware}; {runs} start phases each; medians and their intervals.");
    // A reader that has gone needs no table.
    let _ = write!(std::io::stdout(), "{text}\n{below}\n");
    if let Some(path) = &arguments.report {
        output::write(path, paper::page(&judgement, &below).as_bytes())?;
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
