//! Floating-point registers of a vCPU, which are loaded only when they are needed: [`lazy_registers`](super::lazy_registers).

use scheduler::{HartId, VcpuNumber};

use crate::hart::context::{FloatContext, GuestContext};
use crate::hart::csr::status;
use crate::vm::lazy_registers::{Habit, RegisterSet};

/// Floating-point registers of a vCPU while it is on no hart, and its use of them.
#[derive(Clone, Debug, Default)]
pub struct Float {
    context: FloatContext,
    habit: Habit,
    /// Hart whose registers were made equal to these last.
    on: Option<HartId>,
}

impl Float {
    /// Loads the registers at the dispatch of `vcpu` on the hart with this set, if they are expected to be used.
    #[inline]
    pub fn load(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        if self.habit.expects_use() {
            self.open(set, vcpu, context);
        } else {
            context.sstatus &= !status::FS;
        }
    }

    /// Loads the registers at an illegal instruction, if they are not loaded. Returns true then.
    #[must_use]
    #[inline]
    pub fn give(
        &mut self,
        set: &RegisterSet,
        vcpu: VcpuNumber,
        context: &mut GuestContext,
    ) -> bool {
        if context.sstatus & status::FS != 0 {
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
        let state = context.sstatus & status::FS;
        if state == 0 {
            return;
        }
        let changed = state == status::FS_DIRTY;
        // QEMU 10 makes FS of vsstatus alone Dirty where a guest writes fcsr and nothing else.
        self.context.save(changed);
        self.habit.end(changed);
    }

    #[inline]
    fn open(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        set.put(vcpu, &mut self.on, || self.context.restore());
        context.sstatus = context.sstatus & !status::FS | status::FS_CLEAN;
    }
}
