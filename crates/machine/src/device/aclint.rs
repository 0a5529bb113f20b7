//! ACLINT: machine timer, machine and supervisor software interrupts.
//!
//! RISC-V Advanced Core Local Interruptor specification, version 1.0: MTIMER (§2), MSWI (§3) and
//! SSWI (§4), laid out as on QEMU's `virt` board. Registers of harts that do not exist read as
//! zero and ignore writes.

use serde::{Deserialize, Serialize};

use super::{AccessFault, Clock, Context, Cycles, HartId, IrqLevels};
use crate::board::map::MTIME_OFFSET;

/// The three devices of the ACLINT, for all harts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aclint {
    compares: Vec<u64>,
    /// Lead of mtime over the clock's ticks, modulo 2^64.
    offset: u64,
    /// The clock's ticks when the levels were last those of the comparisons.
    compared: u64,
    /// True if mtime has been set since the harts' deadlines were computed.
    #[serde(skip)]
    set: bool,
}

impl Aclint {
    /// The ACLINT of `harts` harts after reset: mtime counts from zero, no interrupt is pending,
    /// and every mtimecmp is at its largest (the specification leaves it open).
    #[must_use]
    pub fn new(harts: u32) -> Self {
        Self {
            compares: vec![u64::MAX; harts as usize],
            offset: 0,
            compared: 0,
            set: false,
        }
    }

    /// mtime at `now`, the value of the `time` CSR.
    #[must_use]
    pub fn time(&self, clock: &Clock, now: Cycles) -> u64 {
        clock.ticks(now).wrapping_add(self.offset)
    }

    /// The first machine time after the last comparison at which mtime is `time`. Ticks that are half of mtime's range away
    /// never come: no machine runs so long.
    fn cycles_at(&self, clock: &Clock, time: u64) -> Cycles {
        let from = self.compared.wrapping_add(self.offset);
        cycles_after(clock, self.compared, time.wrapping_sub(from))
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
                self.set = true;
                for hart in (0..).take(self.compares.len()) {
                    context.effects.irq_levels.note(HartId(hart));
                }
            }
            Register::Compare(hart) => {
                if let Some(compare) = self.compares.get_mut(hart) {
                    *compare = merge(*compare, offset, size, value);
                }
            }
        }
        self.compare(context);
        Ok(())
    }

    /// Tests whether mtime has been set since [`Aclint::take_set`].
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.set
    }

    /// Forgets that mtime has been set; tells whether it was.
    pub const fn take_set(&mut self) -> bool {
        core::mem::replace(&mut self.set, false)
    }

    fn timer_register(&self, offset: u64) -> Register {
        if offset & !7 == MTIME_OFFSET {
            Register::Time
        } else {
            Register::Compare(usize::try_from(offset / 8).unwrap_or(usize::MAX))
        }
    }

    /// Raises the timer interrupts that are due, and lowers those whose comparison mtime has undone by wrapping past zero (§2.2).
    pub fn tick(&mut self, context: &mut Context<'_>) {
        // A hart whose turn comes later may be earlier in time: it undoes nothing.
        if context.clock.ticks(context.now) >= self.compared {
            self.compare(context);
        }
    }

    /// Drives the levels that the comparisons have now.
    fn compare(&mut self, context: &mut Context<'_>) {
        self.compared = context.clock.ticks(context.now);
        let time = self.time(&context.clock, context.now);
        for (hart, &compare) in (0..).zip(&self.compares) {
            let pending = time >= compare;
            context
                .effects
                .irq_levels
                .update(HartId(hart), |irq_levels| {
                    irq_levels.machine_timer = pending
                });
        }
    }

    /// When the next timer interrupt that is not yet pending will be, or one that is pending ends because mtime wraps.
    #[must_use]
    pub fn next_event(&self, clock: &Clock, irq_levels: &IrqLevels) -> Cycles {
        (0..)
            .zip(&self.compares)
            .filter(|&(_, &compare)| compare != 0)
            .map(|(hart, &compare)| {
                let pending = irq_levels.hart(HartId(hart)).machine_timer;
                self.cycles_at(clock, if pending { 0 } else { compare })
            })
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
        Ok(u64::from(
            context.effects.irq_levels.hart(hart).machine_software,
        ))
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
        context.effects.irq_levels.update(hart, |irq_levels| {
            irq_levels.machine_software = value & 1 != 0
        });
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
            context.effects.irq_levels.update(hart, |irq_levels| {
                irq_levels.supervisor_software_edge = true
            });
        }
        Ok(())
    }
}

