//! What VMs share: built before the VMs, and given to each as devices of its own.

use alloc::vec::Vec;

use abi::system::VmDescription;
use scheduler::VmId;

use crate::boot::assemble::AssembleError;
use crate::vm::hardware::SharingDevice;

/// What the VMs share.
#[derive(Debug, Default)]
pub struct Shared {
    /// How many devices were made.
    clients: usize,
}

impl Shared {
    /// The devices of a VM by which it shares something.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn devices_of(
        &mut self,
        id: VmId,
        vm: &VmDescription<'_>,
    ) -> Result<Vec<SharingDevice>, AssembleError> {
        let _ = (id, vm, &mut self.clients);
        Ok(Vec::new())
    }
}
