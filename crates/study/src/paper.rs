//! The papers' tables, repeated: what they published, what we measure, and what follows from both.

mod curve;
mod events;
mod exit_distribution;
mod figures;
mod gain;
mod judge;
mod model;
mod plan;
mod published;
pub mod registration;
mod rehearsal;
mod relation;
mod render;
mod result;
mod runs;
mod selection;
#[cfg(test)]
mod tests;

pub use exit_distribution::Spread;
pub(crate) use exit_distribution::draw as draw_exits;
pub use figures::{Bars, Cost, Curve, EventCost, Shown};
pub use judge::judge;
pub use plan::{Group, Plan, PlanError, Wanted, with_parameters};
pub use published::{
    Against, Case, Claim, Figure, Gain, KVM, Negative, Order, PROFILE, Part, Published,
    PublishedError, Setting, SmallestEffect, Variant, Word,
};
pub use rehearsal::{Agreement, too_few};
pub use relation::Relation;
pub use render::{Picture, document, page, show};
pub use result::{
    AbsoluteResult, BarsResult, CaseResult, ClaimResult, CurveResult, Drawn, EffectResult,
    EventCostResult, Family, GainPoint, GainResult, Judgement, ModelPoint, NegativeResult,
    Question, Size,
};
pub use selection::Selection;
