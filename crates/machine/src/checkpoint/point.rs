//! When to take a checkpoint, as a user says it.

use std::str::FromStr;

/// A point of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// Machine time reaches this many cycles.
    Cycles(u64),
    /// All harts together have retired this many instructions since reset.
    Instructions(u64),
    /// A console has shown this text.
    Text(String),
}

/// A point that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no point of a run: say cycles=N, instructions=N or text=TEXT")]
pub struct PointError(String);

impl FromStr for Point {
    type Err = PointError;

    fn from_str(text: &str) -> Result<Self, PointError> {
        let error = || PointError(text.to_owned());
        let (kind, value) = text.split_once('=').ok_or_else(error)?;
        let number = || value.replace('_', "").parse().map_err(|_| error());
        match kind {
            "cycles" => Ok(Self::Cycles(number()?)),
            "instructions" => Ok(Self::Instructions(number()?)),
            "text" if !value.is_empty() => Ok(Self::Text(value.to_owned())),
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_said_in_three_ways() {
        assert_eq!("cycles=1_000".parse(), Ok(Point::Cycles(1000)));
        assert_eq!("instructions=7".parse(), Ok(Point::Instructions(7)));
        let text = Point::Text("login: a=b".to_owned());
        assert_eq!("text=login: a=b".parse(), Ok(text));
        for wrong in ["", "7", "cycles=", "cycles=-1", "text=", "time=5"] {
            assert_eq!(wrong.parse::<Point>(), Err(PointError(wrong.to_owned())));
        }
    }
}
