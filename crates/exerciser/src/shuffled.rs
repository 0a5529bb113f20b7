//! The exerciser, linked in another order (build.rs): the same modules as in `main.rs`. What a comparison finds with the one and
//! not with the other comes from where code and data lie.
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
