//! Random systems, how far each policy stays behind the best one of each (regret), and what it leaves to each VM of its floor.

mod draw;
mod floor;
mod guest;
mod regret;
#[cfg(test)]
mod tests;

pub use draw::{Drawn, draw, milliseconds};
pub use floor::{Floor, FloorRatio, FloorRow, alone};
pub use regret::{Regret, Row};
