//! What writes to CSRs do.

use super::access::Next;
use super::field::{envcfg, hstatus, hvictl, interrupt, stateen, status};
use super::number as csr;
use crate::device::InterruptFile;
use crate::extension::number as extension;
use crate::hart::{Cause, Hart, Privilege};
use crate::system::System;
use crate::translation::Fence;

/// Exceptions that medeleg can delegate: all but ecall from M-mode and the reserved ones.
const MEDELEG: u64 = 0x00f0_b7ff;
/// Exceptions that hedeleg can delegate: not those that only HS-mode can handle. Software checks (18) and
/// hardware errors (19) are among them ("Hypervisor Trap Delegation Registers").
const HEDELEG: u64 = 0x000c_b1ff;
/// hgatp.MODE.
const HGATP_MODE: u64 = 0xf << 60;
/// hgatp.VMID, of which 14 bits exist, and hgatp.PPN without its two low bits.
const HGATP_FIELDS: u64 = 0x3fff << 44 | 0xfff_ffff_fffc;
/// satp's modes: Bare, Sv39, Sv48. The same numbers are hgatp's.
const fn mode_is_supported(atp: u64) -> bool {
    matches!(atp >> 60, 0 | 8 | 9)
}

impl Hart {
    /// The software-writable bits behind a pending register, as CSRRS and CSRRC see them.
    pub(super) const fn software_pending(&self, number: u16) -> u64 {
        match number {
            csr::SIP => self.csrs.mip & self.csrs.mideleg,
            csr::HVIP => self.csrs.mip | self.csrs.injected,
            _ => self.csrs.mip,
        }
    }

    /// Writes a CSR that the mode may write.
    ///
    /// # Errors
    /// The cause of an exception that only the register itself can decide on.
    pub(super) fn write_csr(
        &mut self,
        number: u16,
        value: u64,
        system: &mut System,
    ) -> Result<Next, Cause> {
        let virtualized = self.mode().virtualized;
        let csrs = &mut self.csrs;
        match number {
            csr::FFLAGS | csr::FRM | csr::FCSR => {
                match number {
                    csr::FFLAGS => csrs.fflags = value & 0x1f,
                    csr::FRM => csrs.frm = value & 7,
                    _ => (csrs.fflags, csrs.frm) = (value & 0x1f, value >> 5 & 7),
                }
                csrs.set_float_dirty(virtualized);
            }
            csr::SSCRATCH => csrs.sscratch = value,
            csr::SEPC => csrs.sepc = value & !1,
            csr::SCAUSE => csrs.scause = value,
            csr::STVAL => csrs.stval = value,
            csr::STVEC => csrs.stvec = vector(csrs.stvec, value),
            csr::SCOUNTEREN => csrs.scounteren = value & 0xffff_ffff,
            csr::VSSCRATCH => csrs.vsscratch = value,
            csr::VSEPC => csrs.vsepc = value & !1,
            csr::VSCAUSE => csrs.vscause = value,
            csr::VSTVAL => csrs.vstval = value,
            csr::VSTVEC => csrs.vstvec = vector(csrs.vstvec, value),
            csr::MSCRATCH => csrs.mscratch = value,
            csr::MEPC => csrs.mepc = value & !1,
            csr::MCAUSE => csrs.mcause = value,
            csr::MTVAL => csrs.mtval = value,
            csr::MTVAL2 => csrs.mtval2 = value,
            csr::MTINST => csrs.mtinst = value & 0xffff_ffff,
            csr::MTVEC => csrs.mtvec = vector(csrs.mtvec, value),
            csr::MCOUNTEREN => csrs.mcounteren = value & 0xffff_ffff,
            csr::MISELECT => csrs.miselect = value & 0x1ff,
            csr::SISELECT => csrs.siselect = value & 0x1ff,
            csr::VSISELECT => csrs.vsiselect = value & 0x1ff,
            csr::HEDELEG => csrs.hedeleg = value & HEDELEG,
            csr::HCOUNTEREN => csrs.hcounteren = value & 0xffff_ffff,
            csr::HTVAL => csrs.htval = value,
            csr::HTINST => csrs.htinst = value & 0xffff_ffff,
            csr::MEDELEG => csrs.medeleg = value & MEDELEG,
            csr::SENVCFG => csrs.senvcfg = environment(csrs.senvcfg, value, envcfg::SUPERVISOR),
            csr::MCYCLE..=csr::MHPMCOUNTER31 => self.write_counter(number - csr::MCYCLE, value),
            csr::MCOUNTINHIBIT => self.write_inhibit(value),
            csr::MHPMEVENT3..=csr::MHPMEVENT31 => {
                self.write_event(usize::from(number - csr::MHPMEVENT3), value);
            }
            extension::HPLEGAP..=extension::HPURGE => self.extension.write(number, value),
            csr::MSTATEEN0..=csr::MSTATEEN3 => {
                let bank = usize::from(number - csr::MSTATEEN0);
                let mask = if bank == 0 {
                    stateen::WRITABLE0
                } else {
                    stateen::SE
                };
                if let Some(register) = csrs.mstateen.get_mut(bank) {
                    *register = value & mask;
                }
            }
            csr::HSTATEEN0..=csr::HSTATEEN3 => {
                let bank = usize::from(number - csr::HSTATEEN0);
                let mask = csrs.mstateen.get(bank).copied().unwrap_or(0);
                if let Some(register) = csrs.hstateen.get_mut(bank) {
                    *register = value & mask;
                }
            }
            csr::MSTATUS | csr::SSTATUS | csr::VSSTATUS | csr::HSTATUS => {
                return Ok(self.write_status(number, value, system));
            }
            csr::SATP | csr::VSATP | csr::HGATP => self.write_translation(number, value),
            csr::MENVCFG | csr::HENVCFG => {
                self.write_environment(number, value);
                self.refresh_timers(system);
                return Ok(Next::Stop);
            }
            csr::PMPCFG0..=csr::PMPADDR15 => {
                if number < csr::PMPADDR0 {
                    csrs.pmp
                        .set_configuration(usize::from(number - csr::PMPCFG0), value);
                } else {
                    csrs.pmp
                        .set_address(usize::from(number - csr::PMPADDR0), value);
                }
                self.fence(Fence::Everything);
            }
            csr::SIREG | csr::VSIREG | csr::MIREG | csr::STOPEI | csr::VSTOPEI | csr::MTOPEI => {
                self.write_file(number, value, system)?;
                return Ok(Next::Stop);
            }
            _ => return Ok(self.write_interrupt_register(number, value, system)),
        }
        Ok(match number {
            csr::SATP | csr::VSATP | csr::HGATP | csr::PMPCFG0..=csr::PMPADDR15 => Next::Refetch,
            _ => Next::Continue,
        })
    }

