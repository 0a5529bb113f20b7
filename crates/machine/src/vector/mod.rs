//! "V", the vector extension, version 1.0: its state, and what its instructions do to it.
//!
//! Elements beyond vl and inactive ones keep what they hold, whether vtype calls them undisturbed or agnostic. Nothing here
//! knows a hart or memory: [`Issue`] is given what an instruction reads besides vector registers, and [`Transfer`] says which
//! elements of memory a load or store wants.

mod bits;
mod config;
mod convert;
mod crypto;
mod dispatch;
mod encoding;
mod estimate;
mod fixed;
mod float;
mod group;
mod integer;
mod isa;
mod issue;
mod known;
mod lane;
mod mask;
mod multiply;
mod operand;
mod permute;
mod reduce;
mod sbox;
#[cfg(test)]
mod tests;
mod transfer;
mod unit;
mod vtype;
mod widen;
mod work;

pub use encoding::{Encoding, Reserved};
pub use isa::extensions;
pub use issue::{Issue, Output};
pub use known::Known;
pub use transfer::Transfer;
pub use unit::{REGISTERS, VectorUnit};
pub use vtype::{Vtype, Width};
pub use work::{CostClass, Movement, Work};
