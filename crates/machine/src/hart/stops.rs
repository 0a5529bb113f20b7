//! Where a debugger wants a hart to stop.

use super::{Hart, Wait};

/// Why a hart has stopped for the debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// At a breakpoint.
    Breakpoint,
    /// After a step.
    Step,
}

/// Where a debugger wants a hart to stop.
#[derive(Debug, Clone, Default)]
pub struct Stops {
    /// Addresses, in order.
    pub(crate) breakpoints: Vec<u64>,
    /// After the next instruction or trap.
    pub(crate) step: bool,
    /// True if gdb has named the hart among those that go on.
    pub(crate) named: bool,
    /// Before the next one: other harts go on alone.
    pub(crate) held: bool,
    /// pc and instructions retired when the hart went on last.
    pub(crate) from: (u64, u64),
    /// Why it has stopped.
    pub(crate) reached: Option<Reached>,
}

impl Stops {
    /// Tests whether every instruction has to be looked at.
    pub(crate) const fn are_close(&self) -> bool {
        self.step || !self.breakpoints.is_empty()
    }
}

impl Hart {
    /// Tests whether the debugger wants the hart to stop before the next instruction; if not, lets it
    /// execute no more than that one before it asks again.
    pub(crate) fn stops_here(&mut self) -> bool {
        let (pc, retired) = (self.pc, self.retired);
        let Some(stops) = &mut self.stops else {
            return false;
        };
        if stops.reached.is_some() {
            return true;
        }
        if stops.from != (pc, retired) {
            if stops.breakpoints.binary_search(&pc).is_ok() {
                stops.reached = Some(Reached::Breakpoint);
            } else if stops.step {
                stops.reached = Some(Reached::Step);
            }
        }
        if stops.are_close() {
            self.deadlines.lower(self.cycles + 1);
        }
        stops.reached.is_some()
    }

    /// Tests whether the hart has stopped for the debugger, or a step has led it into waiting.
    pub(crate) fn has_stopped(&mut self) -> bool {
        let waits = self.wait != Wait::Nothing;
        let moved = (self.pc, self.retired);
        let Some(stops) = &mut self.stops else {
            return false;
        };
        if waits && stops.step && stops.from != moved {
            stops.reached = Some(Reached::Step);
        }
        stops.reached.is_some()
    }

    /// Tests whether the debugger does not let the hart run at all.
    pub(crate) fn is_held(&self) -> bool {
        self.stops.as_ref().is_some_and(|stops| stops.held)
    }
}
