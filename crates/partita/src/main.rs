//! The laboratory's command.
#![forbid(unsafe_code)]

mod bench;
mod code_size;
mod command;
mod reference;

use clap::Parser;
use command::{Arguments, Failure, note, with_present_name};
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
            note(format_args!("{failure}"));
            Failure::exit_code(&failure)
        }
    }
}
