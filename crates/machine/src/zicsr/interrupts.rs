//! Which interrupts are pending, and which is taken first.
//!
//! Privileged specification, "Machine Interrupt Registers" and "Interrupts" of the hypervisor
//! extension; Advanced Interrupt Architecture, "Interrupts for Machine and Supervisor Levels" and
//! "Interrupts for Virtual Machines (VS Level)".
//!
//! Priorities of major interrupts cannot be configured: every `iprio` array and hviprio are
//! read-only zeros, as the specification lets them be.

use crate::base::Interrupt;
use crate::base::{Cycles, InterruptFile};
use crate::base::{Mode, Privilege};
use crate::csr::field::{envcfg, hvictl, interrupt, status};
use crate::hart::Hart;
use crate::system::System;

/// Major interrupts from the highest default priority to the lowest.
const ORDER: [u64; 19] = [
    11, 3, 7, 9, 1, 5, 12, 10, 2, 6, 13, 24, 25, 26, 27, 28, 29, 30, 31,
];

/// The first of the pending interrupts in the default order.
fn first(pending: u64) -> Option<u64> {
    ORDER.into_iter().find(|code| pending >> code & 1 != 0)
}

/// *topi as it reads when no priority can be configured: IPRIO is 1.
const fn top(code: u64) -> u64 {
    code << 16 | 1
}

impl Hart {
    /// Tests whether stimecmp exists below M-mode and drives STIP.
    const fn has_stimecmp(&self) -> bool {
        self.csrs.menvcfg & envcfg::STCE != 0
    }

    /// Tests whether vstimecmp drives VSTIP.
    const fn has_vstimecmp(&self) -> bool {
        self.csrs.menvcfg & self.csrs.henvcfg & envcfg::STCE != 0
    }

    /// mip as the interrupt logic sees it.
    #[must_use]
    pub fn pending(&self, system: &System) -> u64 {
        let (csrs, irq_levels) = (&self.csrs, &self.irq_levels);
        let mut pending = csrs.mip;
        if self.has_stimecmp() {
            // Driven by the comparison alone: mip.STIP is not writable.
            pending &= !interrupt::STI;
        }
        let mut set = |condition: bool, bit: u64| {
            if condition {
                pending |= bit;
            }
        };
        set(irq_levels.machine_software, interrupt::MSI);
        set(irq_levels.machine_timer, interrupt::MTI);
        set(irq_levels.machine_external, interrupt::MEI);
        set(irq_levels.supervisor_external, interrupt::SEI);
        set(irq_levels.guest_external & csrs.hgeie != 0, interrupt::SGEI);
        set(
            irq_levels.guest_external >> csrs.vgein() & 1 != 0,
            interrupt::VSEI,
        );
        if self.has_stimecmp() {
            let time = system.devices.time(Cycles(self.cycles));
            set(time >= csrs.stimecmp, interrupt::STI);
            let guest_time = time.wrapping_add(csrs.htimedelta);
            set(
                self.has_vstimecmp() && guest_time >= csrs.vstimecmp,
                interrupt::VSTI,
            );
        }
        pending
    }

    /// Makes the timer comparisons due at once: mtime has been set. The next turn, or the next look at a wait, computes the deadline
    /// anew.
    pub const fn expire_timers(&mut self) {
        self.deadlines.expire_timer();
    }

    /// Recomputes when a timer comparison next changes, and ends the hart's turn there: when its time reaches the value, or, if it has,
    /// wraps past zero.
    pub fn refresh_timers(&mut self, system: &System) {
        self.look_at_interrupts = true;
        let now = Cycles(self.cycles);
        let time = system.devices.time(now);
        let mut deadline = u64::MAX;
        let mut consider = |condition: bool, compare: u64, offset: u64| {
            // The guest's time is the host's plus the offset; comparisons are unsigned. Nothing is below zero: that
            // comparison never changes.
            let local = time.wrapping_add(offset);
            if condition && compare != 0 {
                let next = if local < compare { compare } else { 0 };
                let at = system.devices.cycles_after(now, next.wrapping_sub(local));
                deadline = deadline.min(at.0);
            }
        };
        consider(self.has_stimecmp(), self.csrs.stimecmp, 0);
        consider(
            self.has_vstimecmp(),
            self.csrs.vstimecmp,
            self.csrs.htimedelta,
        );
        self.deadlines.set_timer(deadline);
    }

    /// vsip: the delegated bits of hip, one place lower, and those of hvip that exist for guests alone.
    #[must_use]
    pub const fn virtual_pending(&self, pending: u64) -> u64 {
        (pending & self.csrs.hideleg & interrupt::VIRTUAL) >> 1
            | self.csrs.injected & self.csrs.hvien
    }

    /// vsie.
    #[must_use]
    pub const fn virtual_enabled(&self) -> u64 {
        (self.csrs.mie & self.csrs.hideleg & interrupt::VIRTUAL) >> 1
            | self.csrs.injected_enabled & self.csrs.hvien
    }

    /// Interrupts that exist for guests alone, pending and enabled.
    const fn injected_ready(&self) -> u64 {
        let csrs = &self.csrs;
        csrs.injected & csrs.injected_enabled & csrs.hvien
    }

