//! The SiFive test finisher: the `syscon` that powers off and resets.

use riscv::finisher::{FAIL, PASS, RESET};
use serde::{Deserialize, Serialize};

use super::{AccessFault, Context, Device, Power};

/// The test finisher. It has one write-only register, at offset 0: the low half says what to do,
/// the high half is the exit code of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finisher;

impl Device for Finisher {
    fn read(&mut self, _: u64, size: u8, _: &mut Context<'_>) -> Result<u64, AccessFault> {
        check_width(size).map(|()| 0)
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        check_width(size)?;
        if offset != 0 {
            return Ok(());
        }
        let request = match value as u32 & 0xffff {
            FAIL => Power::Fail((value >> 16) as u16),
            PASS => Power::Off,
            RESET => Power::Reset,
            _ => return Ok(()),
        };
        // The first request counts: nothing comes after the end.
        context.effects.power.get_or_insert(request);
        Ok(())
    }
}

/// Halfwords and words, as on QEMU's board.
fn check_width(size: u8) -> Result<(), AccessFault> {
    if matches!(size, 2 | 4) {
        Ok(())
    } else {
        Err(AccessFault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Clock, Cycles, Effects, FlatMemory};

    fn after(writes: &[(u64, u64)]) -> Option<Power> {
        let (mut memory, mut effects) = (FlatMemory::default(), Effects::default());
        for &(offset, value) in writes {
            let clock = Clock::new(1, 1);
            let (memory, effects) = (&mut memory, &mut effects);
            let mut context = Context {
                now: Cycles(0),
                clock,
                memory,
                effects,
            };
            Finisher
                .write(offset, 4, value, &mut context)
                .expect("a write");
        }
        effects.power
    }

    #[test]
    fn the_first_command_word_counts() {
        assert_eq!(after(&[(0, 0x5555)]), Some(Power::Off));
        assert_eq!(after(&[(0, 0x7777)]), Some(Power::Reset));
        assert_eq!(after(&[(0, 0x2a_3333)]), Some(Power::Fail(42)));
        assert_eq!(after(&[(0, 0x1234), (4, 0x5555)]), None);
        assert_eq!(after(&[(0, 0x7777), (0, 0x5555)]), Some(Power::Reset));
    }
}
