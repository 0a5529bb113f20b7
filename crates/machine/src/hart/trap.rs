//! Taking traps and returning from them.
//!
//! Privileged specification, hypervisor extension, "Traps"; "Zicfilp", "Smdbltrp" and "Ssdbltrp".

use super::{Exception, Hart, Mode, Privilege, Wait};
use crate::count::TrapCode;
use crate::csr::Interrupt;
use crate::csr::field::{envcfg, hstatus, status};
use crate::trace::Happening;

/// xcause's bit for an interrupt.
const INTERRUPT: u64 = riscv::interrupt::CAUSE;

/// Values that a trap writes.
#[derive(Clone, Copy)]
struct Record {
    cause: u64,
    value: u64,
    guest_physical: u64,
    instruction: u64,
    guest_address: bool,
}

impl Hart {
    /// Takes the trap of a synchronous exception at the present pc.
    pub fn take_exception(&mut self, exception: Exception) {
        let cause = exception.cause as u64;
        let delegated = |mask: u64| mask >> cause & 1 != 0;
        let below_machine = self.mode.privilege != Privilege::Machine;
        let to = if !below_machine || !delegated(self.csrs.medeleg) {
            Mode::MACHINE
        } else if self.mode.virtualized && delegated(self.csrs.hedeleg) {
            Mode::VIRTUAL_SUPERVISOR
        } else {
            Mode::HYPERVISOR
        };
        let (to, cause, second) = self.escalated(to, cause);
        let record = Record {
            cause,
            value: exception.value,
            guest_physical: second.unwrap_or(exception.guest_physical >> 2),
            instruction: exception.instruction,
            guest_address: exception.guest_address,
        };
        let vmid = self.csrs.vmid();
        self.counts.trap(
            self.mode,
            to,
            vmid,
            TrapCode::Exception(exception.cause as u64),
        );
        self.note(|hart| Happening::Exception {
            exception,
            from: hart.mode,
            to,
            pc: hart.pc,
            vmid: hart.vmid(),
        });
        self.note_stretch(to, TrapCode::Exception(exception.cause as u64));
        self.take(to, &record);
    }

    /// Takes the trap of an interrupt.
    pub fn take_interrupt(&mut self, interrupt: Interrupt) {
        let (to, cause, second) = self.escalated(interrupt.to, INTERRUPT | interrupt.code);
        let record = Record {
            cause,
            value: 0,
            guest_physical: second.unwrap_or(0),
            instruction: 0,
            guest_address: false,
        };
        let (vmid, code) = (self.csrs.vmid(), TrapCode::Interrupt(interrupt.code));
        self.counts.trap(self.mode, to, vmid, code);
        self.note(|hart| Happening::Interrupt {
            code: interrupt.code,
            from: hart.mode,
            to,
            pc: hart.pc,
            vmid: hart.vmid(),
            guest_file: hart.csrs.vgein(),
        });
        self.note_stretch(to, code);
        self.take(to, &record);
    }

    /// Tells of a trap to the watch for the longest stretch in the hypervisor, before it is taken.
    #[inline]
    fn note_stretch(&mut self, to: Mode, code: TrapCode) {
        let (from, now, pc) = (self.mode, self.cycles, self.pc);
        let Some(stretches) = &mut self.stretches else {
            return;
        };
        if to == Mode::HYPERVISOR && from.virtualized {
            stretches.leave_guest(now, code);
        } else if to == Mode::HYPERVISOR && matches!(code, TrapCode::Interrupt(_)) {
            stretches.end(now, pc);
            stretches.go_on(now);
        }
    }

    /// Where a trap for a cause goes, its cause there, and of a double trap the first cause for mtval2.
    const fn escalated(&self, to: Mode, cause: u64) -> (Mode, u64, Option<u64>) {
        if matches!(to.privilege, Privilege::Supervisor) && self.is_unexpected(to) {
            (Mode::MACHINE, riscv::exception::DOUBLE_TRAP, Some(cause))
        } else {
            (to, cause, None)
        }
    }

