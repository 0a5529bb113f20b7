//! The Zicsr instructions.

use super::number as csr;
use crate::hart::{Cause, Exception, Hart, Trapped};
use crate::instruction::DISCARD;
use crate::system::System;

/// What a CSR instruction does to the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsrOperation {
    /// CSRRW, CSRRWI.
    Write,
    /// CSRRS, CSRRSI.
    Set,
    /// CSRRC, CSRRCI.
    Clear,
}

/// How execution goes on after an instruction that may have changed the hart's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// With the next instruction, which is where it was; pc is still that of this one.
    Continue,
    /// With the instruction at [`Hart::pc`], whose translation may have changed.
    Refetch,
    /// With a look at interrupts and at what the hart waits for.
    Stop,
}

impl Hart {
    /// Executes a Zicsr instruction from its encoding. `self.pc` is that of the instruction, and
    /// `self.cycles` and `self.retired` do not count it yet.
    ///
    /// # Errors
    /// [`Trapped`] with an illegal-instruction or virtual-instruction exception.
    pub fn execute_csr(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        let number = (raw >> 20) as u16;
        let source = (raw >> 15) & 31;
        let operand = if raw & 0x4000 != 0 {
            u64::from(source)
        } else {
            self.x[source as usize]
        };
        let rd = match (raw >> 7 & 31) as u8 {
            0 => DISCARD,
            register => register,
        };
        let operation = match raw >> 12 & 3 {
            1 => CsrOperation::Write,
            2 => CsrOperation::Set,
            _ => CsrOperation::Clear,
        };
        let writes = operation == CsrOperation::Write || source != 0;
        let reads = operation != CsrOperation::Write || rd != DISCARD;
        self.access_csr(number, operation, operand, writes, reads, system)
            .map(|(old, next)| {
                self.x[usize::from(rd)] = old;
                if next != Next::Continue {
                    self.pc = self.pc.wrapping_add(4);
                }
                next
            })
            .map_err(|cause| self.raise(Exception::new(cause, u64::from(raw))))
    }

    fn access_csr(
        &mut self,
        number: u16,
        operation: CsrOperation,
        operand: u64,
        writes: bool,
        reads: bool,
        system: &mut System,
    ) -> Result<(u64, Next), Cause> {
        self.check_csr(number, writes)?;
        let number = self.substitute(number);
        // topei: a write claims the interrupt that a read of the same instruction reports.
        let old = if reads || operation != CsrOperation::Write {
            self.read_csr(number, system)?
        } else {
            0
        };
        if !writes {
            return Ok((old, Next::Continue));
        }
        // mip, hip and sip: wires that read as one must not be written back as one.
        let base = if matches!(
            number,
            csr::MIP | csr::SIP | csr::HIP | csr::HVIP | csr::MVIP
        ) {
            self.software_pending(number)
        } else {
            old
        };
        let value = match operation {
            CsrOperation::Write => operand,
            CsrOperation::Set => base | operand,
            CsrOperation::Clear => base & !operand,
        };
        let next = self.write_csr(number, value, system)?;
        Ok((old, next))
    }

    /// The VS CSR that stands for a supervisor CSR while V = 1.
    const fn substitute(&self, number: u16) -> u16 {
        if !self.mode().virtualized {
            return number;
        }
        match number {
            csr::SSTATUS => csr::VSSTATUS,
            csr::SIE => csr::VSIE,
            csr::STVEC => csr::VSTVEC,
            csr::SSCRATCH => csr::VSSCRATCH,
            csr::SEPC => csr::VSEPC,
            csr::SCAUSE => csr::VSCAUSE,
            csr::STVAL => csr::VSTVAL,
            csr::SIP => csr::VSIP,
            csr::STIMECMP => csr::VSTIMECMP,
            csr::SISELECT => csr::VSISELECT,
            csr::SIREG => csr::VSIREG,
            csr::STOPEI => csr::VSTOPEI,
            csr::SATP => csr::VSATP,
            csr::STOPI => csr::VSTOPI,
            _ => number,
        }
    }
}
