//! Numbers of the specifications stand in `crates/riscv` alone.

use crate::rules::Finding;
use crate::sources::{self, Source};

/// Crate that states the numbers.
const OWNER: &str = "crates/riscv/";

/// Folders and files that state numbers of their own: what they expect is a witness against the other crates.
const WITNESSES: [&str; 4] = [
    "conformance/",
    "crates/lockstep/src/departures/",
    "crates/lockstep/src/sweep/",
    "crates/lockstep/tests/sweep.rs",
];

/// Smaller numbers under one name in two crates are a coincidence, such as a flag or a first register.
const LEAST_NUMBER: u64 = 0x10;

/// Number with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    name: String,
    value: u64,
}

/// Numbers that `crates/riscv` states.
#[derive(Debug)]
pub struct Numbers {
    all: Vec<Number>,
    /// Values of the CSRs among them.
    csrs: Vec<u64>,
}

impl Numbers {
    /// Reads the workspace's.
    pub fn of_workspace() -> Self {
        let sources = sources::with_extension("rs");
        let own = sources
            .iter()
            .filter(|source| source.path.starts_with(OWNER));
        let (mut all, mut csrs) = (Vec::new(), Vec::new());
        for source in own {
            all.extend(
                source
                    .text
                    .lines()
                    .filter_map(constant)
                    .map(|(number, _)| number),
            );
            if source.path.ends_with("csr/number.rs") {
                let listed: Vec<Number> = source
                    .text
                    .split([',', '{', '\n'])
                    .filter_map(listed)
                    .collect();
                csrs.extend(listed.iter().map(|number| number.value));
                all.extend(listed);
            }
        }
        Self { all, csrs }
    }

    /// Number of CSRs that were read.
    pub fn csrs(&self) -> usize {
        self.csrs.len()
    }

    /// Constants of a file that state one of the numbers again.
    pub fn copies(&self, source: &Source) -> Vec<Finding> {
        let exempt = |folder: &str| source.path.starts_with(folder);
        if exempt(OWNER) || WITNESSES.into_iter().any(exempt) {
            return Vec::new();
        }
        let lines = source.text.lines().enumerate();
        let copies = lines.filter_map(|(line, text)| {
            let (number, kind) = constant(text)?;
            let is_csr = kind == "u16" && text.contains("0x") && self.csrs.contains(&number.value);
            let is_copy = number.value >= LEAST_NUMBER && self.all.contains(&number);
            (is_csr || is_copy).then(|| Finding {
                owner: source.owner(),
                place: format!("{}:{}", source.path.display(), line + 1),
                text: format!("{} stands in {OWNER}", number.name),
            })
        });
        copies.collect()
    }
}

/// Constant with a literal value that a line declares, and its type.
fn constant(line: &str) -> Option<(Number, &str)> {
    let line = line.trim_start();
    let (before, rest) = line.split_once("const ")?;
    if !(before.is_empty() || before.starts_with("pub")) {
        return None;
    }
    let (name, rest) = rest.split_once(": ")?;
    let (kind, rest) = rest.split_once(" = ")?;
    let (value, _) = rest.split_once(';')?;
    Some((
        Number {
            name: name.to_owned(),
            value: literal(value)?,
        },
        kind,
    ))
}

/// Entry of the table of CSRs: a name, and a number.
fn listed(entry: &str) -> Option<Number> {
    let (name, value) = entry.trim().split_once(" = ")?;
    let is_name = name
        .chars()
        .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    is_name.then_some(Number {
        name: name.to_owned(),
        value: literal(value)?,
    })
}

fn literal(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(path: &str, text: &str) -> usize {
        let source = Source {
            path: path.into(),
            text: text.to_owned(),
        };
        Numbers::of_workspace().copies(&source).len()
    }

    #[test]
    fn copies_are_found_by_name_and_number() {
        let place = "crates/hypervisor/src/hart/mod.rs";
        assert_eq!(copies(place, "    pub const HGATP: u32 = 0x680;"), 1);
        assert_eq!(copies(place, "const SETIENUM: u64 = 0x1EDC;"), 1);
        assert_eq!(copies(place, "const TIME: u64 = 0x5449_4d45;"), 1);
        assert_eq!(copies(place, "const HGATP: u64 = 0x681;"), 0);
        assert_eq!(copies(place, "const LENGTH: u64 = 0x680;"), 0);
    }

    #[test]
    fn csr_numbers_are_found_under_any_name() {
        let line = "const REGISTER: u16 = 0x680;";
        assert_eq!(copies("crates/machine/src/lib.rs", line), 1);
        assert_eq!(copies("crates/riscv/src/csr/number.rs", line), 0);
        assert_eq!(copies("crates/lockstep/src/sweep/value.rs", line), 0);
    }
}
