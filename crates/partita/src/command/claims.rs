//! `partita claims`.

use super::laboratory::{Laboratory, LaboratoryArguments, StartArguments, experiments};
use super::{Failure, output, write_json};
use partita::claims::{self, Claims, Verdict};
use partita::laboratory::Computer;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct ClaimsArguments {
    /// The claims to show; without any, all
    names: Vec<String>,
    /// How many start phases each method is run with
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// The file of claims; without it, the one that comes with this command
    #[arg(long, value_name = "FILE.toml")]
    file: Option<PathBuf>,
    /// Says what there is, and runs nothing
    #[arg(long)]
    list: bool,
    /// Writes what came out as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes what came out as a page: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

pub(super) fn execute(arguments: &ClaimsArguments) -> Result<(), Failure> {
    let file = arguments.file.clone();
    let file = file.unwrap_or_else(|| experiments().join("policies.toml"));
    let all = Claims::read(&file)?;
    let wanted = all.named(&arguments.names)?;
    let mut out = std::io::stdout();
    // A reader that has gone needs no answer, here and below.
    let _ = writeln!(out, "{}", all.title);
    if arguments.list {
        for claim in wanted {
            let _ = writeln!(out, "{}\n  {}", claim.name, claim.text);
        }
        return Ok(());
    }
    output::check([arguments.json.as_ref(), arguments.report.as_ref()])?;
    let folder = file.parent().map(PathBuf::from).unwrap_or_default();
    let computer = arguments.laboratory.computer()?;
    let laboratory = Laboratory::new(&arguments.laboratory, "claims")?;
    let mut judged = Vec::new();
    for claim in wanted {
        let own = if computer == Computer::Qemu {
            &claim.on_qemu
        } else {
            &claim.on_machine
        };
        if let Some(why) = &own.not {
            let _ = writeln!(out, "\n{}: not run on {computer}\n  {why}", claim.name);
            continue;
        }
        let points = claims::plan(claim, &folder, &computer, arguments.seeds);
        let start = StartArguments::usual(own.once);
        let points = laboratory.start(laboratory.expand(points)?, &start)?;
        let entries = laboratory.run(points)?;
        let one = claims::judge(claim, &entries);
        let _ = write!(out, "\n{}", claims::show(&one));
        judged.push(one);
    }
    if let Some(path) = &arguments.json {
        write_json(path, &judged)?;
    }
    if let Some(path) = &arguments.report {
        output::write(path, claims::page(&all.title, &judged).as_bytes())?;
    }
    let named = |verdict| -> Vec<String> {
        let of = judged.iter().filter(|claim| claim.verdict() == verdict);
        of.map(|claim| claim.name.clone()).collect()
    };
    let (failing, open) = (named(Verdict::DoesNotHold), named(Verdict::Undecided));
    if failing.is_empty() && open.is_empty() {
        return Ok(());
    }
    let all = judged.len();
    let mut parts = Vec::new();
    for (names, what) in [(failing, "do not hold"), (open, "are undecided")] {
        if !names.is_empty() {
            parts.push(format!(
                "{} of {all} claims {what}: {}",
                names.len(),
                names.join(", ")
            ));
        }
    }
    Err(Failure::Different(parts.join("\npartita: ")))
}
