//! OpenSBI, which every computer runs in M-mode.

use std::path::PathBuf;

/// Where distributions put OpenSBI's `fw_dynamic`.
const PLACES: [&str; 3] = [
    "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin",
    "/usr/share/opensbi/lp64/generic/firmware/fw_dynamic.bin",
    "/usr/share/qemu/opensbi-riscv64-generic-fw_dynamic.bin",
];

/// There is no firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no OpenSBI firmware: install the package opensbi, or set PARTITA_FIRMWARE to fw_dynamic.bin"
)]
pub struct NoFirmware;

/// Finds it: what `PARTITA_FIRMWARE` names, or where distributions put it.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, NoFirmware> {
    if let Some(path) = std::env::var_os("PARTITA_FIRMWARE") {
        return Ok(PathBuf::from(path));
    }
    PLACES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .ok_or(NoFirmware)
}
