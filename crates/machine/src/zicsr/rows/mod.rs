//! The CSRs of this machine, a row each, by the level that they belong to.

mod guest;
mod hypervisor;
mod legal;
mod machine;
mod supervisor;
mod trigger;
mod user;
mod vector_unit;

use super::row::Row;

/// All rows.
pub(super) const TABLES: [&[Row]; 7] = [
    user::ROWS,
    vector_unit::ROWS,
    supervisor::ROWS,
    guest::ROWS,
    hypervisor::ROWS,
    machine::ROWS,
    trigger::ROWS,
];
