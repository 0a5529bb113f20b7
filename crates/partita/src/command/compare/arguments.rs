//! Arguments of `partita compare`.

use crate::command::failure::Failure;
use crate::command::laboratory::{EffectArguments, LaboratoryArguments, StartArguments};
use std::path::PathBuf;
use study::compare::{KEYS, Variation};

#[derive(Debug, clap::Args)]
pub(in crate::command) struct RandomArguments {
    /// Draws so many systems in a file's place, and shows how far each policy, or whatever is varied, stays behind the best one of
    /// each system
    #[arg(long, value_name = "NUMBER", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::command) random: Option<u32>,
    /// Space that the systems are drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "random")]
    pub(in crate::command) seed: u64,
    /// Runs each VM of a drawn system alone as well, under the policies of its file, and shows the floor ratio: what a VM completes beside
    /// the others, over its share of what it completes alone
    #[arg(long, requires = "random")]
    pub(in crate::command) floor: bool,
    /// Where the drawn systems are written; without it, a folder in the cache
    #[arg(long, value_name = "FOLDER", requires = "random")]
    pub(in crate::command) systems: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(in crate::command) struct CompareArguments {
    /// The system's TOML file
    #[arg(value_name = "SYSTEM.toml", required_unless_present = "random")]
    pub(in crate::command) file: Option<PathBuf>,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(in crate::command) changes: Vec<String>,
    #[command(flatten)]
    pub(in crate::command) random: RandomArguments,
    #[arg(long, value_name = "KEY=A,B,...", help = format!("Varies a key, such as spin=wopd,wapd; may be given many times: profile (the machine's), hypervisor (its ELF file), {KEYS}"))]
    pub(in crate::command) vary: Vec<String>,
    /// How many start phases each combination is run with; without it 10, with --nuisance as many as the design has, with
    /// --random 1
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::command) seeds: Option<u32>,
    /// Varies nuisance factors from phase to phase, all of them or those that are named, and shows which share of the spread each
    /// makes: boot-offset, slice-phase, vm-order, placement, link-order, costs (those that the profile marks as estimates)
    #[arg(long, value_delimiter = ',', value_name = "NAME,...", conflicts_with = "random", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(in crate::command) nuisance: Vec<String>,
    /// The measures to show; without it, the usual ones
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        conflicts_with = "random"
    )]
    pub(in crate::command) measure: Vec<String>,
    /// Writes the comparison and all runs as JSON
    #[arg(long, value_name = "FILE")]
    pub(in crate::command) json: Option<PathBuf>,
    /// Writes the comparison as comma-separated values
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    pub(in crate::command) csv: Option<PathBuf>,
    /// Writes every figure of every run as a line of its own: comma-separated values, or Parquet where the file's name ends in .parquet;
    /// may be given many times
    #[arg(long, value_name = "FILE")]
    pub(in crate::command) tidy: Vec<PathBuf>,
    /// Draws the comparison: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    pub(in crate::command) report: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::command) effect: EffectArguments,
    #[command(flatten)]
    pub(in crate::command) start: StartArguments,
    #[command(flatten)]
    pub(in crate::command) laboratory: LaboratoryArguments,
}

/// Value of `--vary`.
pub(in crate::command) fn variations(vary: &[String]) -> Result<Vec<Variation>, Failure> {
    let each = vary.iter().map(|text| Variation::parse(text));
    Ok(each.collect::<Result<_, _>>()?)
}
