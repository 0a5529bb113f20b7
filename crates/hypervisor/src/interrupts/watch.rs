//! Files of vCPUs that wait on a hart while another vCPU has it: an interrupt for one of them interrupts the hypervisor.

use scheduler::VcpuNumber;

use super::{GuestFile, Owner, Port};

/// Watches the file that `vcpu`, which waits on this hart, has here. Returns the file's bit; 0 if its interrupts are elsewhere.
#[must_use]
pub fn watch_waiter(port: &impl Port, vcpu: VcpuNumber) -> u64 {
    let Some(kept) = port.interrupts(vcpu) else {
        return 0;
    };
    let Some(file) = kept.lock().file_on(port.here()) else {
        return 0;
    };
    port.watch(file, true);
    file.bit()
}

/// Ends the watch of these files, except of those that have become forwarders since.
pub fn unwatch_files(port: &impl Port, watched: u64) {
    let Some(files) = port.files(port.here()) else {
        return;
    };
    for file in GuestFile::in_bits(watched) {
        if !matches!(files.owner(file), Owner::Forwarder(_)) {
            port.watch(file, false);
        }
    }
}
