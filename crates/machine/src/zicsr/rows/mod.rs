//! The CSRs of this machine, a row each, by the level that they belong to.

mod guest;
mod hypervisor;
mod machine;
mod supervisor;
mod user;
mod vector_unit;

use super::row::Row;

/// All rows.
pub(super) const TABLES: [&[Row]; 6] = [
    user::ROWS,
    vector_unit::ROWS,
    supervisor::ROWS,
    guest::ROWS,
    hypervisor::ROWS,
    machine::ROWS,
];

/// CSRs of which the lower half exists: counter enables, xtinst.
const WORD: u64 = 0xffff_ffff;
/// Width of *iselect: enough for every register that the AIA defines.
const SELECT: u64 = 0x1ff;

/// xepc: instructions are aligned to two bytes.
const EPC: u64 = !1;

/// xtvec: modes other than direct and vectored are not kept.
const fn vector(old: u64, value: u64) -> u64 {
    if value & 2 == 0 {
        value
    } else {
        value & !3 | old & 3
    }
}
