//! Reservation wait: what a spinning vCPU waits for, and whether it has come.
//!
//! A guest that leaves at WRS.NTO has told by the code in front of it which word it watches and what it last saw there.
//! While the word is unchanged, giving it the hart again would be futile. All of this is a hint: a wrong guess costs
//! time, never correctness, because WRS.NTO may end for any reason (Zawrs).

use hypervisor::decode::Width;
use hypervisor::instruction::WatchedWord;
use hypervisor::walk;

use crate::hart::csr::{self, number};
use crate::hart::unprivileged;
use crate::vcpu::Registers;
use crate::vm::Vm;

/// A word of a guest's memory, and the value that the guest waits to see changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    host: u64,
    wide: bool,
    seen: u64,
}

/// What a look at the word in front of a WRS.NTO tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// The word has changed already: the guest need not wait.
    Over,
    /// It waits for this word to change.
    On(Word),
    /// The code is not of the known pattern, or the word cannot be reached.
    Unknown,
}

impl Word {
    /// The word as it is now, as the guest's load would have given it.
    fn value(self) -> u64 {
        // SAFETY: `host` was checked to lie in the VM's memory, aligned to its width, and that memory is never given back.
        unsafe {
            if self.wide {
                (self.host as *const u64).read_volatile()
            } else {
                (self.host as *const i32).read_volatile() as i64 as u64
            }
        }
    }

    /// Whether the word differs from what the guest saw.
    #[must_use]
    pub fn has_changed(self) -> bool {
        self.value() != self.seen
    }

    /// Stalls until the word may have changed, at most as long as the hart's WRS.NTO does.
    pub fn stall(self) {
        // SAFETY: LR reads a word of the VM's memory (see `value`), which leaves only a reservation behind; WRS.NTO only
        // stalls.
        unsafe {
            if self.wide {
                core::arch::asm!(
                    ".option push", ".option arch, +a, +zawrs",
                    "lr.d {0}, ({1})", "bne {0}, {2}, 1f", "wrs.nto", "1:", ".option pop",
                    out(reg) _, in(reg) self.host, in(reg) self.seen, options(nostack)
                );
            } else {
                core::arch::asm!(
                    ".option push", ".option arch, +a, +zawrs",
                    "lr.w {0}, ({1})", "bne {0}, {2}, 1f", "wrs.nto", "1:", ".option pop",
                    out(reg) _, in(reg) self.host, in(reg) self.seen, options(nostack)
                );
            }
        }
    }
}

/// Looks at what the vCPU that has just left this hart at a WRS.NTO waits for. Its program counter still points there.
#[must_use]
pub fn look(vm: &Vm, registers: &Registers) -> Spin {
    let known = watched(registers).and_then(|(address, seen, wide)| {
        let size = if wide { 8 } else { 4 };
        if address % size != 0 {
            return None;
        }
        let vsatp = csr::read::<{ number::VSATP }>();
        let physical = walk::translate(vsatp, address, |at| vm.read_doubleword(at))?;
        let host = vm.host_address(physical, size)?;
        Some(Word { host, wide, seen })
    });
    match known {
        Some(word) if word.has_changed() => Spin::Over,
        Some(word) => Spin::On(word),
        None => Spin::Unknown,
    }
}

/// The address, the value seen there, and whether the word is a doubleword.
fn watched(registers: &Registers) -> Option<(u64, u64, bool)> {
    let context = &registers.context;
    let start = context
        .program_counter
        .wrapping_sub(WatchedWord::CODE_LENGTH as u64);
    let mut code = [0; WatchedWord::CODE_LENGTH];
    for (index, half) in code.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *half = unprivileged::fetch_halfword(start.wrapping_add(2 * index as u64))?.to_le_bytes();
    }
    let word = WatchedWord::decode(code)?;
    let register = |register: hypervisor::decode::Register| context.get(register.number() as u8);
    Some((
        register(word.address),
        register(word.seen),
        word.width == Width::Double,
    ))
}
