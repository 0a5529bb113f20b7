//! The bare-metal programs of `conformance/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the programs in a folder of their own, and gives the one that they are in.
pub fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--target", "riscv64gc-unknown-none-elf"])
        .arg("--manifest-path")
        .arg(root.join("conformance/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(
        status.success(),
        "the suite builds: `rustup target add riscv64gc-unknown-none-elf`"
    );
    target.join("riscv64gc-unknown-none-elf/debug")
}
