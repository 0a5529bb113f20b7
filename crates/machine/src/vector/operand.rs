//! Operands of an instruction that computes element by element.

use super::vtype::Width;

/// Operands of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands {
    /// SEW.
    pub width: Width,
    /// Element of vd.
    pub old: u64,
    /// Element of vs2.
    pub a: u64,
    /// Element of vs1, or the scalar.
    pub b: u64,
    /// Bit of v0.
    pub bit: bool,
}

/// Which elements of the body are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that the mask lets take part.
    Active,
    /// All: if the instruction reads v0, it is an operand.
    All,
}