    /// Whether the loop must stop for an interrupt that a change has let through.
    fn next_for_interrupts(&self, system: &System) -> Next {
        if self.interrupt_to_take(system).is_some() {
            Next::Stop
        } else {
            Next::Continue
        }
    }

    fn write_status(&mut self, number: u16, value: u64, system: &System) -> Next {
        let csrs = &mut self.csrs;
        match number {
            csr::SSTATUS => {
                csrs.mstatus = csrs.mstatus & !status::SUPERVISOR | value & status::SUPERVISOR;
            }
            csr::VSSTATUS => csrs.vsstatus = value & status::SUPERVISOR,
            csr::HSTATUS => {
                csrs.hstatus = value & hstatus::WRITABLE;
                if csrs.vgein() > system.guest_files() {
                    // WLRL: a file that does not exist is not kept.
                    csrs.hstatus &= !hstatus::VGEIN;
                }
            }
            _ => {
                let mut value = value & status::MACHINE;
                // MPP is WARL: the reserved encoding leaves it unchanged.
                if value & status::MPP == 2 << status::MPP_SHIFT {
                    value = value & !status::MPP | csrs.mstatus & status::MPP;
                }
                csrs.mstatus = value;
            }
        }
        self.refresh_context();
        self.next_for_interrupts(system)
    }

    fn write_translation(&mut self, number: u16, value: u64) {
        let supported = mode_is_supported(value);
        match number {
            // A write with an unsupported mode has no effect at all.
            csr::SATP | csr::VSATP if !supported => return,
            csr::SATP => self.csrs.satp = value,
            csr::VSATP => self.csrs.vsatp = value,
            _ => {
                // Unlike satp's, the other fields are written; an unsupported mode leaves the present one.
                let mode = if supported { value } else { self.csrs.hgatp };
                // Fourteen bits of VMID; the root table is 16 KiB: its page number's two low bits
                // read as zero.
                let rest = value & HGATP_FIELDS;
                self.csrs.hgatp = mode & HGATP_MODE | rest;
            }
        }
        self.translation_changed();
    }

    fn write_environment(&mut self, number: u16, value: u64) {
        let csrs = &mut self.csrs;
        if number == csr::MENVCFG {
            let mask = if self.extension.svadu {
                envcfg::MACHINE
            } else {
                envcfg::MACHINE & !envcfg::ADUE
            };
            csrs.menvcfg = environment(csrs.menvcfg, value, mask);
        } else {
            let gated = envcfg::GATED & csrs.menvcfg;
            csrs.henvcfg = environment(csrs.henvcfg, value, envcfg::SUPERVISOR | gated);
        }
        csrs.henvcfg &= envcfg::SUPERVISOR | csrs.menvcfg & envcfg::GATED;
        self.fence(Fence::Everything);
    }

