//! Who may access which CSR, and which exception it is otherwise.
//!
//! Privileged specification, "CSR Address Mapping Conventions", "Counter-Enable Registers",
//! hypervisor extension, "Trap Cause Codes" (virtual instruction), Smstateen, Sstc; AIA, "Virtual
//! instruction exceptions" and "Access control by the state-enable CSRs".

use super::field::{envcfg, hstatus, hvictl, stateen, status};
use super::number as csr;
use crate::hart::{Cause, Hart, Mode, Privilege};

/// Refusal of an access: the exception to raise.
pub type Refused = Cause;

const ILLEGAL: Refused = Cause::IllegalInstruction;
const VIRTUAL: Refused = Cause::VirtualInstruction;

/// TM of mcounteren and hcounteren: time, stimecmp.
const TM: u64 = 2;

/// Whether the CSR exists in this machine.
const fn exists(number: u16) -> bool {
    matches!(
        number,
        csr::FFLAGS..=csr::FCSR
            | csr::CYCLE..=csr::HPMCOUNTER31
            | csr::SSTATUS
            | csr::SIE..=csr::SCOUNTEREN
            | csr::SENVCFG
            | csr::SSTATEEN0..=csr::SSTATEEN3
            | csr::SSCRATCH..=csr::SIP
            | csr::STIMECMP
            | csr::SISELECT
            | csr::SIREG
            | csr::STOPEI
            | csr::SATP
            | csr::SCOUNTOVF
            | csr::STOPI
            | csr::HSTATUS
            | csr::HEDELEG..=csr::HENVCFG
            | csr::HSTATEEN0..=csr::HSTATEEN3
            | csr::HTVAL..=csr::HVIPRIO2
            | csr::HTINST
            | csr::HGATP
            | csr::HGEIP
            | csr::VSSTATUS
            | csr::VSIE
            | csr::VSTVEC
            | csr::VSSCRATCH..=csr::VSIP
            | csr::VSTIMECMP
            | csr::VSISELECT
            | csr::VSIREG
            | csr::VSTOPEI
            | csr::VSATP
            | csr::VSTOPI
            | csr::MSTATUS..=csr::MCOUNTEREN
            | csr::MVIEN..=csr::MENVCFG
            | csr::MSTATEEN0..=csr::MSTATEEN3
            | csr::MCOUNTINHIBIT
            | csr::MHPMEVENT3..=csr::MHPMEVENT31
            | csr::MSCRATCH..=csr::MIP
            | csr::MTINST
            | csr::MTVAL2
            | csr::MISELECT
            | csr::MIREG
            | csr::MTOPEI
            | csr::PMPCFG0
            | csr::PMPCFG2
            | csr::PMPADDR0..=csr::PMPADDR15
            | csr::TSELECT..=csr::TDATA3
            | csr::MCYCLE
            | csr::MINSTRET..=csr::MHPMCOUNTER31
            | csr::MVENDORID..=csr::MCONFIGPTR
            | csr::MTOPI
    )
}

/// The bit of mstateen0 and hstateen0 that guards a CSR below M-mode, 0 if none does.
const fn guard(number: u16) -> u64 {
    match number {
        csr::SISELECT | csr::SIREG | csr::VSISELECT | csr::VSIREG => stateen::CSRIND,
        csr::STOPEI | csr::VSTOPEI => stateen::IMSIC,
        csr::STOPI | csr::HVIEN | csr::HVICTL | csr::HVIPRIO1 | csr::HVIPRIO2 | csr::VSTOPI => {
            stateen::AIA
        }
        csr::SENVCFG | csr::HENVCFG => stateen::ENVCFG,
        csr::SSTATEEN0 | csr::HSTATEEN0 => stateen::SE,
        _ => 0,
    }
}

impl Hart {
    /// Decides whether the present mode may access a CSR.
    ///
    /// # Errors
    /// The cause of the exception that the access raises.
    pub(super) fn check_csr(&self, number: u16, write: bool) -> Result<(), Refused> {
        if !(exists(number) || self.extension.has_csr(number)) || (write && number >> 10 == 3) {
            return Err(ILLEGAL);
        }
        let mode = self.mode();
        let needed = number >> 8 & 3;
        let granted = match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => return self.check_machine(number),
            (Privilege::Supervisor, false) => 2,
            (Privilege::Supervisor, true) => 1,
            (Privilege::User, _) => 0,
        };
        if needed == 3 {
            return Err(ILLEGAL);
        }
        self.check_state_enable(number)?;
        // Virtual-instruction exceptions are for what HS-mode could do.
        if matches!(number, csr::STIMECMP | csr::VSTIMECMP) {
            self.check_machine_timer()?;
        }
        if needed > granted {
            return Err(if mode.virtualized { VIRTUAL } else { ILLEGAL });
        }
        match number {
            csr::FFLAGS..=csr::FCSR if self.float_off => Err(ILLEGAL),
            csr::CYCLE..=csr::HPMCOUNTER31 => self.check_counter(number - csr::CYCLE),
            csr::SATP | csr::HGATP => self.check_trapped_translation(number),
            csr::STIMECMP | csr::VSTIMECMP => self.check_timer(number, write),
            csr::SIP | csr::SIE if mode.virtualized => {
                if self.csrs.hvictl & hvictl::VTI != 0 {
                    Err(VIRTUAL)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    const fn check_machine(&self, number: u16) -> Result<(), Refused> {
        match number {
            csr::FFLAGS..=csr::FCSR if self.float_off => Err(ILLEGAL),
            _ => Ok(()),
        }
    }

    /// Smstateen.
    fn check_state_enable(&self, number: u16) -> Result<(), Refused> {
        let mode = self.mode();
        let (bank, bit) = match number {
            csr::SSTATEEN0..=csr::SSTATEEN3 => (number - csr::SSTATEEN0, stateen::SE),
            csr::HSTATEEN0..=csr::HSTATEEN3 => (number - csr::HSTATEEN0, stateen::SE),
            _ => (0, guard(number)),
        };
        if bit == 0 {
            return Ok(());
        }
        let enabled = |bank_values: &[u64; 4]| {
            bank_values
                .get(usize::from(bank))
                .is_some_and(|value| value & bit != 0)
        };
        if !enabled(&self.csrs.mstateen) {
            return Err(ILLEGAL);
        }
        // What VS-mode calls by its S-level name is also guarded by hstateen.
        let supervisor_name = number >> 8 & 3 == 1;
        if mode.virtualized && supervisor_name && !enabled(&self.csrs.hstateen) {
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
}
