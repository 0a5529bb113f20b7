//! Common parts of programs that serve disks: their arguments, requests, the hypervisor's device, and calls of Linux.
//!
//! The programs are static and need no library: they are built for bare RISC-V, and call Linux themselves.
#![cfg_attr(not(test), no_std)]

pub mod arguments;
#[cfg(target_os = "none")]
pub mod device;
#[cfg(target_os = "none")]
pub mod linux;
pub mod request;
#[cfg(target_os = "none")]
pub mod text;
