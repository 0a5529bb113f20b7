//! Floating-point registers of a vCPU, which are loaded only when they are needed.
//!
//! A vCPU that has used them lately gets them at its dispatch. Any other runs with sstatus.FS = Off: its first
//! floating-point instruction then is an illegal instruction (privileged architecture, "Hypervisor Extension", "Machine Status
//! Registers": FS of both sstatus and vsstatus counts while V = 1), which the hypervisor takes in place of the guest, puts
//! the registers onto the hart, and lets the guest execute it again. They are saved if the guest has changed them.

use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use scheduler::{HartId, VcpuNumber};

use crate::hart::context::{FloatContext, GuestContext};
use crate::hart::csr::{self, exception, number, status};

/// Number of stays in a row without a change of the registers, after which stays begin without them.
const PATIENCE: u8 = 8;

/// Illegal instructions in hedeleg.
const ILLEGAL_INSTRUCTION: u64 = 1 << exception::ILLEGAL_INSTRUCTION;

/// Floating-point registers of a vCPU while it is on no hart, and its use of them.
#[derive(Clone, Debug, Default)]
pub struct Float {
    context: FloatContext,
    habit: Habit,
    /// Hart whose registers were made equal to these last.
    on: Option<HartId>,
}

/// Number of stays since a vCPU changed its floating-point registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Habit {
    idle: u8,
}

impl Habit {
    /// Returns true if the registers are loaded at the beginning of a stay.
    const fn expects_use(self) -> bool {
        self.idle < PATIENCE
    }

    /// Notes the end of a stay with the registers loaded.
    const fn end(&mut self, changed: bool) {
        self.idle = if changed {
            0
        } else {
            self.idle.saturating_add(1)
        };
    }
}

/// Floating-point unit of a hart. Used by the hart itself alone.
#[derive(Debug)]
pub struct FloatUnit {
    hart: HartId,
    /// 1 + the vCPU whose registers were put onto the hart last, or 0.
    owner: AtomicU16,
    /// Set while illegal instructions of the guest trap to the hypervisor.
    takes_illegal: AtomicBool,
}

impl FloatUnit {
    /// Unit that has no vCPU's registers yet.
    #[must_use]
    pub const fn new(hart: HartId) -> Self {
        Self {
            hart,
            owner: AtomicU16::new(0),
            takes_illegal: AtomicBool::new(false),
        }
    }

    fn is_of(&self, vcpu: VcpuNumber) -> bool {
        self.owner.load(Ordering::Relaxed) == vcpu.get() + 1
    }

    /// Lets the guest use the registers, and take its illegal instructions itself.
    fn open(&self, context: &mut GuestContext) {
        context.sstatus = context.sstatus & !status::FS | status::FS_CLEAN;
        if self.takes_illegal.load(Ordering::Relaxed) {
            self.takes_illegal.store(false, Ordering::Relaxed);
            // SAFETY: what is delegated concerns guests alone.
            unsafe { csr::set::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION) };
        }
    }

    /// Makes the guest's first use of the registers trap to the hypervisor.
    fn close(&self, context: &mut GuestContext) {
        context.sstatus &= !status::FS;
        if !self.takes_illegal.load(Ordering::Relaxed) {
            self.takes_illegal.store(true, Ordering::Relaxed);
            // SAFETY: as in `open`.
            unsafe { csr::clear::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION) };
        }
    }
}

impl Float {
    /// Loads the registers at the dispatch of `vcpu` on the hart with this unit, if they are expected to be used.
    #[inline]
    pub fn load(&mut self, unit: &FloatUnit, vcpu: VcpuNumber, context: &mut GuestContext) {
        if self.habit.expects_use() {
            self.put(unit, vcpu);
            unit.open(context);
        } else {
            unit.close(context);
        }
    }

    /// Loads the registers at an illegal instruction, if the guest lacked only them. Returns true then: the guest executes the
    /// instruction again.
    #[must_use]
    #[inline]
    pub fn give(&mut self, unit: &FloatUnit, vcpu: VcpuNumber, context: &mut GuestContext) -> bool {
        if context.sstatus & status::FS != 0 {
            return false;
        }
        self.put(unit, vcpu);
        unit.open(context);
        // A read needs the registers as a write does.
        self.habit.end(true);
        true
    }

    /// Saves the registers when the vCPU leaves its hart, if they have changed.
    #[inline]
    pub fn unload(&mut self, context: &GuestContext) {
        let state = context.sstatus & status::FS;
        if state == 0 {
            return;
        }
        let changed = state == status::FS_DIRTY;
        if changed {
            self.context.save();
        }
        self.habit.end(changed);
    }

    /// Loads the registers, unless the hart still holds them and no other hart has loaded them since.
    #[inline]
    fn put(&mut self, unit: &FloatUnit, vcpu: VcpuNumber) {
        if self.on == Some(unit.hart) && unit.is_of(vcpu) {
            return;
        }
        self.context.restore();
        self.on = Some(unit.hart);
        unit.owner.store(vcpu.get() + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_unused_registers_start_unloaded() {
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
