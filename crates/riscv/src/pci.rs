//! Functions of PCI Express: configuration space (PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification, chapter 7).

/// Bytes of a function's configuration space behind ECAM.
pub const CONFIGURATION_BYTES: u64 = 4096;
/// Offsets in the header.
pub mod header {
    /// Vendor, and the device in the upper half.
    pub const VENDOR: usize = 0x00;
    /// Command, and the status in the upper half.
    pub const COMMAND: usize = 0x04;
    /// Status.
    pub const STATUS: usize = 0x06;
    /// Revision, and the class in the three bytes above.
    pub const REVISION: usize = 0x08;
    /// First base address register.
    pub const BASE_ADDRESS: usize = 0x10;
    /// Vendor of the subsystem, and its id in the upper half.
    pub const SUBSYSTEM: usize = 0x2c;
    /// First capability.
    pub const CAPABILITIES: usize = 0x34;
    /// Line of the interrupt, for software alone.
    pub const INTERRUPT_LINE: usize = 0x3c;
    /// Pin of the interrupt: 1 is INTA.
    pub const INTERRUPT_PIN: usize = 0x3d;
}

/// Fields of the command register.
pub mod command {
    /// The function answers accesses to memory.
    pub const MEMORY: u16 = 1 << 1;
    /// The function may access memory by itself.
    pub const MASTER: u16 = 1 << 2;
    /// The function drives no wired interrupt.
    pub const INTERRUPT_DISABLE: u16 = 1 << 10;
}

/// Fields of the status register.
pub mod status {
    /// A wired interrupt is pending.
    pub const INTERRUPT: u16 = 1 << 3;
    /// There are capabilities.
    pub const CAPABILITIES: u16 = 1 << 4;
}

/// Fields of a base address register.
pub mod base_address {
    /// The registers lie at a 64-bit address, whose upper half is the next register.
    pub const WIDE: u32 = 2 << 1;
    /// Reads have no side effects.
    pub const PREFETCHABLE: u32 = 1 << 3;
    /// Bits that are no address.
    pub const FLAGS: u32 = 0xf;
}

/// Ids of capabilities.
pub mod capability {
    /// A vendor's own.
    pub const VENDOR: u8 = 0x09;
    /// PCI Express.
    pub const EXPRESS: u8 = 0x10;
    /// MSI-X.
    pub const MSIX: u8 = 0x11;
}

/// MSI-X (PCI Local Bus Specification 3.0, 6.8.2).
pub mod msix {
    /// Enables MSI-X, in message control.
    pub const ENABLE: u16 = 1 << 15;
    /// Masks all vectors, in message control.
    pub const FUNCTION_MASK: u16 = 1 << 14;
    /// Bytes of an entry of the table.
    pub const ENTRY_BYTES: u64 = 16;
    /// Offset of the data in an entry.
    pub const DATA: u64 = 8;
    /// Offset of vector control in an entry.
    pub const CONTROL: u64 = 12;
    /// Masks a vector, in vector control.
    pub const MASKED: u32 = 1;
}

/// Type of a port, in the capability of PCI Express: an endpoint integrated in the root complex.
pub const INTEGRATED_ENDPOINT: u16 = 9;
