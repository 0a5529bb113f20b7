//! Parts that a board lacks.

use alloc::vec::Vec;
use core::fmt;

/// Something that the hypervisor needs and the board does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// `/cpus/timebase-frequency`.
    Timebase,
    /// A usable hart in `/cpus`.
    Harts,
    /// Memory.
    Memory,
    /// The hypervisor extension on any hart.
    HypervisorExtension,
    /// An interrupt controller of the supervisor level.
    Controller,
    /// An APLIC that sends messages to the IMSIC.
    Aplic,
    /// An extension that each hart must have: its name, and the harts with H whose ISA string does not name it.
    Extension(&'static str, Vec<u64>),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timebase => write!(
                f,
                "/cpus has no timebase-frequency: nobody can tell how fast the board's time runs"
            ),
            Self::Harts => write!(f, "/cpus names no usable hart with an interrupt controller"),
            Self::Memory => write!(f, "no node with device_type \"memory\" has a range"),
            Self::HypervisorExtension => write!(
                f,
                "no hart's ISA string names the hypervisor extension (H): VMs cannot run on this board"
            ),
            Self::Controller => write!(
                f,
                "no interrupt controller that Partita knows (riscv,imsics, riscv,aplic or a PLIC) leads to a supervisor level"
            ),
            Self::Aplic => write!(
                f,
                "there is no supervisor-level APLIC (riscv,aplic) that sends messages to the IMSIC"
            ),
            Self::Extension(name, harts) => {
                let (strings, plural, verb) = match harts.len() {
                    1 => ("string", "", "does"),
                    _ => ("strings", "s", "do"),
                };
                write!(f, "the ISA {strings} of hart{plural}")?;
                for (index, id) in harts.iter().enumerate() {
                    write!(f, "{} {id}", if index == 0 { "" } else { "," })?;
                }
                write!(f, " {verb} not name {name}")
            }
        }
    }
}
