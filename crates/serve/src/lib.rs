//! Parts of the program that need no Linux: its arguments, and requests as they are read.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod request;