    fn take(&mut self, to: Mode, record: &Record) {
        if to == Mode::MACHINE && self.is_unexpected(to) {
            // No state changes. The hart does nothing any more.
            self.wait = Wait::CriticalError;
            return;
        }
        let from = self.mode;
        self.csrs.triggers.count(from);
        let previous = from.privilege as u64;
        let vector = match (to.privilege, to.virtualized) {
            (Privilege::Machine, _) => self.enter_machine(from, previous, record),
            (_, false) => self.enter_hypervisor(from, previous, record),
            (_, true) => self.enter_virtual_supervisor(previous, record),
        };
        let base = vector & !3;
        let vectored = vector & 1 != 0 && record.cause & INTERRUPT != 0;
        let offset = if vectored {
            (record.cause & !INTERRUPT) * 4
        } else {
            0
        };
        self.pc = base.wrapping_add(offset);
        self.reservation = None;
        self.set_mode(to);
    }

    fn enter_machine(&mut self, from: Mode, previous: u64, record: &Record) -> u64 {
        let csrs = &mut self.csrs;
        let mut mstatus = csrs.mstatus;
        let enabled = mstatus & status::MIE != 0;
        mstatus &= !(status::MPP | status::MPV | status::GVA | status::MIE | status::MPIE);
        mstatus |= previous << status::MPP_SHIFT;
        mstatus |= choose(from.virtualized, status::MPV);
        mstatus |= choose(record.guest_address, status::GVA);
        mstatus |= choose(enabled, status::MPIE);
        mstatus |= choose(self.extension.options.machine_double_traps, status::MDT);
        mstatus &= !status::MPELP;
        mstatus |= choose(
            std::mem::take(&mut csrs.landing_pad_expected),
            status::MPELP,
        );
        csrs.mstatus = mstatus;
        csrs.mepc = self.pc;
        csrs.mcause = record.cause;
        csrs.mtval = record.value;
        csrs.mtval2 = record.guest_physical;
        csrs.mtinst = record.instruction;
        csrs.mtvec
    }

    fn enter_hypervisor(&mut self, from: Mode, previous: u64, record: &Record) -> u64 {
        let csrs = &mut self.csrs;
        let expected = std::mem::take(&mut csrs.landing_pad_expected);
        csrs.mstatus = push_supervisor(csrs.mstatus, previous, expected);
        csrs.mstatus |= choose(csrs.menvcfg & envcfg::DTE != 0, status::SDT);
        let mut hstatus = csrs.hstatus & !(hstatus::SPV | hstatus::GVA);
        hstatus |= choose(from.virtualized, hstatus::SPV);
        hstatus |= choose(record.guest_address, hstatus::GVA);
        if from.virtualized {
            hstatus = hstatus & !hstatus::SPVP | choose(previous != 0, hstatus::SPVP);
        }
        csrs.hstatus = hstatus;
        csrs.sepc = self.pc;
        csrs.scause = record.cause;
        csrs.stval = record.value;
        csrs.htval = record.guest_physical;
        csrs.htinst = record.instruction;
        csrs.stvec
    }

    fn enter_virtual_supervisor(&mut self, previous: u64, record: &Record) -> u64 {
        let csrs = &mut self.csrs;
        let expected = std::mem::take(&mut csrs.landing_pad_expected);
        csrs.vsstatus = push_supervisor(csrs.vsstatus, previous, expected);
        csrs.vsstatus |= choose(csrs.henvcfg & envcfg::DTE != 0, status::SDT);
        csrs.vsepc = self.pc;
        csrs.vscause = record.cause;
        csrs.vstval = record.value;
        csrs.vstvec
    }

