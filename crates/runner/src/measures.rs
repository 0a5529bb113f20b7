//! The papers' measures, each with its definition, computed from what a run reported.
//!
//! Every measure has one place: its row in `table.rs` and its value in [`fn@compute`].

mod compute;
mod costs;
mod explain;
mod figures;
mod inputs;
mod measure;
mod pause_loops;
mod renamed;
mod table;
#[cfg(test)]
mod tests;

pub use compute::{compute, relative};
pub use explain::{explain, known, show};
pub use figures::{FigureName, Figures};
pub use inputs::Inputs;
pub use measure::Better;
pub use pause_loops::{CYCLE_LIMITS, EXIT_LIMITS};
pub use table::Measure;

impl Measure {
    /// Measures that tables show unless others are asked for.
    pub const USUAL: [Self; 8] = [
        Self::Throughput,
        Self::CompletionsPerBusySecond,
        Self::GuestUtilisation,
        Self::SchedulingOverhead,
        Self::SimulationOverhead,
        Self::SpinExitsPerBusySecond,
        Self::ResponseP50,
        Self::ResponseP99,
    ];

    /// Measures that compare a run with the native one of the same work ([`relative`]).
    pub const RELATIVE: [Self; 4] = [
        Self::RelativeThroughput,
        Self::ElapsedTimeExpansion,
        Self::CpuTimeExpansion,
        Self::EventSlowdown,
    ];

    /// The measure of this name, or the family that the name belongs to.
    pub fn find(name: &str) -> Option<Self> {
        let own = |measure: &&Self| match measure.is_family() {
            true => name.len() > measure.name().len() && name.starts_with(measure.name()),
            false => measure.name() == name,
        };
        Self::ALL.iter().find(own).copied()
    }

    /// Returns whether tables show a figure of this name unless others are asked for.
    pub fn is_usual(name: &str) -> bool {
        Self::USUAL.iter().any(|measure| measure.name() == name)
    }

    fn row(self) -> &'static measure::Row {
        &Self::ROWS[self as usize]
    }

    /// Name in options, reports and tables. The name of a family ends in `.`; a member's name follows the dot.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Unit, empty for pure numbers.
    pub fn unit(self) -> &'static str {
        self.row().unit
    }

    /// Unit of the figure of this name, empty for pure numbers and for names without a measure.
    pub fn unit_of(name: &str) -> &'static str {
        Self::find(name).map_or("", Self::unit)
    }

    /// Direction in which the measure is better.
    pub fn better(self) -> Better {
        self.row().better
    }

    /// Meaning in one line.
    pub fn line(self) -> &'static str {
        self.row().line
    }

    /// Computation, and the section of the paper that defines the measure.
    pub fn definition(self) -> &'static str {
        self.row().definition.trim_start()
    }

    /// Returns whether the measure is a family with a figure for each member.
    pub fn is_family(self) -> bool {
        self.name().ends_with('.')
    }
}
