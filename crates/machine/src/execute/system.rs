//! Instructions of opcode SYSTEM other than those of Zicsr.

use riscv::instruction;

use crate::base::HartId;
use crate::base::{Fence, VirtualFence};
use crate::count::Event;
use crate::csr::field::{hstatus, status};
use crate::extension::{
    BROADCAST_FENCE_MASK, BROADCAST_FENCE_MATCH, PENDING_TEST_MASK, PENDING_TEST_MATCH,
};
use crate::hart::{Cause, Exception, Expiry, Hart, Mode, Privilege, Trapped, Wait};
use crate::instruction::DISCARD;
use crate::system::System;
use crate::trace::Happening;
use crate::zicsr::Next;

impl Hart {
    /// Executes an instruction from its encoding. `self.pc` is that of the instruction.
    ///
    /// # Errors
    /// [`Trapped`] with its exception.
    #[inline(never)]
    pub(super) fn execute_system(
        &mut self,
        raw: u32,
        system: &mut System,
    ) -> Result<Next, Trapped> {
        match raw {
            instruction::ECALL => Err(self.environment_call()),
            instruction::EBREAK => {
                let guest = self.mode().virtualized;
                Err(self.raise(Exception::at(Cause::Breakpoint, self.pc, guest)))
            }
            instruction::SRET => self.supervisor_return(raw, system),
            instruction::MRET => self.machine_return(raw, system),
            instruction::WFI => self.wait_for_interrupt(raw, system),
            instruction::WRS_NTO => self.wait_for_store(system, true),
            instruction::WRS_STO => self.wait_for_store(system, false),
            instruction::SFENCE_W_INVAL | instruction::SFENCE_INVAL_IR => {
                self.order_invalidations(raw)
            }
            _ if raw & PENDING_TEST_MASK == PENDING_TEST_MATCH
                && self.extension.present.pending_test =>
            {
                self.test_pending(raw, system)
            }
            _ if raw & BROADCAST_FENCE_MASK == BROADCAST_FENCE_MATCH
                && self.extension.present.broadcast_fence =>
            {
                self.fence_everywhere(raw, system)
            }
            _ if raw >> 12 & 7 == 4 => self.access_guest(raw, system),
            _ if raw >> 7 & 31 == 0 => self.fence_instruction(raw, system),
            _ => Err(self.illegal(raw)),
        }
    }

    pub(super) fn illegal(&mut self, raw: u32) -> Trapped {
        self.raise(Exception::new(Cause::IllegalInstruction, raw.into()))
    }

    pub(super) fn virtual_instruction(&mut self, raw: u32) -> Trapped {
        self.raise(Exception::new(Cause::VirtualInstruction, raw.into()))
    }

    fn environment_call(&mut self) -> Trapped {
        let cause = match (self.mode().privilege, self.mode().virtualized) {
            (Privilege::User, _) => Cause::CallFromUser,
            (Privilege::Supervisor, false) => Cause::CallFromSupervisor,
            (Privilege::Supervisor, true) => Cause::CallFromVirtualSupervisor,
            (Privilege::Machine, _) => Cause::CallFromMachine,
        };
        self.raise(Exception::new(cause, 0))
    }

    /// After the mode has changed: whether an interrupt is let through by that.
    fn after_return(&self, system: &System) -> Next {
        if self.watched || self.interrupt_to_take(system).is_some() {
            Next::Stop
        } else {
            Next::Refetch
        }
    }

    fn supervisor_return(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        match (self.mode().privilege, self.mode().virtualized) {
            (Privilege::User, false) => return Err(self.illegal(raw)),
            (Privilege::User, true) => return Err(self.virtual_instruction(raw)),
            (Privilege::Supervisor, false) if self.csrs.mstatus & status::TSR != 0 => {
                return Err(self.illegal(raw));
            }
            (Privilege::Supervisor, true) if self.csrs.hstatus & hstatus::VTSR != 0 => {
                return Err(self.virtual_instruction(raw));
            }
            _ => {}
        }
        let from = self.mode();
        self.return_from_supervisor();
        self.charge_mode_change(system, from);
        self.check_purge(system, from);
        Ok(self.after_return(system))
    }

    fn machine_return(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        if self.mode().privilege != Privilege::Machine {
            return Err(self.illegal(raw));
        }
        let from = self.mode();
        self.return_from_machine();
        self.charge_mode_change(system, from);
        self.check_purge(system, from);
        Ok(self.after_return(system))
    }

