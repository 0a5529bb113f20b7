//! Terms of a vCPU's stay on its hart: the slice, and whether its waits and pause loops trap.

use scheduler::{Continue, Leave, Ticks};
use spinwait::PauseWindow;

use crate::hart::capabilities::Capability;
use crate::hart::csr;
use crate::hart::custom;
use crate::run::timer::set_slice;
use crate::system::harts::Hart;
use crate::system::{Hypervisor, now};
use crate::vm::vcpu::VcpuState;

/// Asks the scheduler whether the vCPU may stay, and on what terms.
#[inline(never)]
pub fn reconsider(
    system: &Hypervisor,
    hart: &Hart,
    began: Ticks,
    state: &mut VcpuState,
) -> Option<Leave> {
    let decision = system.with_hart(hart.index, |group| {
        group.scheduler_mut().reconsider(hart.index, now() - began)
    });
    follow(system, hart, decision, state)
}

/// Applies the scheduler's terms to the vCPU of this hart.
#[inline]
pub fn follow(
    system: &Hypervisor,
    hart: &Hart,
    decision: Continue,
    state: &mut VcpuState,
) -> Option<Leave> {
    match decision {
        Continue::Stay { slice, trap_waits } => {
            let old = state.context.hstatus;
            let bit = csr::hstatus::VTW;
            state.context.hstatus = if trap_waits { old | bit } else { old & !bit };
            set_pause_loops(hart, state.pauses, trap_waits);
            set_slice(system, hart, now(), slice);
            None
        }
        Continue::Leave(reason) => Some(reason),
    }
}

/// Lets pause loops exit if WRS.NTO traps.
pub fn set_pause_loops(hart: &Hart, pauses: PauseWindow, exit: bool) {
    if hart.has(Capability::PauseLoopExit) {
        let (gap, window) = pauses.now();
        // SAFETY: the hart has the extension.
        unsafe { custom::set_pause_loops(gap, if exit { window } else { 0 }) };
    }
}

pub fn hstatus(old: u64, file: u8, trap_waits: bool) -> u64 {
    let cleared = old & !(csr::hstatus::VTW | csr::hstatus::VGEIN);
    let file = u64::from(file) << csr::hstatus::VGEIN_SHIFT;
    cleared | file | if trap_waits { csr::hstatus::VTW } else { 0 }
}
