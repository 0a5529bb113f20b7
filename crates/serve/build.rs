//! Chooses how the program is linked: a static program for Linux, which needs no library.

use std::env;

fn main() {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-static");
        println!("cargo:rustc-link-arg-bins=--entry=_start");
        println!("cargo:rustc-link-arg-bins=--image-base=0x10000");
    }
}
