//! The computer on its own.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    machine::front::run(&machine::front::Arguments::parse())
}
