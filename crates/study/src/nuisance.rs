//! Nuisance factors: what differs between two computers, two builds or two mornings, and should not decide a comparison.
//!
//! A seed is one such thing. Others are varied on purpose here, each between two levels, so that a difference that comes from where
//! code lies is not taken for one that comes from a policy (Mytkowicz, Diwan, Hauswirth and Sweeney, Producing Wrong Data Without
//! Doing Anything Obviously Wrong, 2009). [`Factor`] says what is varied, [`design`] which level a phase has, and [`Variance`]
//! which share of the spread over the phases is each factor's.

pub mod design;
mod factor;
mod rank;
mod shares;
mod structure;

pub use factor::{Factor, NuisanceError, factors, vary};
pub use shares::{Share, Variance};
