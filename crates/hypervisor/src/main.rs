//! Partita's hypervisor: booted by OpenSBI in HS-mode, it runs the virtual machines of one system image.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the hypervisor runs on a RISC-V board: build it with `make build`");
    std::process::exit(1);
}

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod hart;
#[cfg(target_os = "none")]
mod log;
