//! Pictures: SVG inside one HTML file that needs no other, legible in light and in dark.

mod beside;
mod card;
mod distribution;
mod frame;
pub mod lanes;
mod lines;
mod page;
mod scale;
mod scatter;
mod shares;
#[cfg(test)]
mod tests;

pub use beside::{Pair, beside, beside_marks};
pub use card::{Card, Mark};
pub use distribution::{distribution, quantiles, service};
pub use lines::{Band, Line, lines};
pub(crate) use page::colour;
pub use page::{Page, escape};
pub use scale::Scale;
pub use scatter::{Points, scatter};
pub use shares::shares;
