//! `partita footprint`: where the code of a program goes.

use super::failure::{Failure, at};
use super::output::{self, write_json};
use crate::code_size::CodeSize;
use runner::run::{RunError, default_hypervisor};
use runner::table::Table;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  partita footprint                               the hypervisor that `make build` built, by crate and module
  partita footprint --depth 3 --functions 20      finer modules, and the twenty largest functions
  partita footprint --json size.json PROGRAM      another program; the figures for programs too

A function belongs to the module of its type or, without one, of its path. Generic code belongs to the crate that defines it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FootprintArguments {
    /// The program's ELF file with its symbols; without it, the hypervisor that `make build` built beside this command
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Names of a module's path to tell apart, the crate's among them
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    depth: u8,
    /// Lists so many functions too, the largest first
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    functions: usize,
    /// Writes all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn execute(arguments: &FootprintArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref()])?;
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => {
            let path = default_hypervisor(&system::installed::command());
            if !path.is_file() {
                return Err(RunError::NoHypervisor(path).into());
            }
            path
        }
    };
    let file = std::fs::read(&path).map_err(at(&path))?;
    let size = CodeSize::read(&file, arguments.depth.into())
        .map_err(std::io::Error::other)
        .map_err(at(&path))?;
    output::say(format_args!("{}", tables(&size, arguments.functions)));
    match &arguments.json {
        Some(path) => write_json(path, &size),
        None => Ok(()),
    }
}

/// A table of crates and modules, and one of the largest `functions`.
fn tables(size: &CodeSize, functions: usize) -> String {
    let part = |bytes: u64| format!("{:.1} %", 100.0 * bytes as f64 / size.text.max(1) as f64);
    let mut table = Table::new(["crate, module", "bytes", "of all"]);
    table.row([".text".to_owned(), size.text.to_string(), part(size.text)]);
    for owner in &size.crates {
        table.row([
            owner.name.clone(),
            owner.bytes.to_string(),
            part(owner.bytes),
        ]);
        let is_whole = |name: &str| owner.modules.len() == 1 && name == owner.name;
        for module in owner
            .modules
            .iter()
            .filter(|module| !is_whole(&module.name))
        {
            table.row([
                format!("  {}", module.name),
                module.bytes.to_string(),
                part(module.bytes),
            ]);
        }
    }
    if functions == 0 {
        return table.to_string();
    }
    let mut largest = Table::new(["function", "bytes", "of all"]);
    for function in size.functions.iter().take(functions) {
        largest.row([
            function.name.clone(),
            function.bytes.to_string(),
            part(function.bytes),
        ]);
    }
    format!("{table}\n{largest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_size::{CrateSize, FunctionSize, ModuleSize};

    #[test]
    fn modules_stand_below_their_crate() {
        let module = |name: &str, bytes| ModuleSize {
            name: name.to_owned(),
            bytes,
        };
        let size = CodeSize {
            text: 200,
            crates: vec![
                CrateSize {
                    name: "one".to_owned(),
                    bytes: 150,
                    modules: vec![module("one::a", 100), module("one::b", 50)],
                },
                CrateSize {
                    name: "two".to_owned(),
                    bytes: 50,
                    modules: vec![module("two", 50)],
                },
            ],
            functions: vec![FunctionSize {
                name: "one::a::f".to_owned(),
                bytes: 100,
            }],
        };
        assert_eq!(
            tables(&size, 0),
            "crate, module  bytes   of all\n\
             .text            200  100.0 %\n\
             one              150   75.0 %\n\
             \x20 one::a         100   50.0 %\n\
             \x20 one::b          50   25.0 %\n\
             two               50   25.0 %\n"
        );
        let with_functions = tables(&size, 5);
        assert!(
            with_functions.ends_with("one::a::f    100  50.0 %\n"),
            "{with_functions}"
        );
    }
}
