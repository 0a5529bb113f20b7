//! What an instruction gives that may fault harmlessly, in two registers.

/// The value, unless it faulted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub value: u64,
    /// Not 0 where it faulted; `value` is nothing then.
    pub faulted: u64,
}
