//! Registers behind miselect, siselect and vsiselect, and the IMSIC's top interrupts.
//!
//! Advanced Interrupt Architecture, "CSRs" and "IMSIC".

use crate::device::InterruptFile;
use crate::hart::{Cause, Hart};
use crate::system::System;

/// The major interrupts' priorities.
const PRIORITIES: std::ops::RangeInclusive<u64> = 0x30..=0x3f;
/// The interrupt file's registers.
const FILE: std::ops::RangeInclusive<u64> = 0x70..=0xff;

impl Hart {
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
