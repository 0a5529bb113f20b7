//! Figures of a paper that are drawn again: curves, bars, and costs of events.

use serde::{Deserialize, Serialize};

/// A measure over another, from case to case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Curve {
    /// The figure and what it shows.
    pub title: String,
    /// The measure that is drawn across.
    pub across: String,
    /// The measure that is drawn upwards.
    pub up: String,
    /// The part of it that is shown.
    #[serde(default)]
    pub shown: Shown,
    /// The methods, a line each.
    pub methods: Vec<String>,
    /// The cases. The first is that which relative values are parts of.
    pub cases: Vec<String>,
}

/// Part of a measure that is drawn upwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Its value.
    #[default]
    Value,
    /// By how many per cent it is less than that of the method which the case compares with.
    Reduction,
    /// Its value as a part of that of the first method in the first case.
    Relative,
}

/// A whole that is divided into parts, a bar for each method.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bars {
    /// The figure and what it shows.
    pub title: String,
    /// The parts: what each is, and its measure.
    pub parts: Vec<(String, String)>,
    /// The bars: case and method. The others are shown beside the first.
    pub bars: Vec<(String, String)>,
}

/// An event's cost beside another's.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventCost {
    /// The event.
    pub event: String,
    /// Under which condition.
    pub condition: String,
    /// Where its cost is found.
    pub cost: Cost,
    /// Where that is found which it is divided by: mostly the same event's on the computer itself.
    pub beside: Cost,
    /// The paper's ratio, from and to.
    #[serde(default)]
    pub paper: Option<[f64; 2]>,
}

/// A cost: the sum of measures of a method's runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cost {
    /// The case.
    pub case: String,
    /// The method.
    pub method: String,
    /// The measures, in cycles.
    pub measures: Vec<String>,
}

/// Words for the unit in the names of measures of events.
const CYCLES: &str = "cycles";
const INSTRUCTIONS: &str = "instructions";

impl Cost {
    /// The cost in instructions instead of cycles.
    pub(super) fn in_instructions(&self) -> Self {
        let measures = self.measures.iter();
        Self {
            measures: measures
                .map(|name| name.replace(CYCLES, INSTRUCTIONS))
                .collect(),
            ..self.clone()
        }
    }
}
