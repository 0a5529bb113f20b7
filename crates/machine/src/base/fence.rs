//! Fences of translations.

/// What a fence covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// First-stage translations of V = 0.
    Supervisor {
        /// Only of this address, unless `None`.
        address: Option<u64>,
        /// Only of this address space, unless `None`.
        asid: Option<u64>,
    },
    /// VS-stage translations of the virtual machine that hgatp names.
    Virtual {
        /// Only of this address, unless `None`.
        address: Option<u64>,
        /// Only of this address space, unless `None`.
        asid: Option<u64>,
        /// The virtual machine.
        vmid: u64,
    },
    /// G-stage translations.
    Guest {
        /// Only of this guest-physical address, unless `None`.
        address: Option<u64>,
        /// Only of this virtual machine, unless `None`.
        vmid: Option<u64>,
    },
    /// All translations: PMP or a translation-wide setting has changed.
    Everything,
}
