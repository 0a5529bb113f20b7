//! The command line: `exercise=NAME key=value ...`, as it stands in the device tree's `bootargs`.

use core::fmt;

/// Mistake in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentError<'a> {
    /// A word without `=`.
    NotAPair(&'a str),
    /// The exercise has no parameter of this name.
    UnknownKey(&'a str),
    /// A parameter is given by a name that it had before.
    FormerKey {
        former: &'static str,
        present: &'static str,
    },
    /// The value is not a whole number that fits in 64 bits.
    NotANumber { key: &'a str, value: &'a str },
    /// The value is none of those that the parameter takes.
    NotAChoice { key: &'a str, value: &'a str },
    /// The value is outside the parameter's range, both ends of which are named.
    OutOfRange {
        key: &'a str,
        value: u64,
        low: u64,
        high: u64,
    },
}

impl fmt::Display for ArgumentError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair(word) => write!(formatter, "`{word}` is not key=value"),
            Self::UnknownKey(key) => write!(formatter, "unknown parameter `{key}`"),
            Self::FormerKey { former, present } => {
                write!(
                    formatter,
                    "the parameter `{former}` is now called `{present}`"
                )
            }
            Self::NotANumber { key, value } => {
                write!(
                    formatter,
                    "{key}={value} is not a whole number (suffixes k, m, g; 0x for hex)"
                )
            }
            Self::NotAChoice { key, value } => {
                write!(formatter, "{key}={value} is not a known value")
            }
            Self::OutOfRange {
                key,
                value,
                low,
                high,
            } => {
                write!(formatter, "{key}={value} is outside {low}..={high}")
            }
        }
    }
}

/// Former names of parameters, with the present ones.
const FORMER: [(&str, &str); 2] = [("touches", "references"), ("identifiers", "asids")];

/// A command line, split at white space into `key=value` pairs. A later pair overrides an earlier one.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    line: &'a str,
}

impl<'a> Arguments<'a> {
    /// Takes a command line.
    ///
    /// # Errors
    /// A word that is not `key=value`.
    pub fn parse(line: &'a str) -> Result<Self, ArgumentError<'a>> {
        match line
            .split_ascii_whitespace()
            .find(|word| !word.contains('='))
        {
            Some(word) => Err(ArgumentError::NotAPair(word)),
            None => Ok(Self { line }),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.line
            .split_ascii_whitespace()
            .filter_map(|word| word.split_once('='))
    }

    /// The value of `key`, if it is given.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs()
            .filter(|(name, _)| *name == key)
            .last()
            .map(|(_, value)| value)
    }

    /// The number that `key` names, or `default` where it is not given.
    ///
    /// # Errors
    /// A value that is not a number, or lies outside `low..=high`.
    pub fn number(
        &self,
        key: &'static str,
        default: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, ArgumentError<'a>> {
        let Some(value) = self.get(key) else {
            return Ok(default);
        };
        let number = parse_number(value).ok_or(ArgumentError::NotANumber { key, value })?;
        if (low..=high).contains(&number) {
            Ok(number)
        } else {
            Err(ArgumentError::OutOfRange {
                key,
                value: number,
                low,
                high,
            })
        }
    }

    /// The one of `choices` that `key` names, or `default` where it is not given.
    ///
    /// # Errors
    /// A value that is not among the choices.
    pub fn choice<T: Copy>(
        &self,
        key: &'static str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T, ArgumentError<'a>> {
        let Some(value) = self.get(key) else {
            return Ok(default);
        };
        choices
            .iter()
            .find(|(name, _)| *name == value)
            .map(|(_, choice)| *choice)
            .ok_or(ArgumentError::NotAChoice { key, value })
    }

    /// Checks that every key is one of `known`.
    ///
    /// # Errors
    /// The first key that is not.
    pub fn only(&self, known: &[&str]) -> Result<(), ArgumentError<'a>> {
        let Some((key, _)) = self.pairs().find(|(key, _)| !known.contains(key)) else {
            return Ok(());
        };
        match FORMER.iter().find(|(former, _)| *former == key) {
            Some(&(former, present)) => Err(ArgumentError::FormerKey { former, present }),
            None => Err(ArgumentError::UnknownKey(key)),
        }
    }
}

/// Reads a whole number: decimal or `0x` hexadecimal, with an optional suffix k, m or g (powers of 1024).
fn parse_number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let (digits, unit) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (text.get(..text.len() - 1)?, 1 << 10),
        b'm' => (text.get(..text.len() - 1)?, 1 << 20),
        b'g' => (text.get(..text.len() - 1)?, 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_values_counts() {
        let arguments = Arguments::parse("exercise=fuzz seed=1 seed=2").unwrap();
        assert_eq!(arguments.get("seed"), Some("2"));
        assert_eq!(arguments.get("count"), None);
    }

    #[test]
    fn numbers_take_units_and_hexadecimal() {
        let arguments = Arguments::parse("a=2k b=0xff c=3M d=x e=18446744073709551615k").unwrap();
        let number = |key| arguments.number(key, 7, 0, u64::MAX);
        assert_eq!(number("a"), Ok(2048));
        assert_eq!(number("b"), Ok(255));
        assert_eq!(number("c"), Ok(3 << 20));
        assert_eq!(number("missing"), Ok(7));
        assert_eq!(
            number("d"),
            Err(ArgumentError::NotANumber {
                key: "d",
                value: "x"
            })
        );
        assert!(number("e").is_err());
    }

    #[test]
    fn a_number_outside_its_range_is_refused() {
        let arguments = Arguments::parse("n=9").unwrap();
        assert_eq!(
            arguments.number("n", 1, 0, 8),
            Err(ArgumentError::OutOfRange {
                key: "n",
                value: 9,
                low: 0,
                high: 8
            })
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            Arguments::parse("quiet").err(),
            Some(ArgumentError::NotAPair("quiet"))
        );
        let arguments = Arguments::parse("exercise=ipi cuont=3").unwrap();
        assert_eq!(
            arguments.only(&["exercise", "count"]),
            Err(ArgumentError::UnknownKey("cuont"))
        );
        assert_eq!(
            Arguments::parse("touches=1").unwrap().only(&["references"]),
            Err(ArgumentError::FormerKey {
                former: "touches",
                present: "references"
            })
        );
        assert!(arguments.choice("exercise", 0, &[("fuzz", 1)]).is_err());
        assert_eq!(arguments.choice("exercise", 0, &[("ipi", 2)]), Ok(2));
    }
}