    /// WFI: "Wait for Interrupt". Where it is not permitted the time limit is zero.
    fn wait_for_interrupt(&mut self, raw: u32, system: &System) -> Result<Next, Trapped> {
        let mode = self.mode();
        let trapped = self.csrs.mstatus & status::TW != 0;
        match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => {}
            _ if trapped => return Err(self.illegal(raw)),
            (Privilege::User, false) => return Err(self.illegal(raw)),
            (Privilege::User, true) => return Err(self.virtual_instruction(raw)),
            (Privilege::Supervisor, true) if self.csrs.hstatus & hstatus::VTW != 0 => {
                return Err(self.virtual_instruction(raw));
            }
            _ => {}
        }
        self.end_stretch(mode);
        self.pc = self.pc.wrapping_add(4);
        if !self.has_wakeup(system) {
            self.wait = Wait::Interrupt;
            self.reservation = None;
            self.note(|_| Happening::WaitForInterrupt { mode });
        } else if mode == Mode::HYPERVISOR
            && let Some(stretches) = &mut self.stretches
        {
            stretches.go_on(self.cycles);
        }
        Ok(Next::Stop)
    }

    /// A wait ends a stretch of the hypervisor.
    fn end_stretch(&mut self, mode: Mode) {
        if mode == Mode::HYPERVISOR
            && let Some(stretches) = &mut self.stretches
        {
            stretches.end(self.cycles, self.pc);
        }
    }

    /// WRS.NTO and WRS.STO: Zawrs, "Wait-on-Reservation-Set Instructions".
    fn wait_for_store(&mut self, system: &mut System, no_timeout: bool) -> Result<Next, Trapped> {
        self.pc = self.pc.wrapping_add(4);
        let Some(reservation) = self.reservation else {
            return Ok(Next::Refetch);
        };
        if self.has_wakeup(system) {
            return Ok(Next::Refetch);
        }
        let mode = self.mode();
        let below_machine = mode.privilege != Privilege::Machine;
        let limits = system.limits;
        let (limit, expiry) = if !no_timeout {
            (limits.wrs_sto, Expiry::Complete)
        } else if below_machine && self.csrs.mstatus & status::TW != 0 {
            (limits.wrs_nto, Expiry::Illegal)
        } else if mode.virtualized && self.csrs.hstatus & hstatus::VTW != 0 {
            (limits.wrs_nto, Expiry::Virtual)
        } else {
            (u64::MAX, Expiry::Complete)
        };
        self.end_stretch(mode);
        let deadline = self.cycles.saturating_add(limit);
        self.wait = Wait::Store { deadline, expiry };
        // What is watched is the line; who waits has no reservation any more.
        self.reservation = None;
        self.note(|_| Happening::WaitForStore {
            mode,
            physical: reservation.physical,
            deadline,
        });
        // From the first wait for a word on, whoever listens hears what becomes of it.
        let (physical, size) = (reservation.physical, reservation.size);
        if self.events.is_some() && system.memory.observe(physical, size) {
            self.note_word(system, physical, size, false);
        }
        system.memory.watch(
            self.id,
            reservation.physical & !(crate::memory::LINE_BYTES - 1),
        );
        Ok(Next::Stop)
    }

    /// SFENCE.W.INVAL and SFENCE.INVAL.IR: Svinval. Invalidations here are in order anyway.
    fn order_invalidations(&mut self, raw: u32) -> Result<Next, Trapped> {
        match (self.mode().privilege, self.mode().virtualized) {
            (Privilege::User, false) => Err(self.illegal(raw)),
            (Privilege::User, true) => Err(self.virtual_instruction(raw)),
            _ => Ok(Next::Continue),
        }
    }

    /// SFENCE.VMA, HFENCE.VVMA, HFENCE.GVMA and Svinval's forms of them.
    fn fence_instruction(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        let mode = self.mode();
        let user = mode.privilege == Privilege::User;
        let (rs1, rs2) = (raw >> 15 & 31, raw >> 20 & 31);
        let operand = |register: u32, value: u64| (register != 0).then_some(value);
        let address = operand(rs1, self.x[rs1 as usize]);
        let identifier = operand(rs2, self.x[rs2 as usize]);
        let asid = identifier.map(|value| value as u16);
        match raw >> 25 {
            0x09 | 0x0b => {
                if user {
                    return Err(self.refused(raw));
                }
                if mode == Mode::HYPERVISOR && self.csrs.mstatus & status::TVM != 0 {
                    return Err(self.illegal(raw));
                }
                if mode.virtualized && self.csrs.hstatus & hstatus::VTVM != 0 {
                    return Err(self.virtual_instruction(raw));
                }
                let fence = if mode.virtualized {
                    self.extension.note_fence(self.id.index());
                    Fence::Virtual {
                        by: VirtualFence::Sfence,
                        address,
                        asid,
                        vmid: self.csrs.vmid(),
                    }
                } else {
                    Fence::Supervisor { address, asid }
                };
                self.fence_both(system, fence);
            }
            0x11 | 0x13 => {
                if mode.virtualized || user {
                    return Err(self.refused(raw));
                }
                let fence = Fence::Virtual {
                    by: VirtualFence::Hfence,
                    address,
                    asid,
                    vmid: self.csrs.vmid(),
                };
                self.fence_both(system, fence);
            }
            0x31 | 0x33 => {
                if mode.virtualized || user {
                    return Err(self.refused(raw));
                }
                if mode == Mode::HYPERVISOR && self.csrs.mstatus & status::TVM != 0 {
                    return Err(self.illegal(raw));
                }
                // Bits of rs2 that no VMID has are ignored ("Hypervisor Memory-Management Fence Instructions").
                let mask = self.extension.vmid_bits.mask();
                let vmid = identifier.map(|value| (value & mask) as u16);
                // rs1 holds the guest physical address shifted right by two bits.
                let address = address.map(|address| address << 2);
                self.fence_both(system, Fence::Guest { address, vmid });
            }
            _ => return Err(self.illegal(raw)),
        }
        self.counts.of(mode).add(Event::TranslationFences, 1);
        self.pc = self.pc.wrapping_add(4);
        Ok(Next::Refetch)
    }

    /// The broadcast fence: VS-stage translations of the virtual machine that hgatp names, on all harts.
    fn fence_everywhere(&mut self, raw: u32, system: &mut System) -> Result<Next, Trapped> {
        let mode = self.mode();
        if mode.privilege == Privilege::User {
            return Err(self.refused(raw));
        }
        if mode.virtualized && self.csrs.hstatus & hstatus::VTVM != 0 {
            return Err(self.virtual_instruction(raw));
        }
        let operand = |register: u32| (register != 0).then(|| self.x[register as usize]);
        let address = operand(raw >> 15 & 31);
        let fence = Fence::Virtual {
            by: VirtualFence::Broadcast,
            address,
            asid: operand(raw >> 20 & 31).map(|value| value as u16),
            vmid: self.csrs.vmid(),
        };
        if let Some(timing) = &mut system.timing {
            self.cycles += timing.broadcast(self.id, fence);
        }
        self.fence(fence);
        // The other harts carry it out before their next instruction.
        system.broadcasts.push((self.id, fence));
        self.counts.of(mode).add(Event::TranslationFences, 1);
        self.pc = self.pc.wrapping_add(4);
        Ok(Next::Refetch)
    }

    /// The global pending test: rd gets hgeip of the hart whose mhartid is in rs1, zero if there is
    /// no such hart.
    fn test_pending(&mut self, raw: u32, system: &System) -> Result<Next, Trapped> {
        let mode = self.mode();
        if mode.virtualized || mode.privilege == Privilege::User {
            return Err(self.refused(raw));
        }
        let hart = self.x[(raw >> 15 & 31) as usize];
        let pending = u32::try_from(hart).map_or(0, |hart| {
            system.devices.irq_levels(HartId(hart)).guest_external
        });
        let rd = match (raw >> 7 & 31) as u8 {
            0 => DISCARD,
            register => register,
        };
        self.x[usize::from(rd)] = pending;
        Ok(Next::Continue)
    }

    /// PAUSE with V = 1 while pause-loop exiting is on, `count` instructions into its block.
    ///
    /// # Errors
    /// [`Trapped`] with a virtual-instruction exception when the loop has lasted too long.
    #[inline(never)]
    pub(super) fn pause(&mut self, count: u8) -> Result<(), Trapped> {
        let user = self.mode().privilege == Privilege::User;
        if user && self.extension.pause.supervisor_only {
            return Ok(());
        }
        let now = self.cycles + u64::from(count) - 1;
        if self.extension.pause.note(now) {
            return Err(self.virtual_instruction(instruction::PAUSE));
        }
        Ok(())
    }

    /// The exception for a hypervisor or supervisor instruction in a mode too low for it.
    pub(super) fn refused(&mut self, raw: u32) -> Trapped {
        if self.mode().virtualized {
            self.virtual_instruction(raw)
        } else {
            self.illegal(raw)
        }
    }
}
