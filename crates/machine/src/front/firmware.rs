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

/// A file is no firmware, whatever its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}, and no firmware; name OpenSBI's fw_dynamic.bin, or leave --firmware and PARTITA_FIRMWARE out"
)]
pub struct NotFirmware(&'static str);

/// Refuses what no hart could execute: text, and what begins with an instruction that is defined to be illegal.
///
/// # Errors
/// What it is instead.
pub fn check(bytes: &[u8]) -> Result<(), NotFirmware> {
    const LOOKED_AT: usize = 256;
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match start {
        [] => Err(NotFirmware("this is an empty file")),
        start if start.iter().all(is_text) => Err(NotFirmware("this is text")),
        // All bits zero and all bits one are illegal (unprivileged ISA, "Base Instruction-Length Encoding").
        [0, 0, ..] => Err(NotFirmware("this begins with zeros")),
        [0xff, 0xff, ..] => Err(NotFirmware("this begins with ones")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_cannot_be_executed_is_no_firmware() {
        for bytes in [&b"hello, world\n"[..], b"", &[0; 64], &[0xff; 64], &[0, 0]] {
            assert!(check(bytes).is_err(), "{bytes:?}");
        }
        // A loop, and an ELF file's beginning.
        for bytes in [
            &0x0000_006f_u32.to_le_bytes()[..],
            b"\x7fELF\x02\x01\x01\x00",
        ] {
            assert!(check(bytes).is_ok(), "{bytes:?}");
        }
    }
}
