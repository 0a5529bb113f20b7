//! Address spaces, as TLBs and filters tell them apart.

use serde::{Deserialize, Serialize};

/// The address space of an access, as TLB entries are tagged with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// V: a space of a virtual machine.
    pub virtualized: bool,
    /// True if the first stage translates; without it `asid` means nothing.
    pub paged: bool,
    /// The address-space identifier of satp or vsatp.
    pub asid: u16,
    /// The virtual-machine identifier, zero unless `virtualized`.
    pub vmid: u16,
}

impl Space {
    /// All of it as one number: the same for the same space only.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.virtualized as u32) << 31
            | (self.paged as u32) << 30
            | (self.vmid as u32 & 0x3fff) << 16
            | self.asid as u32
    }
}
