//! What CSRs read as.

use super::field::{hstatus, interrupt, status};
use super::number as csr;
use super::{MISA, Pmp};
use crate::device::{Cycles, InterruptFile};
use crate::extension::number as extension;
use crate::hart::{Cause, Hart};
use crate::system::System;

/// A status value with SD as FS makes it.
const fn with_sd(value: u64) -> u64 {
    if value & status::FS == status::FS {
        value | status::SD
    } else {
        value
    }
}

impl Hart {
    /// Reads a CSR that the mode may read. Supervisor names mean the HS-level CSRs.
    ///
    /// # Errors
    /// The cause of an exception that only the register itself can decide on.
    pub(crate) fn read_csr(&self, number: u16, system: &mut System) -> Result<u64, Cause> {
        let csrs = &self.csrs;
        Ok(match number {
            csr::FFLAGS => csrs.fflags,
            csr::FRM => csrs.frm,
            csr::FCSR => csrs.frm << 5 | csrs.fflags,
            csr::CYCLE..=csr::HPMCOUNTER31 => self.read_user_counter(number, system),
            csr::MCYCLE..=csr::MHPMCOUNTER31 => self.counter(number - csr::MCYCLE),
            csr::SCOUNTOVF => self.visible_overflows(),
            csr::MHPMEVENT3..=csr::MHPMEVENT31 => {
                let index = usize::from(number - csr::MHPMEVENT3);
                csrs.mhpmevent.get(index).copied().unwrap_or(0)
            }

            csr::SSTATUS => with_sd(csrs.mstatus & status::SUPERVISOR | status::UXL64),
            csr::SIE => csrs.mie & csrs.mideleg & !interrupt::HYPERVISOR,
            csr::SIP => self.pending(system) & csrs.mideleg & !interrupt::HYPERVISOR,
            csr::STVEC => csrs.stvec,
            csr::SCOUNTEREN => csrs.scounteren,
            csr::SENVCFG => csrs.senvcfg,
            csr::SSCRATCH => csrs.sscratch,
            csr::SEPC => csrs.sepc,
            csr::SCAUSE => csrs.scause,
            csr::STVAL => csrs.stval,
            csr::STIMECMP => csrs.stimecmp,
            csr::SATP => csrs.satp,
            csr::SISELECT => csrs.siselect,
            csr::SIREG => self.read_indirect(InterruptFile::Supervisor, csrs.siselect, system)?,
            csr::STOPEI => self.read_top(InterruptFile::Supervisor, system)?,
            csr::STOPI => self.supervisor_top(self.pending(system)),

            csr::HSTATUS => csrs.hstatus | hstatus::VSXL64,
            csr::HEDELEG => csrs.hedeleg,
            csr::HIDELEG => csrs.hideleg,
            csr::HIE => csrs.mie & interrupt::HYPERVISOR,
            csr::HIP => self.pending(system) & interrupt::HYPERVISOR,
            csr::HVIP => csrs.mip & interrupt::VIRTUAL | csrs.injected,
            csr::HTIMEDELTA => csrs.htimedelta,
            csr::HCOUNTEREN => csrs.hcounteren,
            csr::HGEIE => csrs.hgeie,
            csr::HGEIP => self.wires.guest_external,
            csr::HENVCFG => csrs.henvcfg,
            csr::HTVAL => csrs.htval,
            csr::HTINST => csrs.htinst,
            csr::HGATP => csrs.hgatp,
            csr::HVICTL => csrs.hvictl,
            csr::HVIEN => csrs.hvien,

            csr::VSSTATUS => with_sd(csrs.vsstatus | status::UXL64),
            csr::VSIE => self.virtual_enabled(),
            csr::VSIP => self.virtual_pending(self.pending(system)),
            csr::VSTVEC => csrs.vstvec,
            csr::VSSCRATCH => csrs.vsscratch,
            csr::VSEPC => csrs.vsepc,
            csr::VSCAUSE => csrs.vscause,
            csr::VSTVAL => csrs.vstval,
            csr::VSTIMECMP => csrs.vstimecmp,
            csr::VSATP => csrs.vsatp,
            csr::VSISELECT => csrs.vsiselect,
            csr::VSIREG => {
                let file = InterruptFile::Guest(csrs.vgein());
                self.read_indirect(file, csrs.vsiselect, system)?
            }
            csr::VSTOPEI => self.read_top(InterruptFile::Guest(csrs.vgein()), system)?,
            csr::VSTOPI => self.virtual_top(self.pending(system), system),

            csr::MSTATUS => with_sd(csrs.mstatus | status::XL64),
            csr::MISA => MISA,
            csr::MEDELEG => csrs.medeleg,
            csr::MIDELEG => csrs.mideleg,
            csr::MIE => csrs.mie,
            csr::MIP => self.pending(system),
            csr::MVIP => csrs.mip & interrupt::SUPERVISOR,
            csr::MTVEC => csrs.mtvec,
            csr::MCOUNTEREN => csrs.mcounteren,
            csr::MENVCFG => csrs.menvcfg,
            csr::MCOUNTINHIBIT => csrs.mcountinhibit,
            csr::MSCRATCH => csrs.mscratch,
            csr::MEPC => csrs.mepc,
            csr::MCAUSE => csrs.mcause,
            csr::MTVAL => csrs.mtval,
            csr::MTVAL2 => csrs.mtval2,
            csr::MTINST => csrs.mtinst,
            csr::MISELECT => csrs.miselect,
            csr::MIREG => self.read_indirect(InterruptFile::Machine, csrs.miselect, system)?,
            csr::MTOPEI => self.read_top(InterruptFile::Machine, system)?,
            csr::MTOPI => self.machine_top(self.pending(system)),
            csr::PMPCFG0 | csr::PMPCFG2 => {
                csrs.pmp.configuration(usize::from(number - csr::PMPCFG0))
            }
            csr::PMPADDR0..=csr::PMPADDR15 => {
                Pmp::address(&csrs.pmp, usize::from(number - csr::PMPADDR0))
            }
            csr::MSTATEEN0..=csr::MSTATEEN3 => csrs
                .mstateen
                .get(usize::from(number - csr::MSTATEEN0))
                .copied()
                .unwrap_or(0),
            csr::HSTATEEN0..=csr::HSTATEEN3 => {
                let index = usize::from(number - csr::HSTATEEN0);
                let machine = csrs.mstateen.get(index).copied().unwrap_or(0);
                csrs.hstateen.get(index).copied().unwrap_or(0) & machine
            }
            extension::HPLEGAP..=extension::HPURGE => self.extension.read(number),
            csr::MHARTID => u64::from(self.id.0),
            // No vendor, no triggers, no configurable priorities, no virtual interrupts beyond
            // those of the hypervisor extension, no bits in sstateen: all read-only zero.
            _ => 0,
        })
    }

    fn read_user_counter(&self, number: u16, system: &System) -> u64 {
        match number {
            csr::TIME => {
                let time = system.devices.time(Cycles(self.cycles));
                let offset = if self.mode().virtualized {
                    self.csrs.htimedelta
                } else {
                    0
                };
                time.wrapping_add(offset)
            }
            _ => self.counter(number - csr::CYCLE),
        }
    }
}
