//! Virtual-instruction exceptions: waits that trap, and accesses to an interrupt file that is kept in memory.

use abi::monitor::ExitCause;
use riscv::imsic::select;

use super::exit::{Exit, Next, interrupt_is_pending};
use super::{inject, spins};
use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, exception, number};
use crate::hart::instruction::{CsrAccess, CsrOperand, Fence, FenceKind, Instruction, WFI};
use crate::hart::unprivileged;
use crate::interrupts::Backing;
use crate::interrupts::softfile::InterruptFile;
use crate::run::requests::show_interrupts;
use crate::run::shadow::OnHart;
use crate::run::spin;
use crate::run::terms;
use crate::run::translations;
use crate::vm::word::Spin;

/// `cycle`, `instret` and hpmcounter3 to hpmcounter31; `time` never traps.
const COUNTERS: core::ops::RangeInclusive<u16> = number::CYCLE..=number::HPMCOUNTER31;

/// siselect values of the array of major interrupt priorities.
const PRIORITIES: core::ops::RangeInclusive<u64> = select::IPRIO..=select::IPRIO_LAST;

/// Handles an instruction that trapped. A guest's WFI is by far the most frequent.
#[inline(always)]
pub fn virtual_instruction(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    let bits = csr::read::<{ number::STVAL }>();
    if bits == u64::from(WFI) && !exit.state.context.in_user_mode() {
        return wait(exit);
    }
    any_instruction(exit, bits as u32)
}

/// Handles an instruction whose bits are in stval, or 0 there.
#[inline(never)]
fn any_instruction(exit: &mut Exit<'_>, bits: u32) -> (ExitCause, Next) {
    // stval may hold the instruction or 0 (privileged architecture, "stval").
    let bits = match bits {
        0 => match unprivileged::fetch_instruction(exit.state.context.program_counter) {
            Some(bits) => bits,
            // The guest has changed its tables since. It executes the instruction again.
            None => return (ExitCause::VirtualInstruction, Next::Resume),
        },
        bits => bits,
    };
    let user = exit.state.context.in_user_mode();
    match Instruction::decode(bits) {
        Instruction::WaitForInterrupt if !user => wait(exit),
        Instruction::WaitOnReservation => spin(exit),
        Instruction::Pause => pause_loop(exit),
        Instruction::Fence(
            fence @ Fence {
                kind: FenceKind::SfenceVma | FenceKind::SinvalVma,
                ..
            },
        ) if !user && exit.state.shadow.is_some() => {
            on_hart(exit).fence(exit.state, fence);
            advance(exit);
            (ExitCause::SfenceVma, Next::Resume)
        }
        Instruction::Csr(access)
            if access.csr == number::SATP && !user && exit.state.shadow.is_some() =>
        {
            on_hart(exit).access_address_space(exit.state, access);
            advance(exit);
            (ExitCause::Satp, Next::Resume)
        }
        Instruction::Fence(Fence {
            kind: FenceKind::SfenceVma | FenceKind::SinvalVma,
            ..
        }) if !user && fences_trap(exit) => {
            // The guest repeats the access, which traps no more.
            translations::fenced(exit.hart, exit.state);
            (ExitCause::SfenceVma, Next::Resume)
        }
        Instruction::Csr(access) if access.csr == number::SATP && !user && fences_trap(exit) => {
            if translations::access_address_space(exit.hart, exit.state, access) {
                advance(exit);
            }
            (ExitCause::Satp, Next::Resume)
        }
        Instruction::Csr(access) if COUNTERS.contains(&access.csr) => counter(exit, access, bits),
        Instruction::Csr(access) if !user => csr_access(exit, access, bits),
        _ => refuse(exit, bits, ExitCause::VirtualInstruction),
    }
}

const fn on_hart<'a>(exit: &Exit<'a>) -> OnHart<'a> {
    OnHart {
        system: exit.system,
        hart: exit.hart,
        vm: exit.vm,
        vcpu: exit.vcpu,
    }
}

/// Returns true if the guest's fences trap, and with them its accesses to satp.
fn fences_trap(exit: &Exit<'_>) -> bool {
    exit.state.context.hstatus & csr::hstatus::VTVM != 0
}

fn advance(exit: &mut Exit<'_>) {
    exit.state.context.program_counter = exit.state.context.program_counter.wrapping_add(4);
}

/// Injects an illegal-instruction exception: the guest has no hypervisor extension.
fn refuse(exit: &mut Exit<'_>, bits: u32, cause: ExitCause) -> (ExitCause, Next) {
    inject::exception(exit, exception::ILLEGAL_INSTRUCTION, u64::from(bits));
    (cause, Next::Resume)
}

