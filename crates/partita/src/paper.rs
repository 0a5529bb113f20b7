//! The papers' tables, repeated: what they published, what we measure, and what follows from both.

mod judge;
mod plan;
mod published;
mod show;
#[cfg(test)]
mod tests;

pub use judge::{CaseResult, Direction, EffectResult, Judgement, Size, judge};
pub use plan::{Plan, PlanError, Wanted, with_parameters};
pub use published::{
    Case, Claim, Figure, Negative, Order, PROFILE, Published, PublishedError, Setting, Variant,
};
pub use show::{document, page, show};
