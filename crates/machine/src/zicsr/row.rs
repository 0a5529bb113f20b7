//! Row that the tables hold for each CSR.

use crate::base::Cause;
use crate::csr::Csrs;
use crate::extension::{Extensions, Options};
use crate::hart::Hart;
use crate::system::System;

/// A CSR, or an array of CSRs with consecutive numbers.
///
/// Privilege and read-only access are in the number itself: privileged specification, "CSR Address
/// Mapping Conventions".
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The number of the first CSR.
    pub first: u16,
    /// The number of the last.
    pub last: u16,
    /// The name as in the specification, of an array that of its first CSR.
    pub name: &'static str,
    /// Condition of its presence.
    pub presence: Presence,
    /// Guard beyond the privilege of the number.
    pub guard: Guard,
    /// The number of the VS CSR that an access in V = 1 reaches instead; 0 if there is none.
    pub guest: u16,
    /// Source of its value.
    pub read: Read,
    /// Value that CSRRS and CSRRC change.
    pub basis: Basis,
    /// Change of the state by a write.
    pub write: Write,
    /// Effect of a write beyond the register.
    pub then: Then,
}

/// Condition of a CSR's presence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Presence {
    /// Every hart has it.
    Always,
    /// Harts with one of the custom extensions have it.
    Custom(fn(&Extensions) -> bool),
    /// Harts with a ratified option have it.
    Option(fn(&Options) -> bool),
    /// Harts with a vector unit have it.
    Vector,
    /// Harts with 64 PMP entries have it.
    ManyPmpEntries,
}

/// Guard of an access beyond the privilege that the number demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Nothing.
    Privilege,
    /// FS of mstatus and vsstatus.
    Float,
    /// VS of mstatus and vsstatus.
    Vector,
    /// mcounteren, hcounteren and scounteren.
    Counter,
    /// mstatus.TVM and hstatus.VTVM.
    Translation,
    /// menvcfg.CDE, and no guest: Smcdeleg.
    Delegation,
    /// No guest while menvcfg.CDE is set: Smcdeleg.
    Overflows,
    /// SSE of menvcfg, henvcfg and senvcfg: Zicfiss.
    ShadowStack,
    /// mseccfg.SSEED and USEED, and that the access writes: Zkr.
    Seed,
    /// STCE and TM: Sstc.
    Timer,
    /// hvictl.VTI, of sie and sip in V = 1.
    VirtualInterrupts,
    /// These bits of mstateen0 and hstateen0.
    State(u64),
    /// Bit 63 of the mstateen and hstateen register with the index in the array.
    StateBank,
}

/// Source of a CSR's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// Always this.
    Constant(u64),
    /// Field of the state.
    State(fn(&Csrs) -> u64),
    /// Field of the state, by index in the array.
    Array(fn(&Csrs, usize) -> u64),
    /// Value that the hart computes from its state, its interrupt levels, its mode or an interrupt file; by index in the array.
    Hart(fn(&Hart, u16, &mut System) -> Result<u64, Cause>),
}

/// Value that CSRRS and CSRRC change.
#[derive(Debug, Clone, Copy)]
pub(super) enum Basis {
    /// The value read.
    Read,
    /// The bits that software has set: a wire that reads as one must not be written back as one.
    Software(fn(&Csrs) -> u64),
}

/// Change of the state by a write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Write {
    /// Nothing.
    Ignored,
    /// The register takes these bits of the value; the others are zero.
    Masked(fn(&mut Csrs) -> &mut u64, u64),
    /// The register takes what is legal of a value, given what it holds.
    Legal(fn(&mut Csrs) -> &mut u64, fn(u64, u64) -> u64),
    /// Several parts of the state change.
    State(fn(&mut Csrs, u64)),
    /// The state changes under an index in the array.
    Array(fn(&mut Csrs, usize, u64)),
    /// The change depends on more than the CSRs, or on an index in the array.
    Hart(fn(&mut Hart, u16, u64, &mut System) -> Result<(), Cause>),
}

