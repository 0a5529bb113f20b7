//! Hands the linker the memory layout of the programs.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-T{directory}/link.ld");
    println!("cargo:rerun-if-changed=link.ld");
}
