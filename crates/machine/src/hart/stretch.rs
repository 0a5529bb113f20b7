//! The longest stretch of a hart in the hypervisor.
//!
//! A stretch is a time in which the hart is not in a guest, and no interrupt for the hypervisor can have an effect. It begins with a trap
//! from a guest to HS-mode, and ends with the return to a guest, with an interrupt that HS-mode takes, with a wait, and where HS-mode reads
//! `sip`, `stopi` or `stopei` to see what is pending. After a wait and such a read the next one begins. What the firmware does meanwhile
//! counts. Before its first guest a hart has no stretches.

use crate::count::TrapCode;
use crate::csr::number as csr;

/// Stretch in the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Length in cycles.
    pub cycles: u64,
    /// Hart's time at its beginning, in cycles.
    pub begin: u64,
    /// Trap that it began with; `None` after a wait or a look at pending interrupts.
    pub cause: Option<TrapCode>,
    /// Address of the instruction that ended it.
    pub end: u64,
}

/// Stretches of a hart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stretches {
    /// Beginning of the present one, with its cause.
    open: Option<(u64, Option<TrapCode>)>,
    /// True once the hart has left a guest.
    has_left: bool,
    longest: Option<Stretch>,
}

impl Stretches {
    /// The longest one that has ended.
    pub const fn longest(&self) -> Option<Stretch> {
        self.longest
    }

    /// A guest is left for HS-mode.
    pub const fn leave_guest(&mut self, now: u64, cause: TrapCode) {
        self.has_left = true;
        self.open = Some((now, Some(cause)));
    }

    /// The hypervisor goes on after a wait.
    pub fn go_on(&mut self, now: u64) {
        self.open = self.has_left.then_some((now, None));
    }

    /// A return to a guest, an interrupt or a wait at this address ends the stretch.
    pub fn end(&mut self, now: u64, pc: u64) {
        let Some((begin, cause)) = self.open.take() else {
            return;
        };
        let cycles = now.saturating_sub(begin);
        if self.longest.is_none_or(|longest| cycles > longest.cycles) {
            self.longest = Some(Stretch {
                cycles,
                begin,
                cause,
                end: pc,
            });
        }
    }

    /// The hypervisor reads a CSR.
    pub fn read(&mut self, number: u16, now: u64, pc: u64) {
        if matches!(number, csr::SIP | csr::STOPI | csr::STOPEI) {
            self.end(now, pc);
            self.go_on(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: TrapCode = TrapCode::Exception(10);
    const TIMER: TrapCode = TrapCode::Interrupt(5);

    #[test]
    fn looks_and_waits_end_stretches() {
        let mut stretches = Stretches::default();
        // Booting is none.
        stretches.read(csr::SIP, 10, 0x10);
        stretches.end(500, 0x20);
        assert_eq!(stretches.longest(), None);
        stretches.leave_guest(1000, CALL);
        stretches.read(csr::SCAUSE, 1010, 0x30);
        stretches.read(csr::SIP, 1100, 0x34);
        stretches.end(1150, 0x38);
        let longest = Stretch {
            cycles: 100,
            begin: 1000,
            cause: Some(CALL),
            end: 0x34,
        };
        assert_eq!(stretches.longest(), Some(longest));
        // The wait from 1150 to 2000 is no part of any.
        stretches.go_on(2000);
        stretches.end(2099, 0x40);
        assert_eq!(stretches.longest(), Some(longest));
        stretches.go_on(3000);
        stretches.end(3101, 0x44);
        let after_wait = stretches.longest().expect("a longer one");
        assert_eq!((after_wait.cycles, after_wait.cause), (101, None));
    }

    #[test]
    fn first_of_equal_stretches_stays() {
        let mut stretches = Stretches::default();
        for begin in [100, 200] {
            stretches.leave_guest(begin, TIMER);
            stretches.end(begin + 50, 0);
        }
        assert_eq!(stretches.longest().map(|longest| longest.begin), Some(100));
    }
}