/// Effect of a write beyond the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing.
    Nothing,
    /// The floating-point state is dirty.
    FloatDirty,
    /// The vector state is dirty.
    VectorDirty,
    /// An interrupt may be taken now.
    Interrupts,
    /// A timer's deadline is another, and its interrupt may be taken now.
    Timers,
    /// Address spaces, FS and interrupt enables are others.
    Context,
    /// The same, of mstatus and vsstatus: what has not changed in them has no consequence.
    Status,
    /// The address space is another; cached translations stay.
    Translation,
    /// Addresses may lead elsewhere by pointer masking.
    Masking,
    /// Cached translations are void.
    Protection,
    /// Cached translations and deadlines are void.
    Environment,
    /// Instructions are looked at, or are not any more.
    Triggers,
    /// An interrupt file drives its interrupt levels anew.
    File,
}

impl Row {
    /// A CSR that reads as zero and ignores writes.
    pub const fn zero(number: u16, name: &'static str) -> Self {
        Self {
            first: number,
            last: number,
            name,
            presence: Presence::Always,
            guard: Guard::Privilege,
            guest: 0,
            read: Read::Constant(0),
            basis: Basis::Read,
            write: Write::Ignored,
            then: Then::Nothing,
        }
    }

    /// A CSR that reads as `read` says and ignores writes.
    pub const fn read_only(number: u16, name: &'static str, read: Read) -> Self {
        Self {
            read,
            ..Self::zero(number, name)
        }
    }

    /// A CSR.
    pub const fn new(number: u16, name: &'static str, read: Read, write: Write) -> Self {
        Self {
            read,
            write,
            ..Self::zero(number, name)
        }
    }

    /// The same CSR in harts alone that have a vector unit, guarded by VS.
    pub const fn of_vectors(self) -> Self {
        Self {
            presence: Presence::Vector,
            guard: Guard::Vector,
            then: Then::VectorDirty,
            ..self
        }
    }

    /// Makes the row an array up to a number.
    pub const fn to(self, last: u16) -> Self {
        Self { last, ..self }
    }

    /// The same CSR with a guard.
    pub const fn guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// The same CSR in harts alone that have a custom extension.
    pub const fn custom(self, present: fn(&Extensions) -> bool) -> Self {
        Self {
            presence: Presence::Custom(present),
            ..self
        }
    }

    /// The same CSR in harts alone that have a ratified option.
    pub const fn option(self, present: fn(&Options) -> bool) -> Self {
        Self {
            presence: Presence::Option(present),
            ..self
        }
    }

    /// The same CSR in harts alone that have 64 PMP entries.
    pub const fn of_many_pmp_entries(self) -> Self {
        Self {
            presence: Presence::ManyPmpEntries,
            ..self
        }
    }

    /// The same CSR with a VS CSR in its place in V = 1.
    pub const fn guest(self, guest: u16) -> Self {
        Self { guest, ..self }
    }

    /// The same CSR with another basis of CSRRS and CSRRC.
    pub const fn basis(self, software: fn(&Csrs) -> u64) -> Self {
        Self {
            basis: Basis::Software(software),
            ..self
        }
    }

    /// The same CSR with a consequence of writes.
    pub const fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
}

/// A row of a CSR that software writes and reads back: all of it, a mask of it, or what is legal of it.
macro_rules! register {
    ($number:ident, $name:literal, $field:ident) => {
        register!($number, $name, $field, u64::MAX)
    };
    ($number:ident, $name:literal, $field:ident, legal $legal:expr) => {
        Row::new(
            csr::$number,
            $name,
            Read::State(|csrs| csrs.$field),
            Write::Legal(|csrs| &mut csrs.$field, $legal),
        )
    };
    ($number:ident, $name:literal, $field:ident, $mask:expr) => {
        Row::new(
            csr::$number,
            $name,
            Read::State(|csrs| csrs.$field),
            Write::Masked(|csrs| &mut csrs.$field, $mask),
        )
    };
}
pub(super) use register;
