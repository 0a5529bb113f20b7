//! The SiFive test finisher: the `syscon` that powers off and resets.

use serde::{Deserialize, Serialize};

use super::{AccessFault, Context, Device, Power};

const FAIL: u64 = 0x3333;
const PASS: u64 = 0x5555;
const RESET: u64 = 0x7777;

/// The test finisher. It has one write-only register, at offset 0: the low half says what to do,
/// the high half is the exit code of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finisher;

impl Device for Finisher {
    fn read(&mut self, _: u64, _: u8, _: &mut Context<'_>) -> Result<u64, AccessFault> {
        Ok(0)
    }

    fn write(
        &mut self,
        offset: u64,
        _size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        if offset != 0 {
            return Ok(());
        }
        let request = match value & 0xffff {
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
