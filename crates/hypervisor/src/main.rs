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
mod accounts;
#[cfg(target_os = "none")]
mod allocation;
#[cfg(target_os = "none")]
mod assemble;
#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
mod board_aplic;
#[cfg(target_os = "none")]
mod board_uart;
#[cfg(target_os = "none")]
mod boot;
#[cfg(target_os = "none")]
mod console;
#[cfg(target_os = "none")]
mod exits;
#[cfg(target_os = "none")]
mod files;
#[cfg(target_os = "none")]
mod hart;
#[cfg(target_os = "none")]
mod harts;
#[cfg(target_os = "none")]
mod in_place;
#[cfg(target_os = "none")]
mod interrupts;
#[cfg(target_os = "none")]
mod lifecycle;
#[cfg(target_os = "none")]
mod loader;
#[cfg(target_os = "none")]
mod monitor;
#[cfg(target_os = "none")]
mod operator;
#[cfg(target_os = "none")]
mod probe;
#[cfg(target_os = "none")]
mod run;
#[cfg(target_os = "none")]
mod spin;
#[cfg(target_os = "none")]
mod system;
#[cfg(target_os = "none")]
mod tables;
#[cfg(target_os = "none")]
mod vcpu;
#[cfg(target_os = "none")]
mod vm;
