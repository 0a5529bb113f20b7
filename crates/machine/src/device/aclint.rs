//! ACLINT: machine timer, machine and supervisor software interrupts.
//!
//! RISC-V Advanced Core Local Interruptor specification, version 1.0: MTIMER (§2), MSWI (§3) and
//! SSWI (§4), laid out as on QEMU's `virt` board. Registers of harts that do not exist read as
//! zero and ignore writes.

use serde::{Deserialize, Serialize};

use super::{AccessFault, Clock, Context, Cycles, HartId, Wires};
use crate::board::map::MTIME_OFFSET;

/// The three devices of the ACLINT, for all harts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aclint {
    compares: Vec<u64>,
    /// What mtime is ahead of the clock's ticks, modulo 2^64.
    offset: u64,
}

impl Aclint {
    /// The ACLINT of `harts` harts after reset: mtime counts from zero, no interrupt is pending,
    /// and every mtimecmp is at its largest (the specification leaves it open).
    #[must_use]
    pub fn new(harts: u32) -> Self {
        Self {
            compares: vec![u64::MAX; harts as usize],
            offset: 0,
        }
    }

    /// mtime at `now`, the value of the `time` CSR.
    #[must_use]
    pub fn time(&self, clock: &Clock, now: Cycles) -> u64 {
        clock.ticks(now).wrapping_add(self.offset)
    }

    /// The first machine time after mtime was last written at which mtime is at least `time`.
    #[must_use]
    pub fn cycles_at_time(&self, clock: &Clock, time: u64) -> Cycles {
        match time.checked_sub(self.offset) {
            Some(ticks) => clock.cycles_at(ticks),
            // mtime was set ahead of `time`, or it was set back and `time` lies across its wrap.
            None if self.offset <= u64::MAX / 2 => Cycles(0),
            None => clock.cycles_at(time.wrapping_sub(self.offset)),
        }
    }

    /// Reads MTIMER.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word or doubleword.
    pub fn read_timer(
        &self,
        offset: u64,
        size: u8,
        context: &Context<'_>,
    ) -> Result<u64, AccessFault> {
        check_width(offset, size)?;
        let value = match self.timer_register(offset) {
            Register::Time => self.time(&context.clock, context.now),
            Register::Compare(hart) => self.compares.get(hart).copied().unwrap_or(0),
        };
        Ok(part(value, offset, size))
    }

    /// Writes MTIMER.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word or doubleword.
    pub fn write_timer(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        check_width(offset, size)?;
        let ticks = context.clock.ticks(context.now);
        match self.timer_register(offset) {
            Register::Time => {
                let time = merge(ticks.wrapping_add(self.offset), offset, size, value);
                self.offset = time.wrapping_sub(ticks);
            }
            Register::Compare(hart) => {
                if let Some(compare) = self.compares.get_mut(hart) {
                    *compare = merge(*compare, offset, size, value);
                }
            }
        }
        let time = self.time(&context.clock, context.now);
        for (hart, &compare) in (0..).zip(&self.compares) {
            let pending = time >= compare;
            context
                .effects
                .wires
                .update(HartId(hart), |wires| wires.machine_timer = pending);
        }
        Ok(())
    }

    fn timer_register(&self, offset: u64) -> Register {
        if offset & !7 == MTIME_OFFSET {
            Register::Time
        } else {
            Register::Compare(usize::try_from(offset / 8).unwrap_or(usize::MAX))
        }
    }

    /// Raises the timer interrupts that are due.
    pub fn tick(&self, context: &mut Context<'_>) {
        let time = self.time(&context.clock, context.now);
        for (hart, &compare) in (0..).zip(&self.compares) {
            if time >= compare {
                context
                    .effects
                    .wires
                    .update(HartId(hart), |wires| wires.machine_timer = true);
            }
        }
    }

    /// When the next timer interrupt that is not yet pending will be.
    #[must_use]
    pub fn next_event(&self, clock: &Clock, wires: &Wires) -> Cycles {
        (0..)
            .zip(&self.compares)
            .filter(|&(hart, &compare)| {
                compare != u64::MAX && !wires.hart(HartId(hart)).machine_timer
            })
            .map(|(_, &compare)| self.cycles_at_time(clock, compare))
            .min()
            .unwrap_or(Cycles::NEVER)
    }

    /// Reads MSWI: the msip register of each hart, of which only bit 0 is not zero.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn read_machine_software(
        &self,
        offset: u64,
        size: u8,
        context: &Context<'_>,
    ) -> Result<u64, AccessFault> {
        let hart = software_hart(offset, size)?;
        Ok(u64::from(context.effects.wires.hart(hart).machine_software))
    }

    /// Writes MSWI.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn write_machine_software(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        let hart = software_hart(offset, size)?;
        context
            .effects
            .wires
            .update(hart, |wires| wires.machine_software = value & 1 != 0);
        Ok(())
    }

    /// Reads SSWI: always zero.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn read_supervisor_software(&self, offset: u64, size: u8) -> Result<u64, AccessFault> {
        software_hart(offset, size).map(|_| 0)
    }

    /// Writes SSWI: bit 0 sends an edge to the hart's mip.SSIP.
    ///
    /// # Errors
    /// [`AccessFault`] unless the access is of an aligned word.
    pub fn write_supervisor_software(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        let hart = software_hart(offset, size)?;
        if value & 1 != 0 {
            context
                .effects
                .wires
                .update(hart, |wires| wires.supervisor_software_edge = true);
        }
        Ok(())
    }
}

enum Register {
    Time,
    Compare(usize),
}

fn check_width(offset: u64, size: u8) -> Result<(), AccessFault> {
    if matches!(size, 4 | 8) && offset.is_multiple_of(u64::from(size)) {
        Ok(())
    } else {
        Err(AccessFault)
    }
}

fn software_hart(offset: u64, size: u8) -> Result<HartId, AccessFault> {
    if size != 4 || !offset.is_multiple_of(4) {
        return Err(AccessFault);
    }
    u32::try_from(offset / 4)
        .map(HartId)
        .map_err(|_| AccessFault)
}

/// The word or doubleword at `offset` of a 64-bit register.
fn part(value: u64, offset: u64, size: u8) -> u64 {
    match (size, offset & 4) {
        (8, _) => value,
        (_, 0) => value & 0xffff_ffff,
        _ => value >> 32,
    }
}

/// A 64-bit register after a write of the word or doubleword at `offset`.
fn merge(old: u64, offset: u64, size: u8, value: u64) -> u64 {
    let low = value & 0xffff_ffff;
    match (size, offset & 4) {
        (8, _) => value,
        (_, 0) => (old & !0xffff_ffff) | low,
        _ => (old & 0xffff_ffff) | (low << 32),
    }
}
