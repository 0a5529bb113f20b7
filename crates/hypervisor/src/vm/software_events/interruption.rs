//! State that an event interrupts, and how a vCPU goes on after it (sections "Software Event Injection" and "Software Event Completion").

use riscv::csr::status::{SDT, SIE, SPELP, SPIE, SPP};
use riscv::sbi::software_events::{FLAG_SDT, FLAG_SPELP, FLAG_SPIE, FLAG_SPP};

/// Fields of sstatus that an event interrupts, and their flags. The guest has no H extension, so the flags of hstatus are zero.
const FIELDS: [(u64, u64); 4] = [
    (SPP, FLAG_SPP),
    (SPIE, FLAG_SPIE),
    (SPELP, FLAG_SPELP),
    (SDT, FLAG_SDT),
];

/// State of a vCPU that an event changes. A field that the vCPU does not have is zero, and stays so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interruptible {
    pub program_counter: u64,
    /// Set in supervisor mode.
    pub in_supervisor_mode: bool,
    /// Set if the next instruction must be a landing pad (Zicfilp).
    pub expects_landing_pad: bool,
    /// The guest's sstatus.
    pub status: u64,
    /// The guest's sepc.
    pub exception_counter: u64,
    pub a6: u64,
    pub a7: u64,
}

/// Interrupted state, as the guest reads it by attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interrupted {
    pub exception_counter: u64,
    pub flags: u64,
    pub a6: u64,
    pub a7: u64,
}

const fn with(status: u64, field: u64, is_set: bool) -> u64 {
    if is_set {
        status | field
    } else {
        status & !field
    }
}

impl Interruptible {
    /// Redirects the vCPU to a handler, and returns what was interrupted.
    pub fn redirect(&mut self, entry: u64, a6: u64, a7: u64) -> Interrupted {
        let mut flags = 0;
        for (field, flag) in FIELDS {
            flags = with(flags, flag, self.status & field != 0);
        }
        let interrupted = Interrupted {
            exception_counter: self.exception_counter,
            flags,
            a6: self.a6,
            a7: self.a7,
        };
        (self.a6, self.a7) = (a6, a7);
        self.exception_counter = self.program_counter;
        let enabled = self.status & SIE != 0;
        self.status = with(self.status, SPP, self.in_supervisor_mode);
        self.status = with(self.status, SPIE, enabled) & !SIE;
        self.status = with(self.status, SPELP, self.expects_landing_pad) | SDT;
        self.expects_landing_pad = false;
        self.in_supervisor_mode = true;
        self.program_counter = entry;
        interrupted
    }

    /// Resumes what was interrupted, with what the handler has written meanwhile.
    pub fn resume(&mut self, interrupted: &Interrupted) {
        self.program_counter = self.exception_counter;
        self.in_supervisor_mode = self.status & SPP != 0;
        self.expects_landing_pad = self.status & SPELP != 0;
        self.status = with(self.status, SIE, self.status & SPIE != 0);
        for (field, flag) in FIELDS {
            self.status = with(self.status, field, interrupted.flags & flag != 0);
        }
        (self.a6, self.a7) = (interrupted.a6, interrupted.a7);
        self.exception_counter = interrupted.exception_counter;
    }
}
