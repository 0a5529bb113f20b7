//! Permission to access a CSR, and the exception without it.
//!
//! Privileged specification, "CSR Address Mapping Conventions", "Counter-Enable Registers",
//! hypervisor extension, "Trap Cause Codes" (virtual instruction), Smstateen, Sstc; AIA, "Virtual
//! instruction exceptions" and "Access control by the state-enable CSRs".

use super::row::{Guard, Presence, Row};
use crate::base::{Cause, Mode, PmpEntries, Privilege};
use crate::csr::field::{envcfg, hstatus, hvictl, security, stateen, status};
use crate::csr::number as csr;
use crate::hart::Hart;

/// Refusal of an access: the exception to raise.
pub type Refused = Cause;

const ILLEGAL: Refused = Cause::IllegalInstruction;
const VIRTUAL: Refused = Cause::VirtualInstruction;

/// TM of mcounteren and hcounteren: time, stimecmp.
const TM: u64 = 2;

impl Hart {
    /// Decides whether the present mode may access a CSR.
    ///
    /// # Errors
    /// The cause of the exception that the access raises.
    #[inline]
    pub(super) fn check_csr(&self, row: &Row, number: u16, write: bool) -> Result<(), Refused> {
        let missing = match row.presence {
            Presence::Always => false,
            Presence::Custom(present) => !present(&self.extension.present),
            Presence::Option(present) => !present(&self.extension.options),
            Presence::Vector => !self.vector.exists(),
            Presence::ManyPmpEntries => self.csrs.pmp.entries() <= usize::from(PmpEntries::MIN),
        };
        if missing || (write && number >> 10 == 3) {
            return Err(ILLEGAL);
        }
        let mode = self.mode();
        let needed = number >> 8 & 3;
        let granted = match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => {
                return match row.guard {
                    Guard::Float if self.float_off => Err(ILLEGAL),
                    Guard::Vector if self.vector_off => Err(ILLEGAL),
                    Guard::Seed if !write => Err(ILLEGAL),
                    Guard::Delegation if !self.delegates_counters() => Err(ILLEGAL),
                    _ => Ok(()),
                };
            }
            (Privilege::Supervisor, false) => 2,
            (Privilege::Supervisor, true) => 1,
            (Privilege::User, _) => 0,
        };
        if needed == 3 {
            return Err(ILLEGAL);
        }
        // Virtual-instruction exceptions are for what HS-mode could do.
        match row.guard {
            Guard::State(bits) => self.check_state_enable(number, 0, bits)?,
            Guard::StateBank => self.check_state_enable(number, number - row.first, stateen::SE)?,
            Guard::Timer => self.check_machine_timer()?,
            Guard::Delegation if !self.delegates_counters() => return Err(ILLEGAL),
            Guard::Overflows if mode.virtualized && self.delegates_counters() => {
                return Err(VIRTUAL);
            }
            _ => {}
        }
        if needed > granted {
            return Err(if mode.virtualized { VIRTUAL } else { ILLEGAL });
        }
        match row.guard {
            Guard::Float if self.float_off => Err(ILLEGAL),
            Guard::Vector if self.vector_off => Err(ILLEGAL),
            Guard::Counter => self.check_counter(number - csr::CYCLE),
            Guard::Translation => self.check_trapped_translation(number),
            Guard::Timer => self.check_timer(number, write),
            Guard::Seed => self.check_seed(write),
            Guard::Delegation if mode.virtualized => Err(VIRTUAL),
            Guard::ShadowStack => self.check_shadow_stack(),
            Guard::VirtualInterrupts if mode.virtualized && self.csrs.hvictl & hvictl::VTI != 0 => {
                Err(VIRTUAL)
            }
            _ => Ok(()),
        }
    }

    /// Smstateen.
    fn check_state_enable(&self, number: u16, bank: u16, bits: u64) -> Result<(), Refused> {
        let enabled = |bank_values: &[u64; 4]| {
            bank_values
                .get(usize::from(bank))
                .is_some_and(|value| value & bits != 0)
        };
        if !enabled(&self.csrs.mstateen) {
            return Err(ILLEGAL);
        }
        // What VS-mode calls by its S-level name is also guarded by hstateen.
        let supervisor_name = number >> 8 & 3 == 1;
        if self.mode().virtualized && supervisor_name && !enabled(&self.csrs.hstateen) {
            return Err(VIRTUAL);
        }
        Ok(())
    }

    fn check_counter(&self, counter: u16) -> Result<(), Refused> {
        let mode = self.mode();
        let enabled = |register: u64| register >> counter & 1 != 0;
        if !enabled(self.csrs.mcounteren) {
            return Err(ILLEGAL);
        }
        if mode.virtualized && !enabled(self.csrs.hcounteren) {
            return Err(VIRTUAL);
        }
        if mode.privilege == Privilege::User && !enabled(self.csrs.scounteren) {
            return Err(if mode.virtualized { VIRTUAL } else { ILLEGAL });
        }
        Ok(())
    }

    /// Zicfiss, "Shadow Stack Pointer (`ssp`) CSR access control", and the same for SSAMOSWAP.
    ///
    /// # Errors
    /// The cause of the exception.
    pub(crate) fn check_shadow_stack(&self) -> Result<(), Refused> {
        let (mode, csrs) = (self.mode(), &self.csrs);
        let enabled = |register: u64| register & envcfg::SSE != 0;
        let is_user = mode.privilege == Privilege::User;
        if mode.privilege == Privilege::Machine {
            return Ok(());
        }
        if !enabled(csrs.menvcfg) {
            return Err(ILLEGAL);
        }
        if mode.virtualized {
            let allowed = enabled(csrs.henvcfg) && (!is_user || enabled(csrs.senvcfg));
            return if allowed { Ok(()) } else { Err(VIRTUAL) };
        }
        if is_user && !enabled(csrs.senvcfg) {
            return Err(ILLEGAL);
        }
        Ok(())
    }

    /// Zkr, "Entropy Source Access Control".
    const fn check_seed(&self, write: bool) -> Result<(), Refused> {
        let mode = self.mode();
        let enabled = match (mode.privilege, mode.virtualized) {
            (Privilege::User, false) => security::USEED,
            _ => security::SSEED,
        };
        if !write || self.csrs.mseccfg & enabled == 0 {
            Err(ILLEGAL)
        } else if mode.virtualized {
            Err(VIRTUAL)
        } else {
            Ok(())
        }
    }

    /// mstatus.TVM and hstatus.VTVM.
    fn check_trapped_translation(&self, number: u16) -> Result<(), Refused> {
        if self.mode() == Mode::HYPERVISOR {
            if self.csrs.mstatus & status::TVM != 0 {
                return Err(ILLEGAL);
            }
        } else if number == csr::SATP && self.csrs.hstatus & hstatus::VTVM != 0 {
            return Err(VIRTUAL);
        }
        Ok(())
    }

    /// Sstc: STCE of menvcfg and TM of mcounteren, without which no mode below M has timers.
    const fn check_machine_timer(&self) -> Result<(), Refused> {
        if self.csrs.menvcfg & envcfg::STCE == 0 || self.csrs.mcounteren & TM == 0 {
            return Err(ILLEGAL);
        }
        Ok(())
    }

    /// Sstc: STCE of henvcfg and TM of hcounteren.
    fn check_timer(&self, number: u16, write: bool) -> Result<(), Refused> {
        if self.mode().virtualized && number == csr::STIMECMP {
            let enabled = self.csrs.henvcfg & envcfg::STCE != 0 && self.csrs.hcounteren & TM != 0;
            let trapped = write && self.csrs.hvictl & hvictl::VTI != 0;
            if !enabled || trapped {
                return Err(VIRTUAL);
            }
        }
        Ok(())
    }

    /// Tests whether hstatus.HU or the mode allows HLV, HLVX and HSV.
    #[must_use]
    pub(crate) const fn may_access_guest(&self) -> bool {
        !matches!(self.mode().privilege, Privilege::User) || self.csrs.hstatus & hstatus::HU != 0
    }
}
