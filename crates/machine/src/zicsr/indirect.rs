//! Registers behind miselect, siselect and vsiselect, and the IMSIC's top interrupts.
//!
//! Advanced Interrupt Architecture, "CSRs" and "IMSIC".

use riscv::imsic::select;

use crate::base::InterruptFile;
use crate::base::{Cause, Privilege};
use crate::csr::field::stateen;
use crate::hart::Hart;
use crate::system::System;

/// The major interrupts' priorities.
const PRIORITIES: std::ops::RangeInclusive<u64> = select::IPRIO..=select::IPRIO_LAST;
/// The interrupt file's registers.
const FILE: std::ops::RangeInclusive<u64> = select::EIDELIVERY..=select::EIE_LAST;

impl Hart {
    /// Refuses what bits 58 and 59 of mstateen0 and hstateen0 keep from the present mode (AIA, "Access
    /// control by the state-enable CSRs"). Bit 60 is a matter of the register's own number.
    fn check_file_state(&self, file: InterruptFile, select: u64) -> Result<(), Cause> {
        let mode = self.mode();
        let bit = if FILE.contains(&select) {
            stateen::IMSIC
        } else if PRIORITIES.contains(&select) && file == InterruptFile::Supervisor {
            stateen::AIA
        } else {
            return Ok(());
        };
        if mode.privilege == Privilege::Machine {
            return Ok(());
        }
        let [machine, ..] = self.csrs.mstateen;
        let [hypervisor, ..] = self.csrs.hstateen;
        if machine & bit == 0 {
            return Err(Cause::IllegalInstruction);
        }
        if mode.virtualized && hypervisor & bit == 0 {
            return Err(Cause::VirtualInstruction);
        }
        Ok(())
    }

    /// The exception for a register that is not there.
    fn missing(&self, file: InterruptFile, select: u64) -> Cause {
        let inaccessible = PRIORITIES.contains(&select) || FILE.contains(&select);
        let guest = matches!(file, InterruptFile::Guest(_));
        if guest && self.mode().virtualized && inaccessible {
            Cause::VirtualInstruction
        } else {
            Cause::IllegalInstruction
        }
    }

    /// Reads *ireg.
    pub(super) fn read_indirect(
        &self,
        file: InterruptFile,
        select: u64,
        system: &mut System,
    ) -> Result<u64, Cause> {
        self.check_file_state(file, select)?;
        let guest = matches!(file, InterruptFile::Guest(_));
        // RV64: only the even registers exist. No priority can be configured.
        if PRIORITIES.contains(&select) && select.is_multiple_of(2) && !guest {
            return Ok(0);
        }
        if FILE.contains(&select)
            && let Ok(value) = system.devices.imsic_read(self.id, file, select)
        {
            return Ok(value);
        }
        Err(self.missing(file, select))
    }

    /// Writes *ireg.
    pub(super) fn write_indirect(
        &self,
        file: InterruptFile,
        select: u64,
        value: u64,
        system: &mut System,
    ) -> Result<(), Cause> {
        self.check_file_state(file, select)?;
        let guest = matches!(file, InterruptFile::Guest(_));
        if PRIORITIES.contains(&select) && select.is_multiple_of(2) && !guest {
            return Ok(());
        }
        if FILE.contains(&select)
            && system
                .devices
                .imsic_write(self.id, file, select, value)
                .is_ok()
        {
            return Ok(());
        }
        Err(self.missing(file, select))
    }

    /// Reads *topei.
    pub(super) fn read_top(&self, file: InterruptFile, system: &System) -> Result<u64, Cause> {
        system
            .devices
            .imsic_top(self.id, file)
            .map_err(|_| self.no_file())
    }

    /// Writes *topei: claims.
    pub(super) fn claim_top(&self, file: InterruptFile, system: &mut System) -> Result<(), Cause> {
        system
            .devices
            .imsic_claim(self.id, file)
            .map_err(|_| self.no_file())
    }

    const fn no_file(&self) -> Cause {
        if self.mode().virtualized {
            Cause::VirtualInstruction
        } else {
            Cause::IllegalInstruction
        }
    }
}
