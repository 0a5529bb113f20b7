//! CSR instructions: what each register's number leads to, who may access it, and what follows from a write.
//!
//! [`table`] holds a row for each CSR: number, name, guard, read, write. The state behind them is [`crate::csr`].

mod access;
mod delegation;
mod indirect;
mod interrupts;
mod permission;
mod row;
mod rows;
mod table;

pub use access::{CsrOperation, Next};
pub use table::name;
