//! Hands the linker script to the linker when the hypervisor itself is built.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
        println!(
            "cargo:rustc-link-arg-bins=-T{}",
            folder.join("link.ld").display()
        );
        // Position-independent: what holds an address is listed for the first instructions, wherever it stands.
        for argument in [
            "--gc-sections",
            "-pie",
            "--no-dynamic-linker",
            "-znotext",
            "-znorelro",
            // Functions of the same code are one.
            "--icf=all",
        ] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
