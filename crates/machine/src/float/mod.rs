//! Floating point of RISC-V's F, D, Zfh and Zfa extensions in integer arithmetic.
//!
//! Every function takes and returns bit patterns and adds the flags that it raises to the `flags`
//! it is given (they accrue, as in `fflags`). Results are RISC-V's: NaN results are the canonical
//! NaN, tininess is detected after rounding (RISC-V ISA manual, "F" extension, NaN Generation
//! and Propagation; Subnormal Arithmetic). No result depends on the host.

mod arithmetic;
mod compare;
mod convert;
mod format;
mod integral;
mod operation;
mod round;
mod shortcut;
#[cfg(test)]
mod tests;

pub use arithmetic::{add, divide, multiply, multiply_add, square_root, subtract};
pub use compare::{
    classify, equal, less, less_or_equal, less_or_equal_quiet, less_quiet, maximum, maximum_or_nan,
    minimum, minimum_or_nan, negate, sign_inject, sign_inject_negated, sign_inject_xor,
};
pub use convert::{
    box_half, box_single, from_signed, from_unsigned, narrow, reformat, to_i32, to_i64, to_signed,
    to_u32, to_u64, to_unsigned, unbox_half, unbox_single, widen,
};
pub use format::{F16, F32, F64, Flags, Format, Rounding};
pub use integral::{constant, round_to_integer, to_i32_modular};
pub use operation::HostOperation;
