//! Fences of translations.

/// Instruction that fences VS-stage translations: a profile says of each how coarse it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtualFence {
    /// SFENCE.VMA with V = 1.
    Sfence,
    /// HFENCE.VVMA.
    Hfence,
    /// The broadcast fence, on each hart.
    Broadcast,
}

/// Range of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// First-stage translations of V = 0: SFENCE.VMA.
    Supervisor {
        /// Only of this address, unless `None`.
        address: Option<u64>,
        /// Only of this address space, unless `None`.
        asid: Option<u16>,
    },
    /// VS-stage translations of one virtual machine.
    Virtual {
        /// The instruction.
        by: VirtualFence,
        /// Only of this address, unless `None`.
        address: Option<u64>,
        /// Only of this address space, unless `None`.
        asid: Option<u16>,
        /// The virtual machine.
        vmid: u16,
    },
    /// G-stage translations: HFENCE.GVMA.
    Guest {
        /// Only of this guest-physical address, unless `None`.
        address: Option<u64>,
        /// Only of this virtual machine, unless `None`.
        vmid: Option<u16>,
    },
    /// All translations: PMP or a translation-wide setting has changed. No instruction, and free of charge.
    Everything,
}
