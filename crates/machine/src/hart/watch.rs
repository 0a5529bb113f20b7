//! Watched harts, which execute one by one: debug triggers, and the landing pad that is expected.
//!
//! While nothing is armed in the mode of the hart, nothing of this costs time.

use super::{Access, Cause, Exception, Hart, Privilege, Trapped};
use crate::csr::Matched;
use crate::csr::field::status;
use crate::translation::NEVER;

/// LPAD without its label: AUIPC to x0.
const LANDING_PAD: u32 = 0x17;
/// xtval of a software check: landing pad fault.
const LANDING_PAD_FAULT: u64 = 2;

impl Hart {
    /// Brings up to date whether every instruction is looked at, after the tags of accesses are.
    pub(super) fn refresh_watch(&mut self) {
        self.triggered = self.csrs.triggers.are_armed(self.mode);
        self.watched = self.triggered || self.csrs.landing_pad_expected;
        self.landing_pads = self.lands_on_pads(self.mode).into();
        self.shadow_stacks = self.has_shadow_stack(self.mode).into();
        if self.triggered {
            // No access takes the short way.
            self.data_tag = NEVER;
        }
    }

    /// Tests whether breakpoints of triggers are raised now: not where the trap could come in the middle of the handler that
    /// takes it ("Native Triggers", the first of two solutions).
    fn may_trigger(&self) -> bool {
        let csrs = &self.csrs;
        let delegated = |register: u64| register >> Cause::Breakpoint as u64 & 1 != 0;
        match (self.mode.privilege, self.mode.virtualized) {
            (Privilege::Machine, _) => csrs.mstatus & status::MIE != 0,
            (Privilege::Supervisor, false) => {
                !delegated(csrs.medeleg) || csrs.mstatus & status::SIE != 0
            }
            (Privilege::Supervisor, true) => {
                !delegated(csrs.medeleg)
                    || !delegated(csrs.hedeleg)
                    || csrs.vsstatus & status::SIE != 0
            }
            (Privilege::User, _) => true,
        }
    }

    /// Looks at the triggers before an instruction is fetched.
    ///
    /// # Errors
    /// [`Trapped`] with a breakpoint.
    pub(crate) fn begin_watched(&mut self) -> Result<(), Trapped> {
        if !self.triggered {
            return Ok(());
        }
        let may_trigger = self.may_trigger();
        if self.csrs.triggers.begin(self.mode, may_trigger) {
            self.refresh_context();
            return Err(self.raise(Exception::new(Cause::Breakpoint, 0)));
        }
        self.check_triggers(Access::Fetch, self.pc, 0)
    }

    /// Tests whether an instruction at pc, with its encoding, is the landing pad that is expected, if one is ("Landing Pad
    /// Instruction").
    ///
    /// # Errors
    /// [`Trapped`] with a software check.
    pub(crate) fn land(&mut self, raw: u32) -> Result<(), Trapped> {
        if !self.csrs.landing_pad_expected {
            return Ok(());
        }
        let label = raw >> 12;
        let expected = (self.x[7] >> 12) as u32 & 0xf_ffff;
        let is_pad = raw & 0xfff == LANDING_PAD && self.pc.is_multiple_of(4);
        if !is_pad || label != 0 && label != expected {
            return Err(self.raise(Exception::new(Cause::SoftwareCheck, LANDING_PAD_FAULT)));
        }
        self.csrs.landing_pad_expected = false;
        self.refresh_watch();
        Ok(())
    }

    /// An indirect jump has retired, and must have led to a landing pad.
    pub(crate) fn expect_landing_pad(&mut self) {
        self.csrs.landing_pad_expected = true;
        self.refresh_watch();
    }

    /// An instruction of a watched hart has retired.
    pub(crate) fn end_watched(&mut self, mode: super::Mode) {
        if self.csrs.triggers.count(mode) {
            self.refresh_context();
        }
    }

    /// Looks at the triggers before an access, or an instruction.
    ///
    /// # Errors
    /// [`Trapped`] with a breakpoint.
    #[inline]
    pub(crate) fn check_triggers(
        &mut self,
        access: Access,
        address: u64,
        size: u64,
    ) -> Result<(), Trapped> {
        if !self.triggered || !self.may_trigger() {
            return Ok(());
        }
        let matched = Matched {
            access,
            address,
            size,
        };
        if !self.csrs.triggers.fire(self.mode, matched) {
            return Ok(());
        }
        let guest = self.mode.virtualized;
        Err(self.raise(Exception::at(Cause::Breakpoint, address, guest)))
    }
}
