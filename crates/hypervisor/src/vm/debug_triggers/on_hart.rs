//! Triggers on a hart: whose they are, and when they are put there and taken off.

use core::sync::atomic::{AtomicU16, Ordering};

use scheduler::{HartId, VcpuNumber};

use super::DebugTriggers;
use crate::hart::debug_triggers::Hardware;

/// Record whose triggers are on a hart. Used by the hart itself alone.
#[derive(Debug)]
pub struct HartTriggers {
    hart: HartId,
    /// 1 + the vCPU whose triggers are on the hart, or 0.
    pub(super) owner: AtomicU16,
}

/// Place of a vCPU's triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Set if one of its triggers may fire: a copy, for each dispatch.
    pub wanted: bool,
    /// Hart that got the triggers as they are now, last.
    on: Option<u16>,
}

impl HartTriggers {
    /// Record of a hart without triggers.
    #[must_use]
    pub const fn new(hart: HartId) -> Self {
        Self {
            hart,
            owner: AtomicU16::new(0),
        }
    }

    /// Tests at the dispatch of a vCPU with [`Place::wanted`] whether triggers must perhaps be taken off or put here: [`HartTriggers::load`].
    #[inline]
    #[must_use]
    pub fn concern(&self, wanted: bool) -> bool {
        self.owner.load(Ordering::Relaxed) | u16::from(wanted) != 0
    }

    /// Returns true if the hart has triggers.
    #[inline]
    #[must_use]
    pub fn are_here(&self) -> bool {
        self.owner.load(Ordering::Relaxed) != 0
    }

    /// Makes the hart's triggers those of `vcpu`, which comes to it.
    pub fn load(
        &self,
        vcpu: VcpuNumber,
        (triggers, place): (&DebugTriggers, &mut Place),
        hardware: &mut impl Hardware,
    ) {
        let owner = self.owner.load(Ordering::Relaxed);
        let here = owner == vcpu.get() + 1 && place.on == Some(self.hart.get());
        if !(here && place.wanted) {
            // A vCPU whose triggers cannot be put here runs without them.
            let _ = self.replace(vcpu, (triggers, place), hardware);
        }
    }

    /// Makes the hart's triggers those of `vcpu`, which is on it and has changed them. Returns false, with none here, if that cannot be.
    #[must_use]
    pub fn replace(
        &self,
        vcpu: VcpuNumber,
        (triggers, place): (&DebugTriggers, &mut Place),
        hardware: &mut impl Hardware,
    ) -> bool {
        place.wanted = triggers.can_fire();
        place.on = None;
        if self.owner.load(Ordering::Relaxed) != 0 {
            if !hardware.clear() {
                return false;
            }
            self.owner.store(0, Ordering::Relaxed);
        }
        if !place.wanted {
            return true;
        }
        let is_put = hardware.put(triggers.on_hart());
        if is_put {
            place.on = Some(self.hart.get());
            self.owner.store(vcpu.get() + 1, Ordering::Relaxed);
        }
        is_put
    }
}
