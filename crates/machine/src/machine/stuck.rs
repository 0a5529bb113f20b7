//! Runs that make no progress: a trap handler whose first instruction traps.

use super::Machine;
use super::stall::Stall;
use crate::base::Privilege;
use crate::hart::{Hart, Wait};

/// How long nothing may happen but traps, in milliseconds of machine time: longer than a request to a device takes, which
/// might still change the handler.
const PATIENCE: u64 = 20;

/// Tests whether the hart stands at the first instruction of the trap handler of its mode, and that instruction trapped last. The next
/// trap there leaves everything as it is.
fn is_at_own_trap(hart: &Hart) -> bool {
    let csrs = &hart.csrs;
    let (vector, pc) = match (hart.mode().privilege, hart.mode().virtualized) {
        (Privilege::Machine, _) => (csrs.mtvec, csrs.mepc),
        (Privilege::Supervisor, false) => (csrs.stvec, csrs.sepc),
        (Privilege::Supervisor, true) => (csrs.vstvec, csrs.vsepc),
        (Privilege::User, _) => return false,
    };
    hart.pc == pc && hart.pc == vector & !3
}

impl Machine {
    /// Tests whether nothing will ever happen but the same traps again. To be asked after each quantum.
    pub(super) fn is_stuck(&mut self) -> bool {
        // An interrupt of a higher mode ends such a loop below M-mode: then none may be on its way.
        let quiet = || self.system.devices.next_event().0 == u64::MAX;
        let stands = |hart: &Hart| {
            is_at_own_trap(hart)
                && (hart.mode().privilege == Privilege::Machine
                    || hart.deadlines.timer() == u64::MAX && quiet())
        };
        let waits = |hart: &Hart| hart.wait != Wait::Nothing;
        let stalled = self.harts.iter().all(|hart| waits(hart) || stands(hart))
            && !self.harts.iter().all(waits);
        if !stalled {
            self.stall = None;
            return false;
        }
        let retired = self.retired();
        let patience = self.config.board.clock.cycles_per_second() / 1000 * PATIENCE;
        match self.stall {
            Some(stall) if stall.retired == retired => self.now - stall.since >= patience,
            _ => {
                let since = self.now;
                self.stall = Some(Stall { retired, since });
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Limit, Machine, Stop};

    /// A machine without a program: address zero, where harts begin and mtvec leads, has nothing.
    fn empty(harts: u32) -> Machine {
        let mut config = Config::default();
        config.board.harts = harts;
        config.board.memory = 16 << 20;
        Machine::new(config).expect("a machine")
    }

    const SECOND: Limit = Limit {
        instructions: None,
        cycles: Some(1_000_000_000),
    };

    #[test]
    fn handlers_that_trap_at_once_end_runs() {
        for harts in [1, 3] {
            let mut machine = empty(harts);
            assert_eq!(machine.run(SECOND), Stop::Stuck, "{harts} harts");
            assert_eq!(machine.retired(), 0);
        }
    }

    #[test]
    fn a_run_in_pieces_ends_too() {
        let mut machine = empty(1);
        let piece = |machine: &Machine| Limit {
            instructions: None,
            cycles: Some(machine.now() + 1_000_000),
        };
        let stopped = (0..100).find_map(|_| {
            let limit = piece(&machine);
            Some(machine.run(limit)).filter(|&stop| stop != Stop::Limit)
        });
        assert_eq!(stopped, Some(Stop::Stuck));
    }

    #[test]
    fn a_loop_that_retires_instructions_is_none() {
        let mut machine = empty(1);
        // J to itself at the start of RAM, which is the trap handler as well.
        let image = [0x6f, 0, 0, 0];
        crate::base::Memory::store(&mut machine.system.memory, 0x8000_0000, &image).expect("RAM");
        if let Some(hart) = machine.harts.first_mut() {
            hart.pc = 0x8000_0000;
            hart.csrs.mtvec = hart.pc;
            hart.csrs.mepc = hart.pc;
        }
        let limit = Limit {
            instructions: None,
            cycles: Some(100_000_000),
        };
        assert_eq!(machine.run(limit), Stop::Limit);
    }
}
