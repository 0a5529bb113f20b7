//! `partita claims`.

use super::failure::Failure;
use super::laboratory::{Laboratory, LaboratoryArguments, StartArguments, experiments};
use super::output::{self, write_json};
use std::path::{Path, PathBuf};
use study::claims::{self, Claim, Claims, Judged, Verdict};
use study::laboratory::verdict::{Evidence, correction};
use study::laboratory::{Computer, Entry};

#[derive(Debug, clap::Args)]
pub(super) struct ClaimsArguments {
    /// The claims to show; without any, all
    names: Vec<String>,
    /// How many start phases each method is run with; without it, as few as can decide the claims that are asked for
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
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
    let file = arguments.file();
    let all = Claims::read(&file)?;
    let wanted = all.named(&arguments.names)?;
    output::say_line(format_args!("{}", all.title));
    if arguments.list {
        for claim in wanted {
            output::say_line(format_args!("{}\n  {}", claim.name, claim.text));
        }
        return Ok(());
    }
    output::check([arguments.json.as_ref(), arguments.report.as_ref()])?;
    let Shown {
        judged,
        entries,
        below,
        not_run,
    } = show(arguments, &file, &wanted)?;
    for (name, why) in not_run {
        output::say_line(format_args!("\n{name}: not run\n  {why}"));
    }
    for one in &judged {
        output::say(format_args!("\n{}", claims::show(one)));
    }
    output::say_line(format_args!(
        "\n{below}; figures are marked as they would be by themselves"
    ));
    if let Some(path) = &arguments.json {
        write_json(path, &judged)?;
    }
    if let Some(path) = &arguments.report {
        let page = claims::page(&all.title, &judged, &below, &entries);
        output::write(path, page.as_bytes())?;
    }
    let named = |wanted: &dyn Fn(Verdict) -> bool| -> Vec<String> {
        let of = judged.iter().filter(|claim| wanted(claim.verdict));
        of.map(|claim| claim.name.clone()).collect()
    };
    let failing = named(&|verdict| verdict == Verdict::DoesNotHold);
    let open = named(&|verdict| !matches!(verdict, Verdict::Holds | Verdict::DoesNotHold));
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

/// Judged claims with the runs that they were judged by.
pub(super) struct Shown {
    pub(super) judged: Vec<Judged>,
    pub(super) entries: Vec<Entry>,
    /// Note on the correction for several claims, shown below the table.
    pub(super) below: String,
    /// Claims that are not for this computer, and why.
    not_run: Vec<(String, String)>,
}

impl ClaimsArguments {
    /// All claims as results show them.
    pub(super) fn of(seeds: Option<u32>, laboratory: &LaboratoryArguments) -> Self {
        Self {
            names: Vec::new(),
            seeds,
            file: None,
            list: false,
            json: None,
            report: None,
            laboratory: laboratory.clone(),
        }
    }

    /// The file of claims.
    pub(super) fn file(&self) -> PathBuf {
        let file = self.file.clone();
        file.unwrap_or_else(|| experiments().join("policies.toml"))
    }
}

/// Runs what is missing of the claims that are wanted, and judges them.
pub(super) fn show(
    arguments: &ClaimsArguments,
    file: &Path,
    wanted: &[&Claim],
) -> Result<Shown, Failure> {
    let folder = file.parent().map(PathBuf::from).unwrap_or_default();
    let computer = arguments.laboratory.computer()?;
    let laboratory = Laboratory::new(&arguments.laboratory, "claims")?;
    let seeds = arguments.seeds.unwrap_or_else(|| usual_seeds(wanted.len()));
    let (mut judged, mut all, mut not_run) = (Vec::new(), Vec::new(), Vec::new());
    for claim in wanted {
        let own = if computer == Computer::Qemu {
            &claim.on_qemu
        } else {
            &claim.on_machine
        };
        if let Some(why) = &own.not {
            not_run.push((claim.name.clone(), why.clone()));
            continue;
        }
        let points = claims::plan(claim, &folder, &computer, seeds);
        let start = StartArguments::usual(own.once);
        let points = laboratory.start(laboratory.expand(points)?, &start)?;
        let entries = laboratory.run(points)?;
        judged.push(claims::judge(claim, &entries));
        all.extend(entries);
    }
    let below = correction(claims::settle(&mut judged));
    Ok(Shown {
        judged,
        entries: all,
        below,
        not_run,
    })
}

/// As few start phases as can decide so many claims together.
fn usual_seeds(claims: usize) -> u32 {
    u32::try_from(Evidence::phases_for(claims)).unwrap_or(u32::MAX)
}
