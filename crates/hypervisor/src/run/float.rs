//! The floating-point registers of a vCPU, which come to a hart only where they are needed.
//!
//! A vCPU that has used them lately gets them when it is dispatched. Another one runs with sstatus.FS = Off: its first
//! floating-point instruction then is an illegal instruction (privileged architecture, "Hypervisor Extension", "Machine Status
//! Registers": FS of both sstatus and vsstatus counts while V = 1), which the hypervisor takes in place of the guest, puts
//! the registers onto the hart, and lets the guest execute it again. They are saved where the guest has changed them.

use core::sync::atomic::Ordering;

use scheduler::{HartId, VcpuId};

use crate::hart::csr::{self, exception, number, status};
use crate::hart::world::FloatContext;
use crate::run::harts::Hart;
use crate::vm::vcpu::Registers;

/// So many stays on a hart in a row without a change of the registers, and the next one begins without them.
const PATIENCE: u8 = 8;

/// Illegal instructions in hedeleg.
const ILLEGAL_INSTRUCTION: u64 = 1 << exception::ILLEGAL_INSTRUCTION;

/// A vCPU's floating-point registers while it is out, and how it uses them.
#[derive(Clone, Debug, Default)]
pub struct Float {
    context: FloatContext,
    habit: Habit,
    /// The hart whose registers were made equal to these last.
    on: Option<HartId>,
}

/// How many stays it is since a vCPU changed its floating-point registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Habit {
    idle: u8,
}

impl Habit {
    /// Whether a stay begins with the registers in place.
    const fn expects_use(self) -> bool {
        self.idle < PATIENCE
    }

    /// A stay in which the registers were in place ends.
    const fn end(&mut self, changed: bool) {
        self.idle = if changed {
            0
        } else {
            self.idle.saturating_add(1)
        };
    }
}

/// The vCPU whose registers these are has been dispatched on `hart`.
pub fn load(hart: &Hart, vcpu: VcpuId, registers: &mut Registers) {
    let float = &registers.float;
    // Nobody else's registers have been put onto the hart since, and this vCPU's on no other.
    let in_place = float.on == Some(hart.index) && hart.float_owner() == Some(vcpu);
    if in_place || float.habit.expects_use() {
        if !in_place {
            put(hart, vcpu, registers);
        }
        open(hart, registers);
    } else {
        registers.context.sstatus &= !status::FS;
        if !hart.takes_illegal.load(Ordering::Relaxed) {
            hart.takes_illegal.store(true, Ordering::Relaxed);
            // SAFETY: what is delegated concerns guests alone.
            unsafe { csr::clear::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION) };
        }
    }
}

/// An illegal instruction of a guest has come to the hypervisor. True where the guest only lacked its floating-point
/// registers: it has them now, and executes the instruction again.
#[must_use]
pub fn give(hart: &Hart, vcpu: VcpuId, registers: &mut Registers) -> bool {
    if registers.context.sstatus & status::FS != 0 {
        return false;
    }
    put(hart, vcpu, registers);
    open(hart, registers);
    // Whether it changes them or reads them: it needs them.
    registers.float.habit.end(true);
    true
}

/// The vCPU leaves its hart.
pub fn unload(registers: &mut Registers) {
    let state = registers.context.sstatus & status::FS;
    if state == 0 {
        return;
    }
    let changed = state == status::FS_DIRTY;
    if changed {
        registers.float.context.save();
    }
    registers.float.habit.end(changed);
}

fn put(hart: &Hart, vcpu: VcpuId, registers: &mut Registers) {
    registers.float.context.restore();
    registers.float.on = Some(hart.index);
    hart.set_float_owner(vcpu);
}

/// The guest may use the registers, and takes its illegal instructions itself.
fn open(hart: &Hart, registers: &mut Registers) {
    let context = &mut registers.context;
    context.sstatus = context.sstatus & !status::FS | status::FS_CLEAN;
    if hart.takes_illegal.load(Ordering::Relaxed) {
        hart.takes_illegal.store(false, Ordering::Relaxed);
        // SAFETY: as in `load`.
        unsafe { csr::set::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_without_for_long_begins_without() {
        let mut habit = Habit::default();
        assert!(habit.expects_use(), "nothing is known yet");
        for _ in 1..PATIENCE {
            habit.end(false);
            assert!(habit.expects_use());
        }
        habit.end(false);
        assert!(!habit.expects_use());
        for _ in 0..1000 {
            habit.end(false);
        }
        assert!(!habit.expects_use());
        habit.end(true);
        assert!(habit.expects_use());
    }
}
