//! Random systems, and how far each policy stays behind the best one of each: regret.

mod draw;
mod guest;
mod regret;
#[cfg(test)]
mod tests;

pub use draw::{Drawn, draw, milliseconds};
pub use regret::{Regret, Row};