/// The first machine time at which the clock has counted `more` ticks from `ticks` on; never if that is half of the counter's range
/// or more: no machine runs so long.
pub(super) fn cycles_after(clock: &Clock, ticks: u64, more: u64) -> Cycles {
    match ticks.checked_add(more) {
        Some(ticks) if more <= u64::MAX / 2 => clock.cycles_at(ticks),
        _ => Cycles::NEVER,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Effects, FlatMemory};

    /// A clock of ten cycles a tick, and an ACLINT of two harts.
    struct Bench {
        aclint: Aclint,
        memory: FlatMemory,
        effects: Effects,
    }

    impl Bench {
        fn new() -> Self {
            let effects = Effects {
                irq_levels: IrqLevels::new(2),
                ..Effects::default()
            };
            Self {
                aclint: Aclint::new(2),
                memory: FlatMemory::default(),
                effects,
            }
        }

        fn at<T>(&mut self, now: u64, act: impl FnOnce(&mut Aclint, &mut Context<'_>) -> T) -> T {
            let clock = Clock::new(10_000_000, 1_000_000);
            let Self {
                aclint,
                memory,
                effects,
            } = self;
            act(
                aclint,
                &mut Context {
                    now: Cycles(now),
                    clock,
                    memory,
                    effects,
                },
            )
        }

        fn write_timer(&mut self, now: u64, offset: u64, size: u8, value: u64) {
            self.at(now, |aclint, context| {
                aclint.write_timer(offset, size, value, context)
            })
            .expect("a timer register");
        }

        fn pending(&self, hart: u32) -> bool {
            self.effects.irq_levels.hart(HartId(hart)).machine_timer
        }

        fn next(&self) -> Cycles {
            let clock = Clock::new(10_000_000, 1_000_000);
            self.aclint.next_event(&clock, &self.effects.irq_levels)
        }
    }

    /// ACLINT §2.2: MTIP is set whenever mtime is at least mtimecmp.
    #[test]
    fn timers_are_pending_until_set_again() {
        let mut bench = Bench::new();
        assert_eq!(bench.next(), Cycles::NEVER);
        bench.write_timer(0, 8, 8, 7);
        assert_eq!(bench.next(), Cycles(70));
        bench.at(69, |aclint, context| aclint.tick(context));
        assert!(!bench.pending(1));
        bench.at(70, |aclint, context| aclint.tick(context));
        assert_eq!((bench.pending(0), bench.pending(1)), (false, true));
        assert_eq!(bench.next(), Cycles::NEVER);
        bench.write_timer(80, 8, 8, 9);
        assert!(!bench.pending(1));
        bench.write_timer(95, 8, 8, 9);
        assert!(bench.pending(1));
    }

    #[test]
    fn deadlines_move_with_mtime() {
        let mut bench = Bench::new();
        bench.write_timer(100, MTIME_OFFSET, 8, 1000);
        let time = |bench: &mut Bench, now| {
            bench.at(now, |aclint, context| {
                aclint.read_timer(MTIME_OFFSET, 8, context)
            })
        };
        assert_eq!(time(&mut bench, 100), Ok(1000));
        assert_eq!(time(&mut bench, 150), Ok(1005));
        bench.write_timer(150, 0, 8, 1010);
        assert_eq!(bench.next(), Cycles(200));
        // Set back below what has passed: the deadline lies as far ahead as it says.
        bench.write_timer(150, MTIME_OFFSET, 8, 0);
        assert_eq!(bench.next(), Cycles(150 + 10_100));
    }

    /// ACLINT §2.1: mtime wraps; the comparison is unsigned.
    #[test]
    fn comparisons_follow_mtime_past_its_wrap() {
        let mut bench = Bench::new();
        bench.write_timer(0, 0, 8, 5);
        bench.write_timer(0, 8, 8, u64::MAX - 2);
        bench.write_timer(100, MTIME_OFFSET, 8, u64::MAX - 9);
        // 10 ticks before the wrap: hart 0's value is reached, hart 1's comes after 7 ticks.
        assert_eq!((bench.pending(0), bench.pending(1)), (true, false));
        assert_eq!(bench.next(), Cycles(100 + 70));
        bench.at(170, |aclint, context| aclint.tick(context));
        assert_eq!((bench.pending(0), bench.pending(1)), (true, true));
        assert_eq!(bench.next(), Cycles(200));
        bench.at(200, |aclint, context| aclint.tick(context));
        assert_eq!((bench.pending(0), bench.pending(1)), (false, false));
        assert_eq!(bench.next(), Cycles(250));
        bench.at(250, |aclint, context| aclint.tick(context));
        assert_eq!((bench.pending(0), bench.pending(1)), (true, false));
        assert_eq!(bench.next(), Cycles::NEVER);
    }

    #[test]
    fn the_largest_comparison_comes_too() {
        let mut bench = Bench::new();
        bench.write_timer(0, MTIME_OFFSET, 8, u64::MAX - 3);
        assert_eq!(bench.next(), Cycles(30));
        bench.at(30, |aclint, context| aclint.tick(context));
        assert!(bench.pending(0) && bench.pending(1));
    }

    #[test]
    fn words_are_halves_of_the_registers() {
        let mut bench = Bench::new();
        bench.write_timer(0, 0, 4, 0x1111_1111);
        bench.write_timer(0, 4, 4, 0x2222_2222);
        let whole = bench.at(0, |aclint, context| aclint.read_timer(0, 8, context));
        assert_eq!(whole, Ok(0x2222_2222_1111_1111));
        let high = bench.at(0, |aclint, context| aclint.read_timer(4, 4, context));
        assert_eq!(high, Ok(0x2222_2222));
        for (offset, size) in [(2, 4), (4, 8), (0, 1), (0, 2)] {
            let odd = bench.at(0, |aclint, context| {
                aclint.read_timer(offset, size, context)
            });
            assert_eq!(odd, Err(AccessFault), "{size} bytes at {offset}");
        }
    }

    #[test]
    fn absent_harts_read_as_zero() {
        let mut bench = Bench::new();
        bench.write_timer(0, 16, 8, 1);
        assert_eq!(
            bench.at(0, |a, context| a.read_timer(16, 8, context)),
            Ok(0)
        );
        bench
            .at(0, |a, context| a.write_machine_software(8, 4, 1, context))
            .expect("ignored");
        assert_eq!(
            bench.at(0, |a, context| a.read_machine_software(8, 4, context)),
            Ok(0)
        );
    }

    /// ACLINT §3.1 and §4.1: msip is a level of one bit, setssip an edge that reads as zero.
    #[test]
    fn software_interrupts_are_level_and_edge() {
        let mut bench = Bench::new();
        bench
            .at(0, |a, context| {
                a.write_machine_software(4, 4, 0xfe, context)
            })
            .expect("msip");
        assert!(!bench.effects.irq_levels.hart(HartId(1)).machine_software);
        bench
            .at(0, |a, context| {
                a.write_machine_software(4, 4, 0xff, context)
            })
            .expect("msip");
        assert_eq!(
            bench.at(0, |a, context| a.read_machine_software(4, 4, context)),
            Ok(1)
        );
        bench
            .at(0, |a, context| {
                a.write_supervisor_software(4, 4, 1, context)
            })
            .expect("setssip");
        assert!(
            bench
                .effects
                .irq_levels
                .hart(HartId(1))
                .supervisor_software_edge
        );
        assert_eq!(bench.aclint.read_supervisor_software(4, 4), Ok(0));
    }
}
