//! Vector registers of a vCPU, which are loaded only when they are needed: [`lazy_registers`](super::lazy_registers).

use scheduler::{HartId, VcpuNumber};

use crate::hart::context::{GuestContext, VectorContext};
use crate::hart::csr::status;
use crate::vm::lazy_registers::{Habit, RegisterSet};

/// Vector registers of a vCPU while it is on no hart, and its use of them.
#[derive(Debug)]
pub struct Vector {
    context: VectorContext,
    habit: Habit,
    /// Hart whose registers were made equal to these last.
    on: Option<HartId>,
}

impl Vector {
    /// Registers of `vlenb` bytes each, as out of reset.
    #[must_use]
    pub fn of_length(vlenb: usize) -> Self {
        Self {
            context: VectorContext::of_length(vlenb),
            habit: Habit::UNUSED,
            on: None,
        }
    }

    /// Sets the state out of reset, in the same memory.
    pub fn reset(&mut self) {
        self.context.reset();
        self.habit = Habit::UNUSED;
        self.on = None;
    }

    /// Loads the registers at the dispatch of `vcpu` on the hart with this set, if they are expected to be used.
    #[inline]
    pub fn load(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        if self.habit.expects_use() {
            self.open(set, vcpu, context);
        } else {
            context.sstatus &= !status::VS;
        }
    }

    /// Loads the registers at an illegal instruction, if they are not loaded. Returns true then.
    #[must_use]
    pub fn give(
        &mut self,
        set: &RegisterSet,
        vcpu: VcpuNumber,
        context: &mut GuestContext,
    ) -> bool {
        if context.sstatus & status::VS != 0 {
            return false;
        }
        self.open(set, vcpu, context);
        // A read needs the registers as a write does.
        self.habit.end(true);
        true
    }

    /// Saves the registers when the vCPU leaves its hart, if they have changed.
    #[inline]
    pub fn unload(&mut self, context: &GuestContext) {
        let state = context.sstatus & status::VS;
        if state == 0 {
            return;
        }
        let changed = state == status::VS_DIRTY;
        // QEMU 10 makes VS of vsstatus alone Dirty where a guest writes a vector CSR and nothing else.
        self.context.save(changed);
        self.habit.end(changed);
    }

    fn open(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        set.put(vcpu, &mut self.on, || self.context.restore());
        context.sstatus = context.sstatus & !status::VS | status::VS_CLEAN;
    }
}
