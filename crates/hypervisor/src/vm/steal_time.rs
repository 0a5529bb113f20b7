//! Steal-time accounting of a vCPU (RISC-V SBI specification 3.0, "Steal-time Accounting Extension").
//!
//! Stolen is the time in which a vCPU was ready and had no hart: after it was preempted, while it spun off its hart, and from the end of a wait
//! to its dispatch. A wait for an interrupt is idle time. The guest's area is written at a dispatch, and when a vCPU leaves its hart while it is
//! ready.
//!
//! The area is an address that the guest named. Each write looks it up in the VM's memory again.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use core::sync::atomic::{Ordering, fence};

use riscv::sbi::NO_SHARED_MEMORY;
use riscv::sbi::steal_time::{AREA_SIZE, PREEMPTED, SEQUENCE, STEAL};

use crate::memory::address::GuestPhysical;
use crate::memory::guest::{GuestMemory, HostMemory};
use crate::memory::owned::OwnedRegion;

const NANOSECONDS_A_SECOND: u64 = 1_000_000_000;

/// Refusal of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaError {
    /// A flag is set, or the address is not aligned.
    InvalidParameter,
    /// The area is not the VM's memory.
    InvalidAddress,
    /// No frame is free for the page.
    NoFrame,
}

/// Last stay of a vCPU on a hart. Times are the board's, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastStay {
    /// Time of its dispatch, or since which the vCPU waits.
    began: u64,
    /// Time at which the vCPU left while it was ready; `None` if it waits for an interrupt.
    left_ready: Option<u64>,
}

/// Steal time of a vCPU, and the area that the guest reads it from.
#[derive(Clone, Copy, Debug, Default)]
pub struct StealTime {
    area: Option<GuestPhysical>,
    sequence: u32,
    /// Stolen ticks since the area was set.
    stolen: u64,
    last: LastStay,
}

/// Earliest known end of a wait, in ticks. Both may be of an earlier wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitEnds {
    /// Time at which the scheduler last made the vCPU ready.
    pub ready_since: u64,
    /// Expiry of its timer, `u64::MAX` for none.
    pub timer: u64,
}

impl StealTime {
    /// Tests whether the guest has an area.
    #[must_use]
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.area.is_some()
    }

    /// Gives the running vCPU its area at an address of two halves at `now`, zeroed, or takes it away.
    ///
    /// # Errors
    /// [`AreaError`]; nothing has changed then.
    pub fn set_area(
        &mut self,
        [low, high, flags]: [u64; 3],
        now: u64,
        (memory, host): (&GuestMemory, &impl HostMemory),
    ) -> Result<(), AreaError> {
        if flags != 0 {
            return Err(AreaError::InvalidParameter);
        }
        if (low, high) == (NO_SHARED_MEMORY, NO_SHARED_MEMORY) {
            *self = Self::default();
            return Ok(());
        }
        if !low.is_multiple_of(AREA_SIZE) {
            return Err(AreaError::InvalidParameter);
        }
        let area = GuestPhysical::new(low);
        if high != 0 || memory.bytes(area, AREA_SIZE).is_none() {
            return Err(AreaError::InvalidAddress);
        }
        let at = memory.in_one(area, AREA_SIZE).ok_or(AreaError::NoFrame)?;
        for offset in (0..AREA_SIZE).step_by(8) {
            host.set_doubleword(at.skip(offset), 0);
        }
        *self = Self {
            area: Some(area),
            last: LastStay {
                began: now,
                left_ready: None,
            },
            ..Self::default()
        };
        Ok(())
    }

    /// Notes that the vCPU leaves its hart at `now`: ready, or to wait for an interrupt.
    pub fn leave(
        &mut self,
        is_ready: bool,
        now: u64,
        (memory, host): (&GuestMemory, &impl HostMemory),
    ) {
        self.last.left_ready = is_ready.then_some(now);
        if is_ready && let Some(at) = self.place(memory) {
            host.set_byte(at.skip(PREEMPTED), 1);
        }
    }

    /// Notes that a vCPU that was dispatched waits on, from `now`.
    pub const fn wait_on(&mut self, now: u64) {
        self.last.began = now;
    }

    /// Counts the time before the dispatch at `now`, and writes the area. `ends` is asked only if the vCPU has waited; `hertz` is the number of
    /// ticks in a second, at least 1.
    pub fn enter(
        &mut self,
        (now, hertz): (u64, u32),
        ends: impl FnOnce() -> WaitEnds,
        (memory, host): (&GuestMemory, &impl HostMemory),
    ) {
        let stolen_from = self.last.left_ready.unwrap_or_else(|| {
            let began = self.last.began;
            let ends = ends();
            let known = [ends.ready_since, ends.timer].into_iter();
            known.filter(|end| *end > began).min().unwrap_or(now)
        });
        self.stolen = self.stolen.saturating_add(now.saturating_sub(stolen_from));
        self.last = LastStay {
            began: now,
            left_ready: None,
        };
        let Some(at) = self.place(memory) else {
            return;
        };
        // The guest may have written the sequence meanwhile, so it is not read from there. It is odd while the steal time changes.
        self.sequence = self.sequence.wrapping_add(2);
        host.set_word(at.skip(SEQUENCE), self.sequence.wrapping_sub(1).to_le());
        fence(Ordering::Release);
        host.set_doubleword(at.skip(STEAL), nanoseconds(self.stolen, hertz).to_le());
        fence(Ordering::Release);
        host.set_word(at.skip(SEQUENCE), self.sequence.to_le());
        host.set_byte(at.skip(PREEMPTED), 0);
    }

    /// Host memory of the area; `None` if there is none, or no frame for its page.
    fn place(&self, memory: &GuestMemory) -> Option<OwnedRegion> {
        memory.in_one(self.area?, AREA_SIZE)
    }
}

/// Nanoseconds of so many ticks.
const fn nanoseconds(ticks: u64, hertz: u32) -> u64 {
    let hertz = if hertz == 0 { 1 } else { hertz as u64 };
    let seconds = ticks / hertz;
    let rest = ticks % hertz * NANOSECONDS_A_SECOND / hertz;
    seconds
        .wrapping_mul(NANOSECONDS_A_SECOND)
        .wrapping_add(rest)
}

#[cfg(test)]
mod tests;
