//! `partita results`.

use super::claims::ClaimsArguments;
use super::failure::Failure;
use super::laboratory::LaboratoryArguments;
use super::output::{self, write_json};
use super::paper::{Paper, PaperArguments};
use clap::{Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use study::claims::Claims;
use study::laboratory::shard::merge;
use study::laboratory::{Forecast, Store};
use study::papers::{self, Papers};
use study::results::{Content, FORM, Kept, Provenance, names, places, stale};

#[derive(Debug, clap::Args)]
pub(super) struct ResultsArguments {
    #[command(subcommand)]
    what: What,
    /// Where results are kept; without it, `docs/results` in the tree that this command was built in
    #[arg(long, global = true, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Makes the pages of all results from their files
    Render {
        /// Changes nothing, and fails if a page is not that of its file
        #[arg(long)]
        check: bool,
    },
    /// Puts files of results together, such as those of a series' shards: `compare`, `sweep` and `paper` with --results TARGET
    /// show the table of what is in it
    Merge {
        /// The file that gets all runs; what is in it stays
        #[arg(value_name = "TARGET")]
        target: PathBuf,
        /// The files whose runs it gets
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Runs what is missing of a result, writes its file, and makes its page: broken off, it goes on where it was
    Refresh(Box<RefreshArguments>),
}

#[derive(Debug, clap::Args)]
struct RefreshArguments {
    /// The results to refresh; without any, all, as their files say how
    #[arg(value_enum)]
    names: Vec<Name>,
    /// Shorter runs, and fewer of them; the page says so. A result that has a file is refreshed as it was made, unless this or
    /// --full says otherwise
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The full runs
    #[arg(long)]
    full: bool,
    /// How many start phases each method is run with
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

/// Results that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Paper 000's tables
    #[value(name = "paper-000")]
    Paper000,
    /// Paper 001's tables
    #[value(name = "paper-001")]
    Paper001,
    /// Paper 002's table
    #[value(name = "paper-002")]
    Paper002,
    /// Paper 003's table and figures
    #[value(name = "paper-003")]
    Paper003,
    /// Paper 004 beside ours
    #[value(name = "paper-004")]
    Paper004,
    /// The claims about the policies
    Claims,
}

impl Name {
    fn file(self) -> &'static str {
        match self {
            Self::Paper000 => "paper-000",
            Self::Paper001 => "paper-001",
            Self::Paper002 => "paper-002",
            Self::Paper003 => "paper-003",
            Self::Paper004 => "paper-004",
            Self::Claims => "claims",
        }
    }
}

pub(super) fn execute(arguments: &ResultsArguments) -> Result<(), Failure> {
    let folder = arguments.folder.clone();
    let command = system::installed::command();
    let folder = folder.unwrap_or_else(|| system::installed::folder(&command, "docs/results"));
    match &arguments.what {
        What::Render { check } => {
            let mut stale = stale(&folder)?;
            stale.extend(stale_page(&folder)?);
            if *check && !stale.is_empty() {
                let pages = stale.iter().map(|(page, _)| page.display().to_string());
                let pages = pages.collect::<Vec<_>>().join(", ");
                return Err(Failure::Different(format!(
                    "partita results render makes these pages anew: {pages}"
                )));
            }
            for (page, text) in stale {
                output::write(&page, text.as_bytes())?;
            }
            Ok(())
        }
        What::Merge { target, files } => {
            let mut store = Store::open(target)?;
            let merged = merge(files, &mut store)?;
            output::say_line(format_args!(
                "{}: {} runs added, {} were there already",
                target.display(),
                merged.added,
                merged.known
            ));
            Ok(())
        }
        What::Refresh(refresh) => refresh.refresh(&folder),
    }
}

/// The list of the papers' claims.
fn list() -> Result<Papers, Failure> {
    Ok(Papers::read(
        &super::laboratory::experiments().join(papers::FILE),
    )?)
}

/// The page of all papers, if it is not that of the list and of the results.
fn stale_page(folder: &Path) -> Result<Option<(PathBuf, String)>, Failure> {
    let page = folder.join(papers::PAGE);
    let text = list()?.beside(folder)?.page();
    // A page that is not there is stale, too.
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    Ok((there != text).then_some((page, text)))
}

/// Shows the claims of all papers, after their results were refreshed if that is wanted.
pub(super) fn papers(arguments: &PaperArguments) -> Result<(), Failure> {
    output::check([&arguments.json, &arguments.report].map(Option::as_ref))?;
    let command = system::installed::command();
    let folder = system::installed::folder(&command, "docs/results");
    // What a run failed of is told at the end, below the claims.
    let run = match arguments.run {
        true => {
            let papers = Name::value_variants().iter().copied();
            let refresh = RefreshArguments {
                names: papers.filter(|name| *name != Name::Claims).collect(),
                quick: arguments.quick,
                full: arguments.full,
                seeds: None,
                laboratory: arguments.laboratory.clone(),
            };
            refresh.say_ahead(&folder)?;
            refresh.refresh(&folder)
        }
        false => Ok(()),
    };
    if let Err(failure) = &run
        && !matches!(failure, Failure::Different(_))
    {
        return run;
    }
    let list = list()?;
    let judged = list.beside(&folder)?;
    output::say(format_args!("{}", judged.text()));
    if let Some(path) = &arguments.report {
        output::write(path, judged.html().as_bytes())?;
    }
    if let Some(path) = &arguments.json {
        write_json(path, &judged.json())?;
    }
    run
}

impl Name {
    /// The paper whose result it is.
    fn paper(self) -> Option<Paper> {
        match self {
            Self::Paper000 => Some(Paper::Paper000),
            Self::Paper001 => Some(Paper::Paper001),
            Self::Paper002 => Some(Paper::Paper002),
            Self::Paper003 => Some(Paper::Paper003),
            Self::Paper004 => Some(Paper::Paper004),
            Self::Claims => None,
        }
    }
}

impl RefreshArguments {
    /// Says what is ahead before the first run is made.
    fn say_ahead(&self, folder: &Path) -> Result<(), Failure> {
        let mut together = (Forecast::default(), 1);
        for name in &self.names {
            let Some(paper) = name.paper() else { continue };
            let quick = self.is_quick(*name, folder)?;
            let arguments = PaperArguments::of(quick, self.seeds, &self.laboratory);
            let (ahead, jobs) = arguments.ahead(paper)?;
            eprintln!("partita: {}: {}", name.file(), ahead.words(jobs));
            together = (together.0.and(ahead), jobs);
        }
        let (ahead, jobs) = together;
        eprintln!("partita: together: {}", ahead.words(jobs));
        Ok(())
    }

    /// Returns true if a result is made by short runs. A result that was made by short runs is refreshed by short runs.
    fn is_quick(&self, name: Name, folder: &Path) -> Result<bool, Failure> {
        let (file, _) = places(folder, name.file());
        let was_quick = file.is_file() && Kept::read(&file)?.made.quick;
        Ok((self.quick || was_quick) && !self.full)
    }

    /// Makes the results that are named, and their pages.
    fn refresh(&self, folder: &Path) -> Result<(), Failure> {
        let known = names(folder)?;
        let chosen: Vec<Name> = match self.names.is_empty() {
            false => self.names.clone(),
            true => {
                let all = Name::value_variants().iter().copied();
                all.filter(|name| known.iter().any(|known| known == name.file()))
                    .collect()
            }
        };
        let mut failures = Vec::new();
        let mut shard = None;
        for name in chosen {
            let (file, page) = places(folder, name.file());
            let kept = match self.make(name, self.is_quick(name, folder)?) {
                // A shard has no table, and the next result has a shard too.
                Err(made @ Failure::Shard { .. }) => {
                    output::say_line(format_args!("{}: {made}", name.file()));
                    shard = Some(made);
                    continue;
                }
                other => other?,
            };
            output::write(&file, kept.text().as_bytes())?;
            output::write(&page, kept.page(name.file()).as_bytes())?;
            output::say_line(format_args!("{}", page.display()));
            failures.extend(kept.failures());
        }
        if let Some(made) = shard {
            return Err(made);
        }
        if let Some((page, text)) = stale_page(folder)? {
            output::write(&page, text.as_bytes())?;
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Failure::Different(failures.join("\npartita: ")))
        }
    }

    fn make(&self, name: Name, quick: bool) -> Result<Kept, Failure> {
        let mut command = vec![String::from("results"), String::from("refresh")];
        command.push(String::from(name.file()));
        command.extend(quick.then(|| String::from("--quick")));
        command.extend(self.seeds.map(|seeds| format!("--seeds={seeds}")));
        let (made, content) = match name.paper() {
            Some(paper) => {
                let arguments = PaperArguments::of(quick, self.seeds, &self.laboratory);
                let repeated = arguments.repeat(paper)?;
                let made = Provenance::of(&repeated.entries, repeated.how, quick);
                (made, Content::Paper(Box::new(repeated.judgement)))
            }
            None => {
                let arguments = ClaimsArguments::of(self.seeds, &self.laboratory);
                let file = arguments.file();
                let all = Claims::read(&file)?;
                let wanted: Vec<_> = all.claims.iter().collect();
                let shown = super::claims::show(&arguments, &file, &wanted)?;
                let how = String::from("On the machine, each claim with its own profile.");
                let made = Provenance::of(&shown.entries, how, false);
                let content = Content::Claims {
                    title: all.title,
                    claims: shown.judged,
                    below: shown.below,
                };
                (made, content)
            }
        };
        Ok(Kept {
            form: FORM,
            command,
            made,
            content,
        })
    }
}