/// WFI: the vCPU waits, unless an interrupt that it has enabled is pending already, or may be on its way from another hart.
#[inline]
fn wait(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    advance(exit);
    let files = |hart| &exit.system.hart(hart).files;
    let is_arriving = || exit.vcpu.stale_files.is_arriving(exit.vcpu.id, files);
    let next = if interrupt_is_pending(exit) || is_arriving() {
        Next::Resume
    } else {
        Next::Wait
    };
    (ExitCause::Wfi, next)
}

/// WRS.NTO: the vCPU spins.
fn spin(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    let seen = spin::at_wrs(exit.vm, exit.state);
    advance(exit);
    (ExitCause::WrsNto, spins::spin(exit, seen))
}

/// A pause loop: the vCPU spins.
fn pause_loop(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    exit.state.pauses.grow();
    terms::set_pause_loops(exit.hart, exit.state.pauses, true);
    // A policy that waits for words decodes the loop. The other policies do as other hypervisors, which do not.
    let waits_for_words = exit
        .system
        .scheduler
        .lock_of(exit.hart.index)
        .scheduler()
        .waits_for_words();
    let seen = match waits_for_words {
        true => match spin::at_pause(exit.vm, exit.state) {
            Spin::Unknown => spin::at_pause_of_several(exit.vm, exit.vcpu, exit.state),
            known => known,
        },
        false => Spin::Unknown,
    };
    advance(exit);
    (ExitCause::PauseLoop, spins::spin(exit, seen))
}

/// Reads a counter that traps: the vCPU's `cycle` or `instret`, or one that has an event.
fn counter(exit: &mut Exit<'_>, access: CsrAccess, bits: u32) -> (ExitCause, Next) {
    let number = (access.csr - number::COUNTERS) as u8;
    let granted = !exit.state.context.in_user_mode()
        || csr::read::<{ number::SCOUNTEREN }>() >> number & 1 != 0;
    let value = exit.state.counters.read(number, &HartCounters);
    let Some(value) = value.filter(|_| granted && !access.writes()) else {
        return refuse(exit, bits, ExitCause::Csr);
    };
    exit.state
        .context
        .set(access.destination.number() as u8, value);
    exit.state.counters.retire();
    advance(exit);
    (ExitCause::Csr, Next::Resume)
}

/// Handles a CSR instruction, which is emulated if it concerns an interrupt file in memory or the interrupts' priorities.
fn csr_access(exit: &mut Exit<'_>, access: CsrAccess, bits: u32) -> (ExitCause, Next) {
    let operand = match access.operand {
        CsrOperand::Register(register) => exit.state.context.get(register.number() as u8),
        CsrOperand::Immediate(bits) => u64::from(bits),
    };
    let old = {
        let mut interrupts = exit.vcpu.interrupts.lock();
        match access.csr {
            // Any write claims what stopei shows (AIA, "Top external interrupt CSRs").
            number::STOPEI => interrupts.with_memory_file(|file| match access.writes() {
                true => file.claim(),
                false => file.top_register(),
            }),
            number::SIREG if interrupts.backing() == Backing::Memory => interrupts
                .with_memory_file(|file| indirect(file, access, operand))
                .flatten(),
            // The guest's major interrupts have no priorities of their own: the array is read-only zero, and trapped
            // even where the file is the hardware's (AIA, "Virtual supervisor-level CSRs").
            number::SIREG if PRIORITIES.contains(&csr::read::<{ number::VSISELECT }>()) => Some(0),
            // Firmware that delegates counters makes it trap, on harts that have it ("Smcdeleg and Ssccfg Counter Delegation Extensions"). The
            // guest's counters are those that are open to it.
            number::SCOUNTOVF if !access.writes() => {
                Some(csr::read::<{ number::SCOUNTOVF }>() & csr::read::<{ number::HCOUNTEREN }>())
            }
            _ => None,
        }
    };
    let Some(old) = old else {
        return refuse(exit, bits, ExitCause::Csr);
    };
    exit.state
        .context
        .set(access.destination.number() as u8, old);
    show_interrupts(exit.vcpu);
    advance(exit);
    (ExitCause::Csr, Next::Resume)
}

fn indirect(file: &mut InterruptFile, access: CsrAccess, operand: u64) -> Option<u64> {
    let select = csr::read::<{ number::VSISELECT }>();
    let old = file.read_indirect(select).ok()?;
    if access.writes() {
        file.write_indirect(select, access.result(old, operand))
            .ok()?;
    }
    Some(old)
}
