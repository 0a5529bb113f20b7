//! Keys in words for people: what each takes, what holds without it, and the remedy of a wrong value.

use crate::cache::BUILT_FILES;
use crate::installed::{EXERCISER, SHUFFLED};
use crate::{Bytes, Duration, FileName};
use abi::keys::{Row, Scope, Takes, Without};
use abi::system::{HIDEABLE, MAX_HARTS, MAX_NAME_LENGTH};

/// Names of the files that a system may name without a path.
pub fn built_files() -> Vec<String> {
    let built = BUILT_FILES.iter().chain(&[EXERCISER, SHUFFLED]);
    let names = built.map(|name| format!("{}{name}", FileName::BUILT));
    names.collect()
}

/// Values that a key takes, in Markdown.
pub fn takes(row: &Row) -> String {
    let code = |words: &[&str]| -> String {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    match row.takes {
        Takes::Number { .. } => format!("a whole number{}, {}", unit(row), limits(row)),
        Takes::Time { .. } => format!("a time, {} ({})", limits(row), Duration::units()),
        Takes::Word(words) => code(words),
        Takes::Flag => String::from("`true` or `false`"),
        Takes::Size { granule, .. } => {
            let granule = Bytes(granule);
            format!("a size in multiples of {granule} ({})", Bytes::units())
        }
        Takes::Name => String::from("a name"),
        Takes::Text(usize::MAX) => String::from("a text"),
        Takes::Text(most) => format!("a text of at most {most} bytes"),
        Takes::File => {
            let built = built_files();
            let built: Vec<&str> = built.iter().map(String::as_str).collect();
            format!(
                "a path from the system file's folder, or one of {}",
                code(&built)
            )
        }
        Takes::Harts => format!("a list of whole numbers, 0 to {}", MAX_HARTS - 1),
        Takes::Paths => String::from("a list of paths, each of which begins with `/`"),
        Takes::Extensions => format!("a list of some of {}", code(&HIDEABLE)),
        Takes::Table(scope) => format!("a table with the keys of `{}`", scope.path()),
        Takes::Named(scopes) => {
            let path = scopes.first().map_or("", |scope| scope.path());
            format!("named tables with the keys of `{path}`")
        }
        Takes::Tables(scopes) => {
            let path = scopes.first().map_or("", |scope| scope.path());
            format!("a list of tables with the keys of `{path}`")
        }
        Takes::NamesOr(scope) => format!(
            "a list of names (a letter, then letters, digits, - and _, at most {MAX_NAME_LENGTH}), each of which may be a table with the keys of `{}`",
            scope.path()
        ),
    }
}

/// Default of a key in a table of `scope`, in words.
pub fn without(row: &Row, scope: Scope) -> String {
    if scope.of_system().is_some_and(|scope| row.is_in(scope)) {
        return String::from("the system's");
    }
    match (row.without, row.takes) {
        (Without::Required, _) => String::from("must be given"),
        (Without::Follows(words), _) => String::from(words),
        (Without::Value(usual), Takes::Word(words)) => {
            let word = usize::try_from(usual)
                .ok()
                .and_then(|place| words.get(place));
            word.map_or_else(String::new, |word| String::from(*word))
        }
        (Without::Value(usual), Takes::Flag) => (usual != 0).to_string(),
        (Without::Value(usual), Takes::Time { .. }) => Duration(usual).to_string(),
        (Without::Value(usual), _) => usual.to_string(),
    }
}

/// The limits of a number or a time, in words.
pub(crate) fn limits(row: &Row) -> String {
    match row.takes {
        Takes::Number { min, max, .. } => format!("{min} to {max}"),
        Takes::Time { min, max } => format!("{} to {}", Duration(min), Duration(max)),
        _ => String::new(),
    }
}

fn unit(row: &Row) -> String {
    match row.takes {
        Takes::Number { unit, .. } if !unit.is_empty() => format!(" of {unit}"),
        _ => String::new(),
    }
}
