//! Result, in two registers, of an instruction that may fault harmlessly.

/// The value, unless it faulted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub value: u64,
    /// Not 0 if it faulted; `value` is meaningless then.
    pub faulted: u64,
}
