//! Computers that run the programs: this machine, and others.

mod computer;
mod error;
mod process;
mod qemu;
mod spike;

pub use computer::{WHOLE, run as run_here, run_alone, run_protected, run_vectors, run_within};
pub use error::OracleError;

use crate::program::Features;

/// Another implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oracle {
    /// QEMU's virt board.
    Qemu,
    /// The RISC-V ISA simulator.
    Spike,
}

impl Oracle {
    /// Name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU",
            Self::Spike => "Spike",
        }
    }

    /// Extensions that programs may use on it.
    #[must_use]
    pub const fn features(self) -> Features {
        Features {
            interrupts: matches!(self, Self::Qemu),
            protection: true,
            // QEMU 10.0.2 shifts physical addresses to the right by the bits that it is to ignore.
            masking: matches!(self, Self::Spike),
            vectors: 0,
            // Spike refuses them: "Vector Register Grouping" leaves the choice.
            wide_fractions: matches!(self, Self::Qemu),
            control_flow: false,
        }
    }

    /// Tests whether it is installed.
    #[must_use]
    pub fn is_installed(self) -> bool {
        process::is_installed(match self {
            Self::Qemu => qemu::NAME,
            Self::Spike => spike::NAME,
        })
    }

    /// The image from the first slot on, after a run with so many harts.
    ///
    /// # Errors
    /// [`OracleError`] when there is no result.
    pub fn run(self, image: &[u8], harts: u32) -> Result<Vec<u8>, OracleError> {
        self.run_with(image, harts, 0)
    }

    /// As [`Oracle::run`], with vector registers of so many bits unless that is 0.
    ///
    /// # Errors
    /// [`OracleError`] when there is no result.
    pub fn run_with(self, image: &[u8], harts: u32, vectors: u16) -> Result<Vec<u8>, OracleError> {
        match self {
            Self::Qemu => qemu::run(image, harts, vectors),
            Self::Spike => spike::run(image, harts, vectors),
        }
    }
}

/// Another implementation, and how long the vector registers of both computers are: 0 without vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The other implementation.
    pub oracle: Oracle,
    /// Bits of a vector register.
    pub vectors: u16,
    /// Landing pads, shadow stacks and double traps in programs.
    pub control_flow: bool,
}

impl Pair {
    /// Extensions that programs may use.
    #[must_use]
    pub const fn features(self) -> Features {
        Features {
            vectors: self.vectors,
            control_flow: self.control_flow,
            ..self.oracle.features()
        }
    }
}
