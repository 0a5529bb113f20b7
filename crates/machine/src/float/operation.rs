//! Operations of the host's floating point.

/// An operation for which the host's arithmetic may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostOperation {
    /// a + b
    Add,
    /// a − b
    Subtract,
    /// a × b
    Multiply,
    /// a ÷ b
    Divide,
    /// √a; b is ignored
    SquareRoot,
}
