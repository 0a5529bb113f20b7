//! Builds what guests boot: the kernel, the initial RAM disk and the disk of a Debian guest.
//!
//! Packages are fetched by a private state of apt ([`apt`]), unpacked, and the parts that are needed are
//! picked out of them: the kernel and the modules ([`modules`]), programs and the libraries that they link
//! ([`libraries`]). Everything happens in a folder beside the place where the files are to be, and that
//! folder takes its name only when it is whole.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod apt;
mod board;
mod builder;
mod compiler;
mod convert;
mod database;
mod debian;
mod disk;
mod efi;
mod error;
pub mod fat;
mod folders;
mod initrd;
pub mod kvm_host;
mod libraries;
mod mirror;
mod modules;
mod pci;
pub mod pinned;
mod process;
mod progress;
mod recipe;
pub mod root_filesystem;
mod serve;
mod site;
mod small_guests;
mod u_boot;

pub use apt::KEYRING;
pub use convert::convert;
pub use error::ImagesError;
pub use folders::{ensure, forget, packages};
pub use progress::Progress;
pub use recipe::RunGuest;
