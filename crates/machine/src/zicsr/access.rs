//! The Zicsr instructions.

use super::row::{Basis, Read, Row, Then, Write};
use super::table;
use crate::base::Fence;
use crate::base::{Cause, Exception, Trapped};
use crate::csr::field::status;
use crate::hart::{Hart, Mode};
use crate::instruction::DISCARD;
use crate::system::System;

/// Bits of mstatus and vsstatus in which neither address spaces nor FS show: kernels change them all the time.
const QUIET: u64 = status::SIE | status::MIE | status::SPIE | status::MPIE | status::SPP;

/// Operation of a CSR instruction.
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
        let Some(mut row) = table::row(number) else {
            return Err(Cause::IllegalInstruction);
        };
        self.check_csr(row, number, writes)?;
        let index = number - row.first;
        if row.guest != 0
            && self.mode().virtualized
            && let Some(guest) = table::row(row.guest)
        {
            row = guest;
        }
        // topei: a write claims the interrupt that a read of the same instruction reports.
        let in_hypervisor = self.mode() == Mode::HYPERVISOR;
        if in_hypervisor && let Some(stretches) = &mut self.stretches {
            stretches.read(number, self.cycles, self.pc);
        }
        let old = if reads || operation != CsrOperation::Write {
            self.read_row(row, index, system)?
        } else {
            0
        };
        if !writes {
            return Ok((old, Next::Continue));
        }
        let basis = match row.basis {
            Basis::Read => old,
            Basis::Software(software) => software(&self.csrs),
        };
        let value = match operation {
            CsrOperation::Write => operand,
            CsrOperation::Set => basis | operand,
            CsrOperation::Clear => basis & !operand,
        };
        let next = self.write_row(row, index, value, system)?;
        Ok((old, next))
    }

    /// Reads a CSR whatever the mode may. Supervisor names mean the HS-level CSRs; a CSR that this
    /// machine has not reads as zero.
    ///
    /// # Errors
    /// The cause of an exception that only the register itself can decide on.
    pub(crate) fn read_csr(&self, number: u16, system: &mut System) -> Result<u64, Cause> {
        table::row(number).map_or(Ok(0), |row| self.read_row(row, number - row.first, system))
    }

    #[inline]
    fn read_row(&self, row: &Row, index: u16, system: &mut System) -> Result<u64, Cause> {
        match row.read {
            Read::Constant(value) => Ok(value),
            Read::State(read) => Ok(read(&self.csrs)),
            Read::Array(read) => Ok(read(&self.csrs, usize::from(index))),
            Read::Hart(read) => read(self, index, system),
        }
    }

    #[inline]
    fn write_row(
        &mut self,
        row: &Row,
        index: u16,
        value: u64,
        system: &mut System,
    ) -> Result<Next, Cause> {
        let before = (self.csrs.mstatus, self.csrs.vsstatus);
        match row.write {
            Write::Ignored => {}
            Write::Masked(place, mask) => *place(&mut self.csrs) = value & mask,
            Write::Legal(place, legal) => {
                let register = place(&mut self.csrs);
                *register = legal(*register, value);
            }
            Write::State(write) => write(&mut self.csrs, value),
            Write::Array(write) => write(&mut self.csrs, usize::from(index), value),
            Write::Hart(write) => write(self, index, value, system)?,
        }
        if row.then == Then::Nothing {
            return Ok(Next::Continue);
        }
        if row.then == Then::Status {
            if !self.vector.exists() {
                // VS is read-only zero.
                self.csrs.mstatus &= !status::VS;
                self.csrs.vsstatus &= !status::VS;
            }
            let changed = before.0 ^ self.csrs.mstatus | before.1 ^ self.csrs.vsstatus;
            if changed & !QUIET == 0 {
                return Ok(self.next_for_interrupts(system));
            }
        }
        Ok(self.after_write(row.then, system))
    }

    /// Effect of a write beyond the register.
    fn after_write(&mut self, then: Then, system: &System) -> Next {
        match then {
            Then::Nothing => Next::Continue,
            Then::FloatDirty => {
                let virtualized = self.mode().virtualized;
                self.csrs.set_float_dirty(virtualized);
                Next::Continue
            }
            Then::VectorDirty => {
                let virtualized = self.mode().virtualized;
                self.csrs.set_vector_dirty(virtualized);
                Next::Continue
            }
            Then::Interrupts => self.next_for_interrupts(system),
            Then::Timers => {
                self.refresh_timers(system);
                self.next_for_interrupts(system)
            }
            Then::Context | Then::Status => {
                self.refresh_context();
                self.next_for_interrupts(system)
            }
            Then::Translation => {
                self.translation_changed();
                Next::Refetch
            }
            Then::Masking => {
                self.translation_changed();
                Next::Continue
            }
            Then::Protection => {
                self.fence(Fence::Everything);
                Next::Refetch
            }
            Then::Environment => {
                self.fence(Fence::Everything);
                self.refresh_timers(system);
                Next::Stop
            }
            Then::Triggers => {
                if !self.watched {
                    self.csrs.triggers.forget_write();
                }
                self.refresh_context();
                Next::Stop
            }
            Then::File => {
                self.irq_levels = system.devices.irq_levels(self.id);
                Next::Stop
            }
        }
    }

    /// Tests whether the loop must stop for an interrupt that a change has let through.
    fn next_for_interrupts(&self, system: &System) -> Next {
        if self.interrupt_to_take(system).is_some() {
            Next::Stop
        } else {
            Next::Continue
        }
    }
}
