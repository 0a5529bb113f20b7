//! Debug triggers of a vCPU (RISC-V SBI specification 3.0, "Debug Triggers Extension").
//!
//! A guest has address matches of type 6 that compare an address for equality. Its modes S and U are VS and VU of the hart, and a trigger that is put
//! onto a hart is enabled in these two alone, so that none fires in HS-mode or M-mode.
//!
//! The hart's triggers are those of the vCPU that had some last on it ([`HartTriggers`]). They are taken off before a vCPU of any other comes, so
//! that a dispatch between vCPUs without triggers costs one comparison.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod area;
mod on_hart;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use area::TriggerArea;
pub use on_hart::{HartTriggers, Place};

use riscv::csr::trigger::{
    EXECUTE, HIT_BEFORE, HIT_BEHIND, LOAD, M, MATCH6, OUTSIDE, S, SIZE, SIZE_SHIFT, STORE,
    TYPE_SHIFT, U, UNCERTAIN, VS, VU,
};
use riscv::sbi::debug_triggers::{MAPPED, STATE_S, STATE_U};

use crate::hart::debug_triggers::MAX_TRIGGERS;

/// Type of all triggers.
pub const TYPE: u64 = MATCH6 << TYPE_SHIFT;
/// Bits that the hart sets when a trigger fires. A guest's triggers do not have them.
const REPORTED: u64 = HIT_BEFORE | HIT_BEHIND | UNCERTAIN;
/// Modes of a guest.
const MODES: u64 = S | U;
/// Accesses that a trigger may match.
const ACCESSES: u64 = LOAD | STORE | EXECUTE;
/// Bits that may be set.
const SUPPORTED: u64 = TYPE | MODES | ACCESSES | SIZE;

/// Refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerError {
    /// A configuration needs a feature that the triggers do not have.
    NotSupported,
    /// A parameter or a configuration is invalid.
    InvalidParameter,
    /// There is no trigger for a configuration.
    Failed,
    /// There are not as many triggers.
    BadRange,
}

/// Refusal of one of several configurations, and its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub error: TriggerError,
    pub place: usize,
}

/// tdata1, tdata2 and tdata3 of a trigger.
pub type Configuration = [u64; 3];

/// A trigger as its guest has set it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Trigger {
    /// `trig_state`.
    state: u64,
    /// tdata1 as the guest has it.
    control: u64,
    /// tdata2.
    data: u64,
}

impl Trigger {
    /// Checks a configuration.
    fn new([control, data, extra]: Configuration) -> Result<Self, TriggerError> {
        if control & !(!0 >> 4) != TYPE {
            return Err(TriggerError::Failed);
        }
        if control & (OUTSIDE | M) != 0 {
            return Err(TriggerError::InvalidParameter);
        }
        let control = control & !REPORTED;
        // Sizes of 8, 16, 32 and 64 bits, and all of them.
        let has_size = matches!((control & SIZE) >> SIZE_SHIFT, 0..=3 | 5);
        if control & !SUPPORTED != 0 || !has_size || extra != 0 {
            return Err(TriggerError::NotSupported);
        }
        let saved = |mode, bit| if control & mode != 0 { bit } else { 0 };
        Ok(Self {
            state: MAPPED | saved(S, STATE_S) | saved(U, STATE_U),
            control,
            data,
        })
    }

    const fn is_mapped(&self) -> bool {
        self.state & MAPPED != 0
    }

    const fn can_fire(&self) -> bool {
        self.is_mapped() && self.control & MODES != 0 && self.control & ACCESSES != 0
    }

    /// tdata1 and tdata2 for the hart.
    const fn on_hart(&self) -> [u64; 2] {
        let mut control = self.control & (TYPE | ACCESSES | SIZE);
        if self.control & S != 0 {
            control |= VS;
        }
        if self.control & U != 0 {
            control |= VU;
        }
        [control, self.data]
    }

    const fn enable(&mut self) {
        self.control &= !MODES;
        if self.state & STATE_S != 0 {
            self.control |= S;
        }
        if self.state & STATE_U != 0 {
            self.control |= U;
        }
    }

    const fn disable(&mut self) {
        self.control &= !MODES;
    }
}

/// Change of a set of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Uninstall,
    Enable,
    Disable,
}

