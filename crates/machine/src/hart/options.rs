//! Fields of CSRs that ratified options bring, and what follows from them in a mode.

use super::{Hart, Mode, Privilege};
use crate::csr::field::{envcfg, security, status};

impl Hart {
    /// Fields that options set at reset.
    pub(crate) const fn reset_options(&mut self) {
        let traps = self.extension.options.machine_double_traps;
        self.csrs.mstatus |= choose(traps, status::MDT);
    }

    /// Fields that menvcfg can have, and henvcfg, without CDE, as far as menvcfg lets it.
    pub(crate) const fn environment_fields(&self) -> u64 {
        let options = &self.extension.options;
        let absent = choose(!self.extension.svadu, envcfg::ADUE)
            | choose(!options.counter_delegation, envcfg::CDE)
            | choose(!options.double_traps, envcfg::DTE)
            | choose(!options.landing_pads, envcfg::LPE)
            | choose(!options.shadow_stacks, envcfg::SSE);
        envcfg::MACHINE & !absent
    }

    /// Fields that senvcfg has now: without SSE where a mode above takes it away.
    pub(crate) const fn user_environment_fields(&self) -> u64 {
        let csrs = &self.csrs;
        let above = if self.mode.virtualized {
            csrs.henvcfg
        } else {
            csrs.menvcfg
        };
        envcfg::SUPERVISOR | self.environment_fields() & envcfg::LPE | above & envcfg::SSE
    }

    /// Writable fields of mstatus.
    pub(crate) const fn machine_status_fields(&self) -> u64 {
        let options = &self.extension.options;
        let pads = choose(options.landing_pads, status::MPELP);
        let traps = choose(options.machine_double_traps, status::MDT);
        status::MACHINE | self.supervisor_status_fields() | pads | traps
    }

    /// Writable fields of sstatus.
    pub(crate) const fn supervisor_status_fields(&self) -> u64 {
        let pads = choose(self.extension.options.landing_pads, status::SPELP);
        let traps = choose(self.csrs.menvcfg & envcfg::DTE != 0, status::SDT);
        status::SUPERVISOR | pads | traps
    }

    /// Writable fields of vsstatus.
    pub(crate) const fn guest_status_fields(&self) -> u64 {
        let pads = choose(self.extension.options.landing_pads, status::SPELP);
        let traps = choose(self.csrs.henvcfg & envcfg::DTE != 0, status::SDT);
        status::SUPERVISOR | pads | traps
    }

    /// After a write of menvcfg or henvcfg: SDT is zero where there are no double traps.
    pub(crate) const fn clear_disabled_traps(&mut self) {
        let csrs = &mut self.csrs;
        csrs.mstatus &= !choose(csrs.menvcfg & envcfg::DTE == 0, status::SDT);
        csrs.vsstatus &= !choose(csrs.henvcfg & envcfg::DTE == 0, status::SDT);
    }

    /// Tests whether a trap to a mode is unexpected, since its handler has not got on far enough yet ("Double Trap Control" of
    /// mstatus and of sstatus).
    pub(super) const fn is_unexpected(&self, to: Mode) -> bool {
        let csrs = &self.csrs;
        let disabled = match (to.privilege, to.virtualized) {
            (Privilege::Machine, _) => csrs.mstatus & status::MDT,
            (_, false) => csrs.mstatus & status::SDT,
            (_, true) => csrs.vsstatus & status::SDT,
        };
        disabled != 0
    }

    /// xLPE: tests whether indirect jumps in a mode have to lead to landing pads ("Landing-Pad-Enabled (LPE) State").
    pub(super) const fn lands_on_pads(&self, mode: Mode) -> bool {
        let csrs = &self.csrs;
        match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => csrs.mseccfg & security::MLPE != 0,
            (Privilege::Supervisor, false) => csrs.menvcfg & envcfg::LPE != 0,
            (Privilege::Supervisor, true) => csrs.henvcfg & envcfg::LPE != 0,
            (Privilege::User, _) => csrs.senvcfg & envcfg::LPE != 0,
        }
    }

    /// xSSE: tests whether shadow stacks are active in a mode ("Shadow-Stack-Enabled (SSE) State").
    pub(super) const fn has_shadow_stack(&self, mode: Mode) -> bool {
        let csrs = &self.csrs;
        let above = if mode.virtualized {
            csrs.henvcfg
        } else {
            csrs.menvcfg
        };
        let enabled = match mode.privilege {
            Privilege::Machine => 0,
            Privilege::Supervisor => above,
            Privilege::User => above & csrs.senvcfg,
        };
        enabled & envcfg::SSE != 0
    }
}

const fn choose(condition: bool, bits: u64) -> u64 {
    if condition { bits } else { 0 }
}
