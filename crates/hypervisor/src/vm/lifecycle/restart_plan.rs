//! A run that follows another one, as the operator reads it.

use core::fmt;

use abi::monitor::StopReason;

use super::backoff::Milliseconds;

/// Run that follows another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPlan {
    /// Reason for which the last run failed, if it did.
    pub failed: Option<StopReason>,
    /// Time until it begins.
    pub wait: Milliseconds,
    /// Short runs in a row before it.
    pub short_runs: u32,
}

/// The operator's line about a restart. A guest brings restarts about, so nothing here allocates.
impl fmt::Display for RestartPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = self.failed {
            write!(formatter, "failed ({reason}), ")?;
        }
        formatter.write_str("starts anew")?;
        if self.wait.0 > 0 {
            let Self {
                wait, short_runs, ..
            } = self;
            write!(
                formatter,
                " in {} ms, after {short_runs} short runs in a row",
                wait.0
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::fmt::Write as _;

    use std::string::String;

    use super::*;
    use crate::heap::allocations;

    #[test]
    fn delayed_restarts_are_told_without_allocating() {
        let plan = RestartPlan {
            failed: None,
            wait: Milliseconds(250),
            short_runs: 4,
        };
        let mut text = String::with_capacity(80);
        let count = allocations(|| write!(text, "{plan}").unwrap());
        assert_eq!(count, 0);
        assert_eq!(text, "starts anew in 250 ms, after 4 short runs in a row");
    }
}
