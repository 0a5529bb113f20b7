//! QEMU as the computer that a system runs on.

use crate::cache::Cache;
use crate::image::locate;
use crate::image::slots::{Assignment, Device};
use crate::system::System;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// The oldest version that is known to do what Partita needs.
pub const OLDEST_VERSION: (u32, u32) = (10, 0);
/// Where distributions put OpenSBI's `fw_dynamic`; `PARTITA_FIRMWARE` names another.
const FIRMWARE: [&str; 3] = [
    "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin",
    "/usr/share/opensbi/lp64/generic/firmware/fw_dynamic.bin",
    "/usr/share/qemu/opensbi-riscv64-generic-fw_dynamic.bin",
];
/// What the harts have besides QEMU's own choice (which has H, Sstc, Svadu, Zawrs, Smaia and Ssaia).
const CPU: &str = "rv64,svinval=on,svpbmt=on";

/// Why QEMU cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// It is not there.
    #[error(
        "{PROGRAM} cannot be started ({0}); install QEMU 10.0 or newer: on Debian 12 the packages \
         qemu-system-misc and opensbi of bookworm-backports, which `make setup` does"
    )]
    Start(#[source] std::io::Error),
    /// It is too old.
    #[error(
        "{PROGRAM} is version {0}; version 10.0 or newer is needed, which bookworm-backports has"
    )]
    Old(String),
    /// There is no firmware.
    #[error(
        "there is no OpenSBI firmware: install the package opensbi, or set PARTITA_FIRMWARE to fw_dynamic.bin"
    )]
    NoFirmware,
}

/// Checks that QEMU is there and new enough.
///
/// # Errors
/// It is not, with what to do.
pub fn check() -> Result<(), QemuError> {
    let output = Command::new(PROGRAM)
        .arg("--version")
        .output()
        .map_err(QemuError::Start)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split("version ").nth(1).unwrap_or_default();
    let version = version.split_whitespace().next().unwrap_or_default();
    let mut numbers = version
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let numbers = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if numbers < OLDEST_VERSION {
        return Err(QemuError::Old(String::from(version)));
    }
    Ok(())
}

/// Finds the firmware.
///
/// # Errors
/// There is none.
pub fn firmware() -> Result<PathBuf, QemuError> {
    if let Some(path) = std::env::var_os("PARTITA_FIRMWARE") {
        return Ok(PathBuf::from(path));
    }
    FIRMWARE
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .ok_or(QemuError::NoFirmware)
}

/// What QEMU boots.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// OpenSBI's `fw_dynamic`.
    pub firmware: &'a Path,
    /// The hypervisor's ELF file.
    pub hypervisor: &'a Path,
    /// The system image.
    pub image: &'a Path,
}

/// QEMU's arguments for a system: the board, what it boots, and each VM's devices in their slots. Its
/// console is on standard input and output.
pub fn arguments(
    system: &System,
    slots: &Assignment,
    boot: Boot<'_>,
    cache: &Cache,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |option: &str, value: OsString| {
        arguments.push(option.into());
        if !value.is_empty() {
            arguments.push(value);
        }
    };
    let machine = format!("virt,aia=aplic-imsic,aia-guests={}", system.guest_files);
    add("-machine", machine.into());
    add("-cpu", CPU.into());
    add("-smp", system.harts.value.to_string().into());
    add("-m", format!("{}M", system.memory.value.0 >> 20).into());
    for option in ["-nodefaults", "-no-user-config", "-no-reboot"] {
        add(option, OsString::new());
    }
    add("-display", "none".into());
    add("-chardev", "stdio,id=console,signal=off".into());
    add("-serial", "chardev:console".into());
    add("-bios", boot.firmware.into());
    add("-kernel", boot.hypervisor.into());
    add("-initrd", boot.image.into());
    add("-global", "virtio-mmio.force-legacy=false".into());

    let mut hubs: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, vm) in system.vms.iter().enumerate() {
        for (slot, device) in slots.vm(index) {
            let bus = format!("bus=virtio-mmio-bus.{slot}");
            match device {
                Device::Disk(number) => {
                    let Some(disk) = vm.disks.get(*number) else {
                        continue;
                    };
                    // A comma in a name would end it; QEMU wants it doubled.
                    let path = locate(&disk.file.value, cache);
                    let path = path.to_string_lossy().replace(',', ",,");
                    let snapshot = if disk.keep { "off" } else { "on" };
                    let drive =
                        format!("file={path},format=raw,if=none,id=disk{slot},snapshot={snapshot}");
                    add("-drive", drive.into());
                    add(
                        "-device",
                        format!("virtio-blk-device,drive=disk{slot},{bus}").into(),
                    );
                }
                Device::Card(number) => {
                    let Some(card) = vm.network.get(*number) else {
                        continue;
                    };
                    let next = hubs.len();
                    let hub = *hubs.entry(&card.network.value).or_insert(next);
                    // A hub inside this QEMU, so nothing reaches the host.
                    add(
                        "-netdev",
                        format!("hubport,id=net{slot},hubid={hub}").into(),
                    );
                    let address = format!("mac=52:54:00:00:{index:02x}:{number:02x}");
                    let card = format!("virtio-net-device,netdev=net{slot},{address},{bus}");
                    add("-device", card.into());
                }
                Device::Rng => {
                    add("-object", format!("rng-builtin,id=rng{slot}").into());
                    add(
                        "-device",
                        format!("virtio-rng-device,rng=rng{slot},{bus}").into(),
                    );
                }
            }
        }
    }
    arguments
}
