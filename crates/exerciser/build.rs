//! Chooses how the bare-metal binary is linked: a position-independent flat image by default.
//!
//! `EXERCISER_FORMAT=elf` keeps the ELF file instead: symbols for a debugger, linked at 0 (in gdb, `add-symbol-file`
//! with the load address as offset).

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=exerciser.ld");
    println!("cargo:rerun-if-env-changed=EXERCISER_FORMAT");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!(
        "cargo:rustc-link-arg-bins=-T{}",
        folder.join("exerciser.ld").display()
    );
    // The data's absolute pointers become relative relocations, which the entry code applies.
    println!("cargo:rustc-link-arg-bins=-pie");
    println!("cargo:rustc-link-arg-bins=--no-dynamic-linker");
    // Read-only data holds pointers too, and at entry nothing is read-only yet.
    println!("cargo:rustc-link-arg-bins=-znotext");
    // Any number will do, as long as it stays the same: it is the order in which the sections lie.
    for sections in [".text.*", ".rodata.*", ".data.*", ".bss.*"] {
        println!("cargo:rustc-link-arg-bin=exerciser-shuffled=--shuffle-sections={sections}=1");
    }
    if env::var("EXERCISER_FORMAT").as_deref() != Ok("elf") {
        println!("cargo:rustc-link-arg-bins=--oformat=binary");
    }
}
