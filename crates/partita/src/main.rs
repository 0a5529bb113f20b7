//! The laboratory's command.
#![forbid(unsafe_code)]

mod bench;
mod code_size;
mod command;
mod reference;

use clap::Parser;
use command::{Arguments, Failure, note, show_usage, with_present_name};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end(show_usage(&with_present_name(error))),
    };
    end(command::execute(arguments))
}

/// Tells of a failure, if there is one.
fn end(done: Result<ExitCode, Failure>) -> ExitCode {
    done.unwrap_or_else(|failure| {
        note(format_args!("{failure}"));
        Failure::exit_code(&failure)
    })
}