    /// MRET.
    pub fn return_from_machine(&mut self) {
        let mstatus = self.csrs.mstatus;
        let to = Mode::new(
            Privilege::from_bits(mstatus >> status::MPP_SHIFT),
            mstatus & status::MPV != 0,
        );
        let mut after = mstatus & !(status::MPP | status::MPV | status::MIE | status::MPELP);
        after |= choose(mstatus & status::MPIE != 0, status::MIE) | status::MPIE;
        if to.privilege != Privilege::Machine {
            after &= !status::MPRV;
        }
        self.csrs.mstatus = after;
        self.enable_traps(to);
        self.restore_landing(to, mstatus & status::MPELP != 0);
        let at = std::mem::replace(&mut self.pc, self.csrs.mepc);
        self.return_to(to, at);
    }

    /// A return from the present mode to another enables traps again that would be double ones.
    const fn enable_traps(&mut self, to: Mode) {
        let csrs = &mut self.csrs;
        let supervisor = matches!(to.privilege, Privilege::Supervisor);
        let user = matches!(to.privilege, Privilege::User);
        if self.mode.virtualized {
            csrs.vsstatus &= !status::SDT;
            return;
        }
        if matches!(self.mode.privilege, Privilege::Machine) {
            csrs.mstatus &= !status::MDT;
        } else {
            csrs.mstatus &= !status::SDT;
        }
        if user || supervisor && to.virtualized {
            csrs.mstatus &= !status::SDT;
        }
        if user && to.virtualized {
            csrs.vsstatus &= !status::SDT;
        }
    }

    /// ELP after a return to a mode ("Preserving Expected Landing Pad State on Traps").
    const fn restore_landing(&mut self, to: Mode, expected: bool) {
        self.csrs.landing_pad_expected = expected && self.lands_on_pads(to);
    }

    fn return_to(&mut self, to: Mode, at: u64) {
        self.reservation = None;
        if to.virtualized
            && let Some(stretches) = &mut self.stretches
        {
            stretches.end(self.cycles, at);
        }
        self.note(|hart| Happening::Return {
            from: hart.mode,
            to,
            pc: hart.pc,
            vmid: hart.vmid(),
        });
        // The return itself belongs to where it returns from.
        self.set_mode_after(to, 1);
    }

    /// SRET in HS-mode, M-mode or, acting on the VS CSRs, in VS-mode.
    pub fn return_from_supervisor(&mut self) {
        let at = self.pc;
        let csrs = &mut self.csrs;
        let (to, expected);
        if self.mode.virtualized {
            let privilege = Privilege::from_bits(u64::from(csrs.vsstatus & status::SPP != 0));
            to = Mode::new(privilege, true);
            expected = csrs.vsstatus & status::SPELP != 0;
            csrs.vsstatus = pop_supervisor(csrs.vsstatus);
            self.pc = csrs.vsepc;
        } else {
            let privilege = Privilege::from_bits(u64::from(csrs.mstatus & status::SPP != 0));
            to = Mode::new(privilege, csrs.hstatus & hstatus::SPV != 0);
            csrs.hstatus &= !hstatus::SPV;
            expected = csrs.mstatus & status::SPELP != 0;
            csrs.mstatus = pop_supervisor(csrs.mstatus) & !status::MPRV;
            self.pc = csrs.sepc;
        }
        self.enable_traps(to);
        self.restore_landing(to, expected);
        self.return_to(to, at);
    }
}

const fn choose(condition: bool, bits: u64) -> u64 {
    if condition { bits } else { 0 }
}

/// The supervisor's interrupt-enable stack on a trap.
const fn push_supervisor(value: u64, previous: u64, landing_pad_expected: bool) -> u64 {
    let enabled = value & status::SIE != 0;
    let cleared = value & !(status::SPP | status::SPIE | status::SIE | status::SPELP);
    let expected = choose(landing_pad_expected, status::SPELP);
    cleared | expected | choose(previous != 0, status::SPP) | choose(enabled, status::SPIE)
}

/// The supervisor's interrupt-enable stack on a return.
const fn pop_supervisor(value: u64) -> u64 {
    let enabled = value & status::SPIE != 0;
    value & !(status::SPP | status::SIE | status::SPELP)
        | status::SPIE
        | choose(enabled, status::SIE)
}
