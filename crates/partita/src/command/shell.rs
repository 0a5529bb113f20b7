//! `partita completions` and `partita manual`: what shells and man want to know, made of the command line itself.

use super::failure::{Failure, at};
use super::output;
use clap::Command;
use clap_complete::Shell;
use std::path::Path;

/// Writes a shell's completions to standard output.
pub(super) fn completions(shell: Shell, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "partita", &mut text);
    // Completions are made of this command's own words.
    output::say_unfolded(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Writes a manual page for the command and each of its parts into a folder, which is made if it is not there.
pub(super) fn manual(folder: &Path, command: Command) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    clap_mangen::generate_to(command.name("partita"), folder).map_err(at(folder))
}
