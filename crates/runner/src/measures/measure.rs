//! The definition of a measure.

/// A figure that a run can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Its name, as in `--explain`, in reports and in tables.
    pub name: &'static str,
    /// The unit, empty for pure numbers.
    pub unit: &'static str,
    /// Meaning in one line.
    pub line: &'static str,
    /// How it is computed, and where the papers define it.
    pub definition: &'static str,
    /// Direction in which it is better, if there is one.
    pub better: Better,
}

/// Which way a measure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
    /// It says what happened, not how well.
    Neither,
}

pub(super) const fn measure(
    name: &'static str,
    unit: &'static str,
    better: Better,
    line: &'static str,
    definition: &'static str,
) -> Measure {
    Measure {
        name,
        unit,
        line,
        definition,
        better,
    }
}
