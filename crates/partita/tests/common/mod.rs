//! Common parts of the tests on QEMU.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A run on the machine takes one thread and no clock but its own. Whatever else is tried fills the computer that the tests run on.
static ROOM: RwLock<()> = RwLock::new(());

/// Right to run: alone on the computer, or beside others.
pub struct Room {
    _alone: Option<RwLockWriteGuard<'static, ()>>,
    _shared: Option<RwLockReadGuard<'static, ()>>,
}

/// Waits until there is room for `what`: "machine" goes beside others of its kind, anything else (`"qemu"`, `"compare"`) runs alone.
pub fn room(what: &str) -> Room {
    let shares = what == "machine";
    Room {
        _alone: (!shares).then(|| ROOM.write().unwrap_or_else(PoisonError::into_inner)),
        _shared: shares.then(|| ROOM.read().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The tree's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The hypervisor that `make build` built.
pub fn hypervisor() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    target.join("riscv64gc-unknown-none-elf/release/hypervisor")
}
