//! Virtual-instruction exceptions: waits that trap, and accesses to an interrupt file that is kept in memory.

use abi::monitor::ExitCause;
use hypervisor::softfile::{InterruptFile, NoRegister};
use scheduler::Leave;

use super::{Exit, Next, inject};
use crate::hart::csr::{self, exception, number};
use crate::hart::unprivileged;
use crate::interrupts::Backing;
use crate::run;

const WFI: u32 = 0x1050_0073;
const WRS_NTO: u32 = 0x00D0_0073;
const SYSTEM: u32 = 0x73;

/// The guest's names for the registers of its interrupt file.
const SIREG: u16 = 0x151;
const STOPEI: u16 = 0x15C;

/// An instruction that the hart gave to the hypervisor.
pub fn virtual_instruction(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    // stval may hold the instruction or 0 (privileged architecture, "stval").
    let bits = match csr::read::<{ number::STVAL }>() as u32 {
        0 => unprivileged::fetch_instruction(exit.registers.context.program_counter),
        bits => Some(bits),
    };
    match bits {
        Some(WFI) => wait(exit),
        Some(WRS_NTO) => {
            advance(exit);
            (ExitCause::WrsNto, Next::Leave(Leave::Spin))
        }
        Some(bits) if bits & 0x7f == SYSTEM && bits >> 12 & 3 != 0 => csr_access(exit, bits),
        bits => refuse(exit, bits.unwrap_or(0), ExitCause::VirtualInstruction),
    }
}

fn advance(exit: &mut Exit<'_>) {
    exit.registers.context.program_counter = exit.registers.context.program_counter.wrapping_add(4);
}

/// The guest has no hypervisor extension, so to it the instruction is illegal.
fn refuse(exit: &mut Exit<'_>, bits: u32, cause: ExitCause) -> (ExitCause, Next) {
    inject::exception(exit.registers, exception::ILLEGAL_INSTRUCTION, u64::from(bits));
    (cause, Next::Resume)
}

/// WFI: the vCPU waits, unless an interrupt that it has enabled is pending already.
fn wait(exit: &mut Exit<'_>) -> (ExitCause, Next) {
    if exit.registers.context.in_user_mode() {
        return refuse(exit, WFI, ExitCause::Wfi);
    }
    advance(exit);
    let pending = csr::read::<{ number::VSIP }>() & csr::read::<{ number::VSIE }>();
    let next = if pending != 0 { Next::Resume } else { Next::Leave(Leave::SelfWait) };
    (ExitCause::Wfi, next)
}

/// A CSR instruction, which is emulated if it concerns an interrupt file in memory.
fn csr_access(exit: &mut Exit<'_>, bits: u32) -> (ExitCause, Next) {
    let register = (bits >> 20) as u16;
    let in_memory = exit.vcpu.interrupts.lock().backing == Backing::Memory;
    if !in_memory || exit.registers.context.in_user_mode() || !matches!(register, SIREG | STOPEI) {
        return refuse(exit, bits, ExitCause::VirtualInstruction);
    }
    let source = (bits >> 15 & 31) as u8;
    let operand = if bits >> 14 & 1 != 0 { u64::from(source) } else { exit.registers.context.get(source) };
    // CSRRS and CSRRC with x0 or 0 only read.
    let operation = match bits >> 12 & 3 {
        1 => Some(Operation::Write),
        _ if source == 0 => None,
        2 => Some(Operation::Set),
        _ => Some(Operation::Clear),
    };
    let result = {
        let mut interrupts = exit.vcpu.interrupts.lock();
        let mut file = InterruptFile::restore(interrupts.state);
        let result = match register {
            STOPEI => Ok(if operation.is_some() { file.claim() } else { file.top_register() }),
            _ => indirect(&mut file, operation, operand),
        };
        interrupts.state = file.save();
        result
    };
    let Ok(old) = result else { return refuse(exit, bits, ExitCause::Csr) };
    exit.registers.context.set((bits >> 7 & 31) as u8, old);
    run::show_interrupts(exit.vcpu);
    advance(exit);
    (ExitCause::Csr, Next::Resume)
}

enum Operation {
    Write,
    Set,
    Clear,
}

fn indirect(file: &mut InterruptFile, operation: Option<Operation>, operand: u64) -> Result<u64, NoRegister> {
    let select = csr::read::<{ number::VSISELECT }>();
    let old = file.read_indirect(select)?;
    let new = match operation {
        None => return Ok(old),
        Some(Operation::Write) => operand,
        Some(Operation::Set) => old | operand,
        Some(Operation::Clear) => old & !operand,
    };
    file.write_indirect(select, new)?;
    Ok(old)
}
