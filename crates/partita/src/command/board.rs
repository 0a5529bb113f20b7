//! `partita board`.

mod describe;
mod write;

use std::path::PathBuf;

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
    /// The system's TOML file; a description can do without
    #[arg(value_name = "SYSTEM.toml", required_unless_present = "describe")]
    file: Option<PathBuf>,
    /// Changes a key for this time, such as vm.web.share=30; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "file")]
    changes: Vec<String>,
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
    let system = arguments.file.clone().map(|file| SystemArguments {
        file,
        changes: arguments.changes.clone(),
    });
    match (&arguments.describe, &system, &arguments.output) {
        (Some(tree), system, _) => {
            let system = system.as_ref().map(SystemArguments::read).transpose()?;
            describe::execute(tree, system.as_ref(), arguments.json.as_deref())
        }
        (None, Some(system), Some(folder)) => {
            let disk = arguments.disk.as_deref();
            write::execute(system, folder, disk, &arguments.hypervisor)
        }
        // The parser asks for both.
        (None, None, _) | (None, _, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        board: BoardArguments,
    }

    #[test]
    fn descriptions_need_no_system() {
        let parse = |words: &[&str]| Words::try_parse_from([&["board"], words].concat());
        let alone = parse(&["--describe", "tree.dtb"]).unwrap().board;
        assert_eq!((alone.file, alone.output), (None, None));
        assert!(parse(&["--describe", "tree.dtb", "system.toml", "--json", "-"]).is_ok());
        assert!(parse(&["system.toml"]).is_err(), "no folder");
        assert!(parse(&["-o", "boot"]).is_err(), "no system");
        assert!(parse(&["system.toml", "-o", "boot", "--set", "harts=2"]).is_ok());
    }
}
