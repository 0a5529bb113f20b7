//! The laboratory's command.
#![forbid(unsafe_code)]

mod bench;
mod command;
mod reference;

use clap::Parser;
use command::{Arguments, Failure};
use std::process::ExitCode;

fn main() -> ExitCode {
    match command::execute(Arguments::parse()) {
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
