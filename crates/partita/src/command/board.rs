//! `partita board`.

mod describe;
mod write;

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::input::{HypervisorArgument, SystemArguments};
use super::output;

/// Arguments of `partita board`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  partita board systems/two-debian.toml -o boot --disk boot.raw
  partita board --describe /sys/firmware/fdt
  partita board --describe board.dtb systems/two-debian.toml --json -")]
pub(super) struct BoardArguments {
    #[command(flatten)]
    system: Option<SystemArguments>,
    /// The folder to write to, which need not be there yet
    #[arg(
        long,
        short = 'o',
        value_name = "FOLDER",
        required_unless_present = "describe"
    )]
    output: Option<PathBuf>,
    /// Writes an image of a whole disk too, with a partition that has them
    #[arg(long, value_name = "FILE", conflicts_with = "describe")]
    disk: Option<PathBuf>,
    /// Says what the hypervisor would do on the board of this flattened device tree, with the system where one is given, and writes no files
    #[arg(long, value_name = "TREE.dtb", conflicts_with = "output")]
    describe: Option<PathBuf>,
    /// Writes the description as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE", requires = "describe")]
    json: Option<PathBuf>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
}

pub(super) fn execute(arguments: &BoardArguments) -> Result<(), Failure> {
    output::check([arguments.disk.as_ref(), arguments.json.as_ref()])?;
    if let Some(tree) = &arguments.describe {
        let system = arguments.system.as_ref().map(SystemArguments::read);
        let json = arguments.json.as_deref();
        return describe::execute(tree, system.transpose()?.as_ref(), json);
    }
    match (&arguments.system, &arguments.output) {
        (Some(system), Some(folder)) => {
            let disk = arguments.disk.as_deref();
            write::execute(system, folder, disk, &arguments.hypervisor)
        }
        // The parser asks for the folder, and this for the system, which a description can do without.
        (None, _) | (_, None) => Err(Failure::File {
            path: arguments
                .output
                .clone()
                .unwrap_or_else(|| Path::new("-o").into()),
            error: std::io::Error::other(
                "nothing to write: name the system file, as in partita board SYSTEM.toml -o FOLDER",
            ),
        }),
    }
}
