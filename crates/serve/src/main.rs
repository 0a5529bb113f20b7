//! `partita-serve`: serves disks to other VMs, out of a guest that runs Linux with `uio_pci_generic`.
//!
//! It finds the hypervisor's device, maps its regions, and carries out what is asked: reads, writes and flushes of a block device or a file.
//! Several processes work, one of which waits for the device's interrupt.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program;

#[cfg(target_os = "none")]
serve::entry!(program::run);

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("partita-serve runs in a guest: build it with --target riscv64gc-unknown-none-elf");
    std::process::exit(2);
}
