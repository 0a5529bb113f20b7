//! The exerciser: a small bare-metal SMP guest kernel that issues exactly the work its command line names.
//!
//! It is entered as Linux is (a0 = hart id, a1 = device tree), runs at any 2 MiB aligned address, on QEMU's
//! `virt` board or under a hypervisor, and ends with one line `exerciser: PASS ...` or `exerciser: FAIL ...`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod arch;
#[cfg(target_os = "none")]
mod block;
#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
mod console;
#[cfg(target_os = "none")]
mod exercises;
#[cfg(target_os = "none")]
mod frames;
#[cfg(target_os = "none")]
mod harts;
#[cfg(target_os = "none")]
mod interrupts;
#[cfg(target_os = "none")]
mod plic;
#[cfg(target_os = "none")]
mod start;

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the exerciser is a guest kernel: build it with --target riscv64gc-unknown-none-elf");
    std::process::exit(2);
}
