//! Register sets of a guest that are loaded only when they are needed: floating point and vectors.
//!
//! A vCPU that has used a set lately gets it at its dispatch. Any other runs with the set's field of sstatus Off: its first instruction that
//! needs the set then is an illegal instruction (privileged architecture, "Hypervisor Extension", "Machine Status Registers": FS
//! and VS of both sstatus and vsstatus count while V = 1), which the hypervisor takes in place of the guest, puts the registers
//! onto the hart, and lets the guest execute it again. They are saved if the guest has changed them.
//!
//! A register set is never left on with the registers of another vCPU in it.

use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use riscv::instruction::{LOAD_FP, OP_V, OP_VE, STORE_FP, SYSTEM};
use scheduler::{HartId, VcpuNumber};

use crate::hart::context::{FloatContext, GuestContext, VectorContext};
use crate::hart::csr::{self, exception, number, status};

/// Number of stays in a row without a change of the registers, after which stays begin without them.
const PATIENCE: u8 = 8;

/// Illegal instructions in hedeleg.
const ILLEGAL_INSTRUCTION: u64 = 1 << exception::ILLEGAL_INSTRUCTION;

/// Number of stays since a vCPU changed the registers of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    idle: u8,
}

impl Habit {
    /// Use by a vCPU that has never used the registers.
    pub const UNUSED: Self = Self { idle: PATIENCE };

    /// Returns true if the registers are loaded at the beginning of a stay.
    #[must_use]
    pub const fn expects_use(self) -> bool {
        self.idle < PATIENCE
    }

    /// Notes the end of a stay with the registers loaded.
    pub const fn end(&mut self, changed: bool) {
        self.idle = if changed {
            0
        } else {
            self.idle.saturating_add(1)
        };
    }
}

/// Register set of a hart. Used by the hart itself alone.
#[derive(Debug)]
pub struct RegisterSet {
    hart: HartId,
    /// 1 + the vCPU whose registers were put onto the hart last, or 0.
    owner: AtomicU16,
}

impl RegisterSet {
    /// Set that has no vCPU's registers yet.
    #[must_use]
    pub const fn new(hart: HartId) -> Self {
        Self {
            hart,
            owner: AtomicU16::new(0),
        }
    }

    /// Makes the set hold the registers of `vcpu`, which were put onto the hart `on` last: by `restore`, unless the hart still
    /// holds them and no other hart has loaded them since.
    #[inline]
    pub fn put(&self, vcpu: VcpuNumber, on: &mut Option<HartId>, restore: impl FnOnce()) {
        let owner = vcpu.get() + 1;
        if *on == Some(self.hart) && self.owner.load(Ordering::Relaxed) == owner {
            return;
        }
        restore();
        *on = Some(self.hart);
        self.owner.store(owner, Ordering::Relaxed);
    }
}

/// Contents of a register set, off the hart.
pub trait Registers {
    /// The set's field of sstatus.
    const FIELD: u64;
    /// The field's value Clean.
    const CLEAN: u64;

    /// Saves the hart's CSRs of the set, and its registers if they have changed.
    fn save(&mut self, changed: bool);
    /// Loads these registers into the hart.
    fn restore(&self);
}

impl Registers for FloatContext {
    const FIELD: u64 = status::FS;
    const CLEAN: u64 = status::FS_CLEAN;

    #[inline]
    fn save(&mut self, changed: bool) {
        Self::save(self, changed);
    }

    #[inline]
    fn restore(&self) {
        Self::restore(self);
    }
}

impl Registers for VectorContext {
    const FIELD: u64 = status::VS;
    const CLEAN: u64 = status::VS_CLEAN;

    #[inline]
    fn save(&mut self, changed: bool) {
        Self::save(self, changed);
    }

    #[inline]
    fn restore(&self) {
        Self::restore(self);
    }
}

/// Registers of one set of a vCPU while it is on no hart, and its use of them.
#[derive(Clone, Debug)]
pub struct Lazy<C> {
    context: C,
    habit: Habit,
    /// Hart whose registers were made equal to these last.
    on: Option<HartId>,
}

/// Floating-point registers of a vCPU.
pub type Float = Lazy<FloatContext>;
/// Vector registers of a vCPU.
pub type Vector = Lazy<VectorContext>;

impl Default for Float {
    fn default() -> Self {
        Self {
            context: FloatContext::default(),
            habit: Habit::default(),
            on: None,
        }
    }
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
        self.forget();
    }
}

impl<C> Lazy<C> {
    /// Makes no hart's registers equal to these: they have become others in memory.
    fn forget(&mut self) {
        self.habit = Habit::UNUSED;
        self.on = None;
    }
}