    /// mtopi.
    #[must_use]
    pub fn machine_top(&self, pending: u64) -> u64 {
        first(pending & self.csrs.mie & !self.csrs.mideleg).map_or(0, top)
    }

    /// stopi.
    #[must_use]
    pub fn supervisor_top(&self, pending: u64) -> u64 {
        first(self.supervisor_ready(pending)).map_or(0, top)
    }

    const fn supervisor_ready(&self, pending: u64) -> u64 {
        let csrs = &self.csrs;
        pending & csrs.mie & csrs.mideleg & !csrs.hideleg | self.delivered_ready()
    }

    /// Interrupts that M-mode gives to supervisors, pending and enabled.
    const fn delivered_ready(&self) -> u64 {
        let csrs = &self.csrs;
        csrs.delivered & csrs.delivered_enabled & csrs.mvien & !csrs.mideleg
    }

    /// vstopi: see the list of candidates in "Virtual supervisor top interrupt CSR (vstopi)".
    #[must_use]
    pub fn virtual_top(&self, pending: u64, system: &System) -> u64 {
        let control = self.csrs.hvictl;
        let ready = self.virtual_pending(pending) & self.virtual_enabled();
        let trap_interrupts = control & hvictl::VTI != 0;
        let identity = (control & hvictl::IID) >> hvictl::IID_SHIFT;
        let priority = control & hvictl::IPRIO;
        if !trap_interrupts && ready == 0 {
            return 0;
        }
        let external = (ready & interrupt::SEI != 0)
            .then(|| self.external_priority(system, identity, priority));
        // Without configurable priorities the others come after SEI in the default order.
        let other = if !trap_interrupts {
            first(ready & !interrupt::SEI).map(|code| (code, 0, true))
        } else if identity == 9 {
            None
        } else {
            Some((identity, priority, control & hvictl::DPR != 0))
        };
        let rank = |number: u64, lower: bool| match (number, lower) {
            (0, false) => 0,
            (0, true) => 512,
            (number, _) => number,
        };
        let (code, number) = match (external, other) {
            (None, None) => return 0,
            (Some(number), None) => (9, number),
            (None, Some((code, number, lower))) => (code, reported(number, lower)),
            (Some(external), Some((code, number, lower))) => {
                let rank = rank(number, lower);
                if external < rank || (external == rank && lower) {
                    (9, external)
                } else {
                    (code, reported(number, lower))
                }
            }
        };
        let shown = if control & hvictl::IPRIOM == 0 {
            1
        } else {
            number.min(255)
        };
        code << 16 | shown
    }

    /// The priority number of a pending virtual external interrupt.
    fn external_priority(&self, system: &System, identity: u64, priority: u64) -> u64 {
        let vgein = self.csrs.vgein();
        if vgein != 0 {
            let file = InterruptFile::Guest(vgein);
            if let Ok(top) = system.devices.imsic_top(self.id, file)
                && top != 0
            {
                return top & 0x7ff;
            }
        } else if identity == 9 && priority != 0 {
            return priority;
        }
        256
    }

    /// The interrupt that a trap is to be taken for now.
    #[must_use]
    pub fn interrupt_to_take(&self, system: &System) -> Option<Interrupt> {
        let pending = self.pending(system);
        let mode = self.mode();
        let ready = pending & self.csrs.mie;
        let trapping = self.csrs.hvictl & hvictl::VTI != 0;
        let given = self.injected_ready() | self.delivered_ready();
        if ready == 0 && !trapping && given == 0 {
            return None;
        }
        let machine = ready & !self.csrs.mideleg;
        if machine != 0
            && (mode.privilege != Privilege::Machine || self.csrs.mstatus & status::MIE != 0)
        {
            return first(machine).map(|code| Interrupt {
                code,
                to: Mode::MACHINE,
            });
        }
        if mode.privilege == Privilege::Machine {
            return None;
        }
        let supervisor = self.supervisor_ready(pending);
        if supervisor != 0 && (mode != Mode::HYPERVISOR || self.csrs.mstatus & status::SIE != 0) {
            return first(supervisor).map(|code| Interrupt {
                code,
                to: Mode::HYPERVISOR,
            });
        }
        if mode.virtualized
            && (mode.privilege == Privilege::User || self.csrs.vsstatus & status::SIE != 0)
        {
            let top = self.virtual_top(pending, system);
            let code = top >> 16;
            return (top != 0).then_some(Interrupt {
                code,
                to: Mode::VIRTUAL_SUPERVISOR,
            });
        }
        None
    }

    /// Tests whether WFI has something to go on for: "Wait for Interrupt", with the AIA's addition that
    /// an interrupt is pending at a level if its *topi is not zero.
    #[must_use]
    pub fn has_wakeup(&self, system: &System) -> bool {
        let pending = self.pending(system);
        pending & self.csrs.mie | self.delivered_ready() != 0
            || self.virtual_top(pending, system) != 0
    }
}

/// The priority number by which *topi reports an interrupt whose number is zero.
const fn reported(number: u64, lower: bool) -> u64 {
    match (number, lower) {
        (0, true) => 255,
        (number, _) => number,
    }
}
