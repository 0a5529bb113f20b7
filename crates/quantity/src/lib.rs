//! Amounts with their units: `512 MiB`, `5 ms`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fmt;

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub u64);

/// Units of sizes, largest first.
const SIZES: &[(&str, u64)] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
/// Units of times, largest first.
const TIMES: &[(&str, u64)] = &[
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Bytes {
    /// Reads a size such as `512 MiB`; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text, SIZES).map(Self)
    }

    /// The units that are understood.
    pub fn units() -> String {
        units(SIZES)
    }
}

impl Duration {
    /// Reads a time such as `5 ms`; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text, TIMES).map(Self)
    }

    /// The units that are understood.
    pub fn units() -> String {
        units(TIMES)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_micros(duration.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.0, SIZES))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.0, TIMES))
    }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// In the largest unit of which it is a whole number.
fn show(amount: u64, units: &[(&str, u64)]) -> String {
    let unit = units
        .iter()
        .find(|(_, factor)| amount >= *factor && amount.is_multiple_of(*factor));
    match unit.or(units.last()) {
        Some((name, factor)) => format!("{} {name}", amount / factor),
        None => amount.to_string(),
    }
}

fn units(units: &[(&str, u64)]) -> String {
    units
        .iter()
        .rev()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        assert_eq!(Bytes::parse("512 MiB"), Some(Bytes(512 << 20)));
        assert_eq!(Bytes::parse(" 1GiB "), Some(Bytes(1 << 30)));
        assert_eq!(Duration::parse("2 min"), Some(Duration(120_000_000)));
        for bad in [
            "",
            "512",
            "MiB",
            "-1 MiB",
            "1.5 GiB",
            "1 MB",
            "99999999999999999999 B",
        ] {
            assert_eq!(Bytes::parse(bad), None, "{bad}");
        }
        assert_eq!(Bytes::parse("99999999999999 GiB"), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(amount in any::<u64>()) {
            prop_assert_eq!(Bytes::parse(&Bytes(amount).to_string()), Some(Bytes(amount)));
            prop_assert_eq!(Duration::parse(&Duration(amount).to_string()), Some(Duration(amount)));
        }
    }
}
