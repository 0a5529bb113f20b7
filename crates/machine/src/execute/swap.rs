//! Compare-and-swap: "Zacas", and "Zabha" for bytes and half-words.

use crate::code::CodeIndex;
use crate::hart::{Access, Hart, Trapped};
use crate::instruction::{DISCARD, Instruction};
use crate::memory::{Scalar, StoreOutcome};
use crate::system::System;

/// Bytes of a quadword.
const QUADWORD: u64 = 16;

impl Hart {
    /// AMOCAS.B, .H, .W and .D: rd holds what to compare with. Write permission is needed whether or
    /// not anything is written.
    pub(super) fn compare_and_swap<T: Scalar>(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
        extend: impl Fn(T) -> u64,
    ) -> Result<StoreOutcome, Trapped> {
        let address = self.x[i.rs1 as usize];
        let physical = self.atomic_address::<T>(system, Access::Store, address, i.count)?;
        let old = self.read_scalar::<T>(system, physical);
        let expected = T::from_u64(self.expected(i.rd));
        let new = T::from_u64(self.x[i.rs2 as usize]);
        let equal = old.to_u64() == expected.to_u64();
        self.x[i.rd as usize] = extend(old);
        if equal {
            self.finish_store(system, physical, new, current)
        } else {
            Ok(StoreOutcome::default())
        }
    }

    /// AMOCAS.Q: rd and rs2 are the first of two registers; x0 stands for a pair of zeros.
    pub(super) fn compare_and_swap_pair(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let address = self.x[i.rs1 as usize];
        // All bytes are checked as one access; both halves are in one page.
        self.place_atomic(system, Access::Store, address, QUADWORD)?;
        let low = self.atomic_address::<u64>(system, Access::Store, address, i.count)?;
        let high = low + 8;
        let old = [
            self.read_scalar::<u64>(system, low),
            self.read_scalar::<u64>(system, high),
        ];
        let expected = match i.rd {
            DISCARD => [0, 0],
            register => [
                self.x[usize::from(register)],
                self.x[usize::from(register) + 1],
            ],
        };
        let new = match i.rs2 {
            0 => [0, 0],
            register => [
                self.x[usize::from(register)],
                self.x[usize::from(register) + 1],
            ],
        };
        if i.rd != DISCARD {
            self.x[usize::from(i.rd)] = old[0];
            self.x[usize::from(i.rd) + 1] = old[1];
        }
        if old != expected {
            return Ok(StoreOutcome::default());
        }
        let first = self.finish_store(system, low, new[0], current)?;
        let second = self.finish_store(system, high, new[1], current)?;
        Ok(StoreOutcome {
            discarded_current: first.discarded_current || second.discarded_current,
        })
    }

    /// Value of rd: nothing is ever read back from where results are discarded.
    const fn expected(&self, rd: u8) -> u64 {
        match rd {
            DISCARD => 0,
            register => self.x[register as usize],
        }
    }

    fn read_scalar<T: Scalar>(&self, system: &System, physical: u64) -> T {
        let value = system.memory.ram.read::<T>(physical);
        value.unwrap_or(T::from_u64(0))
    }
}