    fn write_file(&mut self, number: u16, value: u64, system: &mut System) -> Result<(), Cause> {
        let guest = InterruptFile::Guest(self.csrs.vgein());
        match number {
            csr::SIREG => {
                let select = self.csrs.siselect;
                self.write_indirect(InterruptFile::Supervisor, select, value, system)?;
            }
            csr::VSIREG => self.write_indirect(guest, self.csrs.vsiselect, value, system)?,
            csr::MIREG => {
                let select = self.csrs.miselect;
                self.write_indirect(InterruptFile::Machine, select, value, system)?;
            }
            csr::STOPEI => self.claim_top(InterruptFile::Supervisor, system)?,
            csr::VSTOPEI => self.claim_top(guest, system)?,
            _ => self.claim_top(InterruptFile::Machine, system)?,
        }
        self.wires = system.devices.wires(self.id);
        Ok(())
    }

    fn write_interrupt_register(&mut self, number: u16, value: u64, system: &System) -> Next {
        let stimecmp_drives = self.csrs.menvcfg & envcfg::STCE != 0;
        let csrs = &mut self.csrs;
        let replace = |register: &mut u64, mask: u64, value: u64| {
            *register = *register & !mask | value & mask;
        };
        match number {
            csr::MIE => csrs.mie = value & interrupt::ALL,
            csr::SIE => replace(&mut csrs.mie, csrs.mideleg & interrupt::DELEGABLE, value),
            csr::HIE => replace(&mut csrs.mie, interrupt::HYPERVISOR, value),
            csr::VSIE => {
                replace(&mut csrs.mie, csrs.hideleg & interrupt::VIRTUAL, value << 1);
                // With hvien set and hideleg clear, vsie's bit stands by itself and vsip's is hvip's (AIA, "Virtual
                // interrupts for VS level").
                replace(&mut csrs.injected_enabled, csrs.hvien, value);
            }
            csr::MIP | csr::MVIP => {
                let timer = if stimecmp_drives { 0 } else { interrupt::STI };
                let mut mask = interrupt::SSI | interrupt::SEI | timer;
                if number == csr::MIP {
                    mask |= interrupt::VSSI | interrupt::LCOFI;
                }
                replace(&mut csrs.mip, mask, value);
            }
            csr::SIP => replace(
                &mut csrs.mip,
                csrs.mideleg & (interrupt::SSI | interrupt::LCOFI),
                value,
            ),
            csr::HIP => replace(&mut csrs.mip, interrupt::VSSI, value),
            csr::HVIP => {
                replace(&mut csrs.mip, interrupt::VIRTUAL, value);
                replace(&mut csrs.injected, interrupt::INJECTED, value);
            }
            csr::VSIP => {
                replace(&mut csrs.mip, csrs.hideleg & interrupt::VSSI, value << 1);
                replace(&mut csrs.injected, csrs.hvien, value);
            }
            csr::HVIEN => csrs.hvien = value & interrupt::INJECTED,
            csr::MIDELEG => {
                csrs.mideleg = value & interrupt::DELEGABLE | interrupt::HYPERVISOR;
            }
            csr::HIDELEG => csrs.hideleg = value & interrupt::VIRTUAL,
            csr::HGEIE => csrs.hgeie = value & system.guest_file_mask(),
            csr::HVICTL => csrs.hvictl = value & hvictl::WRITABLE,
            csr::STIMECMP => csrs.stimecmp = value,
            csr::VSTIMECMP => csrs.vstimecmp = value,
            csr::HTIMEDELTA => csrs.htimedelta = value,
            // Read-only zeros and read-only registers of the machine's own design.
            _ => return Next::Continue,
        }
        if matches!(number, csr::STIMECMP | csr::VSTIMECMP | csr::HTIMEDELTA) {
            self.refresh_timers(system);
            self.limit = self.limit.min(self.timer_deadline);
        }
        self.next_for_interrupts(system)
    }

    /// Whether hstatus.HU or the mode allows HLV, HLVX and HSV.
    #[must_use]
    pub(crate) const fn may_access_guest(&self) -> bool {
        !matches!(self.mode().privilege, Privilege::User) || self.csrs.hstatus & hstatus::HU != 0
    }
}

/// xtvec: modes other than direct and vectored are not kept.
const fn vector(old: u64, value: u64) -> u64 {
    if value & 2 == 0 {
        value
    } else {
        value & !3 | old & 3
    }
}

/// An envcfg register: the reserved CBIE encoding 2 is not kept.
const fn environment(old: u64, value: u64, mask: u64) -> u64 {
    let value = value & mask;
    if value & envcfg::CBIE == 2 << envcfg::CBIE_SHIFT {
        value & !envcfg::CBIE | old & envcfg::CBIE
    } else {
        value
    }
}
