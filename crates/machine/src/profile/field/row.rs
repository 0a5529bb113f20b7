//! Rows of the tables of keys.

/// Type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number from one bound to the other.
    Number(u64, u64),
    /// A list of whole numbers.
    Numbers,
    /// True or false.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

pub(super) type Row = (&'static str, ValueKind, &'static str, &'static str);

/// Most cycles that anything may cost: far beyond use, and far from where sums overflow.
pub(super) const MAX_CYCLES: u64 = 1_000_000_000;
/// Longest time that anything may take: an hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

pub(super) const fn number(
    name: &'static str,
    (least, most): (u64, u64),
    unit: &'static str,
    about: &'static str,
) -> Row {
    (name, ValueKind::Number(least, most), unit, about)
}

pub(super) const fn cycles(name: &'static str, about: &'static str) -> Row {
    number(name, (0, MAX_CYCLES), "cycles", about)
}

pub(super) const fn time(name: &'static str, about: &'static str) -> Row {
    number(name, (0, HOUR), "ns", about)
}

pub(super) const fn flag(name: &'static str, about: &'static str) -> Row {
    (name, ValueKind::Flag, "", about)
}
