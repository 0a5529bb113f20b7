//! Reasons why an IOMMU cannot be used.

/// Reason why an IOMMU cannot be used, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IommuError(&'static str);

impl IommuError {
    pub const VERSION: Self = Self("its capabilities are not of version 1");
    pub const POINTER: Self = Self("its directory pointer (ddtp) does not answer");
    pub const QUEUE: Self = Self("a queue of it (cqcsr, fqcsr or pqcsr) does not answer");
    pub const COMMANDS: Self = Self("its command queue (cqh) does not answer");
    pub const ENDIANNESS: Self = Self("it takes no little-endian tables of 64-bit entries (fctl)");
    pub const MODE: Self = Self("it has no mode for G-stage tables like the harts'");
    pub const LEVELS: Self = Self("it takes no device directory for ids as long as a device's");
    pub const ID: Self = Self("the id of a device is beyond its directory");
    pub const OVERLAP: Self = Self("it cannot tell devices of two VMs apart");
    pub const MEMORY: Self = Self("there is no memory for its tables");
}
