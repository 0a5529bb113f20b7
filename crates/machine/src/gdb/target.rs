//! Operations of gdb on the machine.

use gdbstub::arch::Arch;
use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, SwBreakpoint, SwBreakpointOps,
};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use gdbstub_arch::riscv::reg::id::RiscvRegId;

use super::Stops;
use super::register::{Register, description};
use crate::hart::Hart;
use crate::machine::Machine;

/// RV64GC with the CSRs of `target.xml`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rv64 {}

impl Arch for Rv64 {
    type Usize = u64;
    type Registers = RiscvCoreRegs<u64>;
    type BreakpointKind = usize;
    type RegId = Register;
}

/// A machine under a debugger.
#[derive(Debug)]
pub(super) struct Debugged<'a> {
    pub machine: &'a mut Machine,
}

/// Threads count from one.
pub(super) fn thread(hart: usize) -> Tid {
    Tid::MIN.saturating_add(hart)
}

const fn hart_of(thread: Tid) -> usize {
    thread.get() - 1
}

impl Debugged<'_> {
    fn hart(&mut self, thread: Tid) -> TargetResult<&mut Hart, Self> {
        let hart = self.machine.harts.get_mut(hart_of(thread));
        hart.ok_or(TargetError::NonFatal)
    }

    fn stops(&mut self, thread: Tid) -> Option<&mut Stops> {
        let hart = self.machine.harts.get_mut(hart_of(thread))?;
        hart.stops.as_deref_mut()
    }

    fn each_stops(&mut self, mut change: impl FnMut(&mut Stops)) {
        for hart in &mut self.machine.harts {
            if let Some(stops) = &mut hart.stops {
                change(stops);
            }
        }
    }

    fn add_breakpoint(&mut self, address: u64) {
        self.each_stops(|stops| {
            if let Err(place) = stops.breakpoints.binary_search(&address) {
                stops.breakpoints.insert(place, address);
            }
        });
    }

    fn remove_breakpoint(&mut self, address: u64) -> bool {
        let mut found = false;
        self.each_stops(|stops| {
            if let Ok(place) = stops.breakpoints.binary_search(&address) {
                stops.breakpoints.remove(place);
                found = true;
            }
        });
        found
    }
}

impl Target for Debugged<'_> {
    type Arch = Rv64;
    type Error = std::convert::Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Self::Arch, Self::Error> {
        BaseOps::MultiThread(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }
}

impl TargetDescriptionXmlOverride for Debugged<'_> {
    /// All harts have the same registers.
    fn target_description_xml(
        &self,
        _: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let text = description(self.machine.config().board.isa.vector_length);
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = text.as_bytes().get(from..).unwrap_or_default();
        let count = rest.len().min(length).min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest.iter().take(count)) {
            *to = *from;
        }
        Ok(count)
    }
}

