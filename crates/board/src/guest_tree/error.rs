//! Reasons why no device tree could be made for a guest.

use crate::Range;
use crate::writer::WriterError;

/// vCPUs that an APLIC can distinguish: a hart index has 14 bits (AIA §4.5.16).
pub(super) const VCPUS_LIMIT: u32 = 1 << 14;

/// Reason why no device tree could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestTreeError {
    /// A computer without a processor.
    #[error("a guest needs at least one vCPU")]
    NoVcpus,
    /// More than an APLIC can name.
    #[error("{0} vCPUs are more than the {VCPUS_LIMIT} that an APLIC can name")]
    TooManyVcpus(u32),
    /// A computer without memory.
    #[error("a guest needs memory")]
    NoMemory,
    /// The initial RAM disk does not lie in the guest's RAM.
    #[error("the initrd {initrd} does not lie in the guest's memory {memory}")]
    InitrdOutsideMemory {
        /// Address of the initial RAM disk.
        initrd: Range,
        /// Address of the RAM.
        memory: Range,
    },
    /// A source number that the APLIC does not have.
    #[error("interrupt source {source_number} is not one of the APLIC's 1 to {limit}")]
    BadSource {
        /// The number asked for.
        source_number: u32,
        /// The highest one there is.
        limit: u32,
    },
    /// Two devices on one source.
    #[error("two devices use interrupt source {0}")]
    SharedSource(u32),
    /// Two devices at one address.
    #[error("{0} and {1} overlap in the guest's address space")]
    Overlap(Range, Range),
    /// The writer refused: a text with a NUL in it, or a tree of more than 4 GiB.
    #[error("the device tree cannot be written: {0}")]
    Writer(WriterError),
}

impl From<WriterError> for GuestTreeError {
    fn from(error: WriterError) -> Self {
        Self::Writer(error)
    }
}
