//! Parts that a board lacks.

use alloc::vec::Vec;
use core::fmt;

use crate::Interrupts;

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
    /// An IMSIC of the supervisor level; the board has these interrupts instead.
    Imsic(Interrupts),
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
            Self::Imsic(instead) => {
                let instead = match instead {
                    Interrupts::Plic { .. } => "a PLIC",
                    Interrupts::Direct(_) => "an APLIC that interrupts harts by wires",
                    Interrupts::Messages { .. } | Interrupts::Unknown => "none that Partita knows",
                };
                write!(
                    f,
                    "there is no supervisor-level IMSIC (riscv,imsics); the board's interrupt controller is {instead}"
                )
            }
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