/// Triggers of a vCPU. Of a call that is refused, nothing is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebugTriggers {
    all: [Trigger; MAX_TRIGGERS],
}

impl DebugTriggers {
    /// Returns true if one of the triggers may fire.
    #[must_use]
    pub fn can_fire(&self) -> bool {
        self.all.iter().any(Trigger::can_fire)
    }

    /// tdata1 and tdata2 for the hart of each trigger that may fire.
    pub fn on_hart(&self) -> impl Iterator<Item = [u64; 2]> + '_ {
        self.all
            .iter()
            .filter(|trigger| trigger.can_fire())
            .map(Trigger::on_hart)
    }

    /// State, tdata1, tdata2 and tdata3 of `count` triggers from `first` on, of `max` (FID #2). The specification's text refuses the last trigger;
    /// a caller that reads all of them means them.
    ///
    /// # Errors
    /// [`TriggerError::BadRange`].
    pub fn read(
        &self,
        first: u64,
        count: u64,
        max: usize,
    ) -> Result<impl Iterator<Item = [u64; 4]> + '_, TriggerError> {
        let end = first.checked_add(count).filter(|end| *end <= max as u64);
        let end = end.filter(|_| first < max as u64);
        let end = end.ok_or(TriggerError::BadRange)?;
        let range = self.all.get(first as usize..end as usize);
        let triggers = range.ok_or(TriggerError::BadRange)?.iter();
        Ok(triggers.map(|trigger| [trigger.state, trigger.control, trigger.data, 0]))
    }

    /// Installs triggers, of `max` (FID #3). Returns their numbers in order.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn install(
        &mut self,
        configurations: &[Configuration],
        max: usize,
    ) -> Result<[u8; MAX_TRIGGERS], Refused> {
        let mut new = *self;
        let mut numbers = [0; MAX_TRIGGERS];
        for (place, configuration) in configurations.iter().enumerate() {
            let refused = |error| Refused { error, place };
            let trigger = Trigger::new(*configuration).map_err(refused)?;
            let mut free = new.all.iter_mut().take(max).enumerate();
            let found = free.find(|(_, old)| !old.is_mapped());
            let both = found.zip(numbers.get_mut(place));
            let ((index, old), number) = both.ok_or(refused(TriggerError::Failed))?;
            *old = trigger;
            *number = index as u8;
        }
        *self = new;
        Ok(numbers)
    }

    /// Gives installed triggers, of `max`, other configurations (FID #4).
    ///
    /// # Errors
    /// [`Refused`].
    pub fn update(
        &mut self,
        configurations: &[(u64, Configuration)],
        max: usize,
    ) -> Result<(), Refused> {
        let mut new = *self;
        for (place, (index, configuration)) in configurations.iter().enumerate() {
            let refused = |error| Refused { error, place };
            let index = usize::try_from(*index).ok().filter(|index| *index < max);
            let old = index.and_then(|index| new.all.get_mut(index));
            let old = old.ok_or(refused(TriggerError::InvalidParameter))?;
            if !old.is_mapped() {
                return Err(refused(TriggerError::Failed));
            }
            *old = Trigger::new(*configuration).map_err(refused)?;
        }
        *self = new;
        Ok(())
    }

    /// Uninstalls, enables or disables the triggers, of `max`, that `mask` names from `first` on (FIDs #5 to #7). As in OpenSBI, and against the
    /// specification's text, a trigger that is not installed can be enabled and disabled, and nothing happens.
    ///
    /// # Errors
    /// [`TriggerError::InvalidParameter`].
    pub fn change(
        &mut self,
        (first, mask): (u64, u64),
        max: usize,
        change: Change,
    ) -> Result<(), TriggerError> {
        let mut new = *self;
        for bit in (0..u64::from(u64::BITS)).filter(|bit| mask >> bit & 1 != 0) {
            let index = first.checked_add(bit).filter(|index| *index < max as u64);
            let trigger = index.and_then(|index| new.all.get_mut(index as usize));
            let trigger = trigger.ok_or(TriggerError::InvalidParameter)?;
            match change {
                Change::Uninstall if !trigger.is_mapped() => {
                    return Err(TriggerError::InvalidParameter);
                }
                Change::Uninstall => *trigger = Trigger::default(),
                Change::Enable => trigger.enable(),
                Change::Disable => trigger.disable(),
            }
        }
        *self = new;
        Ok(())
    }
}
