//! Former words of the command line, which are refused with the present ones.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Former and present names of options.
const OPTIONS: [(&str, &str); 6] = [
    ("--passages", "--exit-latency"),
    ("--steady", "--steady-state"),
    ("--gear", "--mode"),
    ("--guest-files", "--guest-interrupt-files"),
    ("--again", "--rebuild"),
    ("--every", "--interval"),
];

/// The error with the present name, if a former one is what is wrong.
pub fn with_present_name(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let mut options = OPTIONS.iter();
    match options.find(|(former, _)| former == given) {
        Some((former, present)) if error.kind() == ErrorKind::UnknownArgument => clap::Error::raw(
            ErrorKind::UnknownArgument,
            format!("the option {former} is called {present} now\n"),
        ),
        _ => error,
    }
}