impl<C: Registers> Lazy<C> {
    /// Loads the registers at the dispatch of `vcpu` on the hart with this set, if they are expected to be used.
    #[inline]
    pub fn load(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        if self.habit.expects_use() {
            self.open(set, vcpu, context);
        } else {
            context.sstatus &= !C::FIELD;
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
        if context.sstatus & C::FIELD != 0 {
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
        let state = context.sstatus & C::FIELD;
        if state == 0 {
            return;
        }
        // Dirty sets all bits of the field.
        let changed = state == C::FIELD;
        // QEMU 10 makes the field of vsstatus alone Dirty where a guest writes a CSR of the set and nothing else.
        self.context.save(changed);
        self.habit.end(changed);
    }

    #[inline]
    fn open(&mut self, set: &RegisterSet, vcpu: VcpuNumber, context: &mut GuestContext) {
        set.put(vcpu, &mut self.on, || self.context.restore());
        context.sstatus = context.sstatus & !C::FIELD | C::CLEAN;
    }
}

/// Destination of illegal instructions of a hart's guest. Used by the hart itself alone.
#[derive(Debug, Default)]
pub struct IllegalInstructions {
    /// Set while they trap to the hypervisor; otherwise the guest takes them itself.
    are_taken: AtomicBool,
}

impl IllegalInstructions {
    /// Makes them trap to the hypervisor, or leaves them to the guest.
    #[inline]
    pub fn take(&self, take: bool) {
        if self.are_taken.load(Ordering::Relaxed) == take {
            return;
        }
        self.are_taken.store(take, Ordering::Relaxed);
        // SAFETY: what is delegated concerns guests alone.
        unsafe {
            match take {
                true => csr::clear::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION),
                false => csr::set::<{ number::HEDELEG }>(ILLEGAL_INSTRUCTION),
            }
        }
    }
}

/// Tests whether an instruction may be illegal for want of a register set alone.
#[must_use]
pub const fn lacks_registers(sstatus: u64, has_vectors: bool) -> bool {
    sstatus & status::FS == 0 || has_vectors && sstatus & status::VS == 0
}

/// Tests whether an instruction needs vector registers or a vector CSR ("V" extension, sections "Vector Instruction Formats" and "Vector
/// Extension Programmer's Model").
#[must_use]
pub const fn is_vector(instruction: u32) -> bool {
    let function = instruction >> 12 & 7;
    match instruction & 0x7f {
        OP_V | OP_VE => true,
        // Widths 1 to 4 are those of scalars.
        LOAD_FP | STORE_FP => matches!(function, 0 | 5..=7),
        // vstart to vcsr; vl, vtype and vlenb.
        SYSTEM => function & 3 != 0 && matches!(instruction >> 20, 0x008..=0x00f | 0xc20..=0xc22),
        _ => false,
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::vec::Vec;

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
        assert!(!Habit::UNUSED.expects_use());
    }

    #[test]
    fn vector_instructions_are_told_from_others() {
        for vector in [
            0x0d05_7057, // vsetvli zero, a0, e32, m1, ta, ma
            0x0205_6407, // vle32.v v8, (a0)
            0x0205_0427, // vse8.v v8, (a0)
            0xa280_a077, // vaesem.vv v0, v8
            0xc220_2573, // csrr a0, vlenb
            0x0080_5073, // csrwi vstart, 0
        ] {
            assert!(is_vector(vector), "{vector:#x}");
        }
        for other in [
            0x0005_3407, // fld fs0, 0(a0)
            0x0085_2027, // fsw fs0, 0(a0)
            0x0010_2573, // csrr a0, fflags
            0xc010_2573, // csrr a0, time
            0x0000_0073, // ecall
            0x0000_0000,
        ] {
            assert!(!is_vector(other), "{other:#x}");
        }
    }

    #[test]
    fn owner_returns_without_a_load() {
        let hart = |number| HartId::new(number).unwrap();
        let vcpu = |number| VcpuNumber::new(number).unwrap();
        let sets = [RegisterSet::new(hart(0)), RegisterSet::new(hart(1))];
        let mut on = [None; 2];
        let mut loads = |set: usize, owner: usize| {
            let mut loaded = false;
            sets[set].put(vcpu(owner as u16), &mut on[owner], || loaded = true);
            loaded
        };
        assert!(loads(0, 0), "at first");
        assert!(!loads(0, 0), "back on its hart");
        assert!(loads(1, 0), "on another hart");
        assert!(loads(0, 0), "what the first hart has is old");
        assert!(loads(0, 1), "another vCPU's");
        assert!(loads(0, 0), "another vCPU's were there since");
    }

    /// Registers whose field is that of vectors, and what was done with them: with true, saves of all registers.
    #[derive(Default)]
    struct Noted {
        saves: Vec<bool>,
        restores: Cell<usize>,
    }

    impl Registers for Noted {
        const FIELD: u64 = status::VS;
        const CLEAN: u64 = status::VS_CLEAN;

        fn save(&mut self, changed: bool) {
            self.saves.push(changed);
        }

        fn restore(&self) {
            self.restores.set(self.restores.get() + 1);
        }
    }

    #[test]
    fn sets_are_on_with_own_registers_alone() {
        let vcpu = |number| VcpuNumber::new(number).unwrap();
        let set = RegisterSet::new(HartId::new(0).unwrap());
        let mut of = [0, 1].map(|_| Lazy {
            context: Noted::default(),
            habit: Habit::UNUSED,
            on: None,
        });
        // The firmware may have left the set on.
        let mut context = GuestContext::starting_at(0, 0, 0);
        context.sstatus |= status::VS_DIRTY;
        of[0].load(&set, vcpu(0), &mut context);
        assert_eq!(context.sstatus & status::VS, 0, "off until it is used");
        of[0].unload(&context);
        assert!(of[0].give(&set, vcpu(0), &mut context));
        assert_eq!(context.sstatus & status::VS, status::VS_CLEAN);
        assert!(!of[0].give(&set, vcpu(0), &mut context), "it is on");
        of[0].unload(&context);
        of[0].load(&set, vcpu(0), &mut context);
        context.sstatus |= status::VS_DIRTY;
        of[0].unload(&context);
        assert_eq!(of[0].context.saves, [false, true]);
        assert_eq!(of[0].context.restores.get(), 1, "it stays on its hart");
        assert!(of[1].give(&set, vcpu(1), &mut GuestContext::starting_at(0, 0, 0)));
        of[0].load(&set, vcpu(0), &mut context);
        let restores = of.each_ref().map(|of| of.context.restores.get());
        assert_eq!(restores, [2, 1], "another vCPU's were there since");
        assert_eq!(context.sstatus & status::VS, status::VS_CLEAN);
    }
}
