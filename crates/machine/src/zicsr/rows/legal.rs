//! Legal values that rows of several levels share.

/// CSRs of which the lower half exists: counter enables, xtinst.
pub(super) const WORD: u64 = 0xffff_ffff;
/// *iselect: as many values as siselect and vsiselect must hold at least (Sscsrind).
pub(super) const SELECT: u64 = 0xfff;

/// xepc: instructions are aligned to two bytes.
pub(super) const EPC: u64 = !1;

/// xtvec: modes other than direct and vectored are not kept.
pub(super) const fn vector(old: u64, value: u64) -> u64 {
    if value & 2 == 0 {
        value
    } else {
        value & !3 | old & 3
    }
}
