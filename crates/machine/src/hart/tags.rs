//! Table of context tags: one for each view.

use crate::base::Mode;

/// Number of different views: five modes, pointer masking, SUM, and MXR of both levels.
pub(super) const VIEWS: usize = Mode::COUNT * 16;
/// A tag that has not been looked up.
pub(super) const UNKNOWN: u64 = u64::MAX;
