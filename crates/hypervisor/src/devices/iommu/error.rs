//! Reasons why an IOMMU cannot be used.

/// Reason why an IOMMU cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IommuError {
    #[error("its capabilities are of version {0}, and version 1 is needed")]
    Version(u64),
    #[error("{0} does not answer: check the firmware, or leave the device away")]
    NoAnswer(&'static str),
    #[error("it accepts no little-endian tables of 64-bit entries (fctl)")]
    Endianness,
    #[error("it has no mode for G-stage tables like the harts'")]
    Mode,
    #[error("it accepts no device directory for ids of {0} bits")]
    Levels(u32),
    #[error("device id {0:#x} is beyond its directory")]
    Id(u32),
    #[error("it cannot tell devices of two VMs apart")]
    Overlap,
    #[error("there is no memory for its tables")]
    Memory,
}