impl MultiThreadBase for Debugged<'_> {
    fn read_registers(
        &mut self,
        registers: &mut RiscvCoreRegs<u64>,
        thread: Tid,
    ) -> TargetResult<(), Self> {
        let hart = self.hart(thread)?;
        for (to, from) in registers.x.iter_mut().zip(hart.x) {
            *to = from;
        }
        registers.pc = hart.pc;
        Ok(())
    }

    fn write_registers(
        &mut self,
        registers: &RiscvCoreRegs<u64>,
        thread: Tid,
    ) -> TargetResult<(), Self> {
        let hart = self.hart(thread)?;
        // x0 stays zero.
        for (to, from) in hart.x.iter_mut().zip(registers.x).skip(1) {
            *to = from;
        }
        hart.pc = registers.pc & !1;
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(
        &mut self,
        address: u64,
        bytes: &mut [u8],
        thread: Tid,
    ) -> TargetResult<usize, Self> {
        match self.machine.debugger_read(hart_of(thread), address, bytes) {
            0 if !bytes.is_empty() => Err(TargetError::NonFatal),
            done => Ok(done),
        }
    }

    fn write_addrs(&mut self, address: u64, bytes: &[u8], thread: Tid) -> TargetResult<(), Self> {
        let done = self.machine.debugger_write(hart_of(thread), address, bytes);
        if done == bytes.len() {
            Ok(())
        } else {
            Err(TargetError::NonFatal)
        }
    }

    fn list_active_threads(&mut self, report: &mut dyn FnMut(Tid)) -> Result<(), Self::Error> {
        (0..self.machine.harts.len()).for_each(|hart| report(thread(hart)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Debugged<'_> {
    fn thread_extra_info(&self, thread: Tid, text: &mut [u8]) -> Result<usize, Self::Error> {
        let Some(hart) = self.machine.harts.get(hart_of(thread)) else {
            return Ok(0);
        };
        let info = format!(
            "hart {} in {}, {}",
            hart.id.0,
            hart.mode().name(),
            hart.wait.name()
        );
        let length = info.len().min(text.len());
        for (to, from) in text.iter_mut().zip(info.bytes()) {
            *to = from;
        }
        Ok(length)
    }
}

impl SingleRegisterAccess<Tid> for Debugged<'_> {
    fn read_register(
        &mut self,
        thread: Tid,
        register: Register,
        bytes: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let Machine { harts, system, .. } = &mut *self.machine;
        let hart = harts
            .get_mut(hart_of(thread))
            .ok_or(TargetError::NonFatal)?;
        let word = match register {
            Register::Word(word) => word,
            Register::Vector(number) => {
                let value = hart.vector.register(number);
                for (to, from) in bytes.iter_mut().zip(value) {
                    *to = *from;
                }
                return Ok(bytes.len().min(value.len()));
            }
        };
        let value = match word {
            RiscvRegId::Gpr(number @ 0..32) => hart.x[usize::from(number)],
            RiscvRegId::Fpr(number @ 0..32) => hart.f[usize::from(number)],
            RiscvRegId::Pc => hart.pc,
            RiscvRegId::Csr(number) => hart
                .read_csr(number, system)
                .map_err(|_| TargetError::NonFatal)?,
            _ => return Err(TargetError::NonFatal),
        };
        for (to, from) in bytes.iter_mut().zip(value.to_le_bytes()) {
            *to = from;
        }
        Ok(bytes.len().min(size_of::<u64>()))
    }

    fn write_register(
        &mut self,
        thread: Tid,
        register: Register,
        bytes: &[u8],
    ) -> TargetResult<(), Self> {
        let hart = self.hart(thread)?;
        let word = match register {
            Register::Word(word) => word,
            Register::Vector(number) => {
                for (to, from) in hart.vector.register_mut(number).iter_mut().zip(bytes) {
                    *to = *from;
                }
                return Ok(());
            }
        };
        let value = bytes.first_chunk().ok_or(TargetError::NonFatal)?;
        let value = u64::from_le_bytes(*value);
        match word {
            RiscvRegId::Gpr(0) => {}
            RiscvRegId::Gpr(number @ 1..32) => hart.x[usize::from(number)] = value,
            RiscvRegId::Fpr(number @ 0..32) => hart.f[usize::from(number)] = value,
            RiscvRegId::Pc => hart.pc = value & !1,
            _ => return Err(TargetError::NonFatal),
        }
        Ok(())
    }
}

impl MultiThreadResume for Debugged<'_> {
    fn resume(&mut self) -> Result<(), Self::Error> {
        self.machine.leave_stops();
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Self::Error> {
        self.each_stops(|stops| (stops.step, stops.named, stops.held) = (false, false, false));
        Ok(())
    }

    fn set_resume_action_continue(
        &mut self,
        thread: Tid,
        _: Option<Signal>,
    ) -> Result<(), Self::Error> {
        if let Some(stops) = self.stops(thread) {
            (stops.step, stops.named, stops.held) = (false, true, false);
        }
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Debugged<'_> {
    fn set_resume_action_step(
        &mut self,
        thread: Tid,
        _: Option<Signal>,
    ) -> Result<(), Self::Error> {
        if let Some(stops) = self.stops(thread) {
            (stops.step, stops.named, stops.held) = (true, true, false);
        }
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Debugged<'_> {
    /// Only the harts that were named go on, whether for a step or without end.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Self::Error> {
        self.each_stops(|stops| stops.held = !stops.named);
        Ok(())
    }
}

impl Breakpoints for Debugged<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debugged<'_> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.remove_breakpoint(address))
    }
}

impl HwBreakpoint for Debugged<'_> {
    fn add_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address);
        Ok(true)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.remove_breakpoint(address))
    }
}

impl Machine {
    /// Lets every hart go on from where it stands.
    fn leave_stops(&mut self) {
        for hart in &mut self.harts {
            let from = (hart.pc, hart.retired);
            if let Some(stops) = &mut hart.stops {
                (stops.from, stops.reached) = (from, None);
            }
        }
    }
}
