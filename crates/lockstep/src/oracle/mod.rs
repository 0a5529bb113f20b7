//! Computers that run the programs: this machine, and others.

mod computer;
mod process;
mod qemu;
mod spike;

use std::path::PathBuf;

pub use computer::{WHOLE, run as run_here, run_protected, run_within};

use crate::program::Features;

/// Another implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oracle {
    /// QEMU's virt board.
    Qemu,
    /// The RISC-V ISA simulator.
    Spike,
}

/// Why another implementation gave no result.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// It is not there.
    #[error("{program} cannot be started: {error}; is it installed and on PATH?")]
    Start {
        /// What was to be started.
        program: &'static str,
        /// Why it was not.
        error: std::io::Error,
    },
    /// A file of the conversation cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It did not come to the end in time.
    #[error("{0} did not end within {1} s")]
    Endless(&'static str, u64),
    /// It ended, but said something else than a result.
    #[error("{0} gave no result: {1}")]
    NoResult(&'static str, String),
}

impl Oracle {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU",
            Self::Spike => "Spike",
        }
    }

    /// What programs may contain on it.
    #[must_use]
    pub const fn features(self) -> Features {
        Features {
            interrupts: matches!(self, Self::Qemu),
            protection: true,
            // QEMU 10.0.2 shifts physical addresses to the right by the bits that it is to ignore.
            masking: matches!(self, Self::Spike),
        }
    }

    /// Whether it is installed.
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
        match self {
            Self::Qemu => qemu::run(image, harts),
            Self::Spike => spike::run(image, harts),
        }
    }
}
