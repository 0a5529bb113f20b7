//! The laboratory's command.
#![forbid(unsafe_code)]

mod bench;
mod command;
mod reference;

use clap::Parser;
use command::{Arguments, Failure, with_present_name};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Prints help too, which is no mistake.
        Err(error) => with_present_name(error).exit(),
    };
    match command::execute(arguments) {
        Ok(code) => code,
        Err(failure) => {
            // Standard error may be gone; the exit code still tells.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("partita: {failure}\n"),
            );
            Failure::exit_code(&failure)
        }
    }
}
