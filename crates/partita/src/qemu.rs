//! QEMU as the computer that a system runs on.

use crate::cache::Cache;
use crate::image::locate;
use crate::image::slots::{Assignment, Device};
use crate::system::{Bytes, Date, Disk, Forward, HostNetwork, System, days_of, days_of_year};
use abi::system::{MEMORY_GRANULE, Slot};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The program.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// The oldest version that is known to do what Partita needs.
pub const OLDEST_VERSION: (u32, u32) = (10, 0);
/// Guest interrupt files a hart that its board has at most, and that a system gets which does not say.
pub const GUEST_FILES: u32 = 7;
/// What the harts have besides QEMU's own choice (which has H, Sstc, Svadu, Zawrs, Smaia and Ssaia).
const CPU: &str = "rv64,svinval=on,svpbmt=on,sscofpmf=on";

/// Why QEMU cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// It is not there.
    #[error(
        "{PROGRAM} cannot be started ({0}); install QEMU 10.0 or newer: on Debian 12 the packages \
         qemu-system-riscv and opensbi of bookworm-backports, which `make setup` does"
    )]
    Start(#[source] std::io::Error),
    /// It is too old.
    #[error(
        "{PROGRAM} is version {0}; version 10.0 or newer is needed, which bookworm-backports has"
    )]
    Old(String),
    /// It has not so many guest interrupt files.
    #[error(
        "guest-files = {0}: QEMU's board has at most {GUEST_FILES} a hart; lower it, or run on the machine"
    )]
    GuestFiles(u32),
    /// It has nobody to sit at terminals.
    #[error(
        "vm.{0}.terminals: terminals have users on the machine alone; run without --on qemu, or leave them out"
    )]
    Terminals(String),
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

/// Where the board's memory begins.
const MEMORY_BASE: u64 = 0x8000_0000;
/// What the firmware and the hypervisor take at its beginning; generous.
const HYPERVISOR_END: u64 = MEMORY_BASE + (16 << 20);
/// What the board's device tree takes at its end; generous.
const TREE_SIZE: u64 = 4 << 20;

/// The pieces of a computer's memory that are left for VMs, beside firmware, hypervisor, device tree and a
/// system image of `image` bytes. QEMU puts the image half way into the memory, but not more than 512 MiB behind
/// the hypervisor's beginning, so the memory falls into two pieces.
pub fn free_memory(memory: Bytes, image: u64) -> [Range<u64>; 2] {
    let end = MEMORY_BASE.saturating_add(memory.0);
    let kernel = MEMORY_BASE + (2 << 20);
    let image_start = kernel + (memory.0 / 2).min(512 << 20);
    let image_end = image_start.saturating_add(image);
    let low = HYPERVISOR_END..image_start.max(HYPERVISOR_END);
    let high_end = end.saturating_sub(TREE_SIZE);
    [low, image_end.min(high_end)..high_end]
}

/// Puts VMs of these sizes into the free pieces, the largest first, each in one piece that begins at a
/// multiple of the G-stage's megapage. Returns the first size that finds no room.
pub fn place(mut free: Vec<Range<u64>>, sizes: &[Bytes]) -> Result<(), Bytes> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    for size in sizes.into_iter().rev() {
        let start = |piece: &Range<u64>| piece.start.next_multiple_of(MEMORY_GRANULE);
        let fits = |piece: &&mut Range<u64>| start(piece).saturating_add(size.0) <= piece.end;
        let piece = free.iter_mut().find(fits).ok_or(size)?;
        piece.start = start(piece) + size.0;
    }
    Ok(())
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

/// QEMU's arguments for a bare board with its console on standard input and output.
pub fn board(guest_files: u32, harts: u32, memory: Bytes) -> Vec<OsString> {
    let machine = format!("virt,aia=aplic-imsic,aia-guests={guest_files}");
    let (harts, memory) = (harts.to_string(), format!("{}M", memory.0 >> 20));
    let arguments = [
        ["-machine", &machine],
        ["-cpu", CPU],
        ["-smp", &harts],
        ["-m", &memory],
        ["-display", "none"],
        ["-chardev", "stdio,id=console,signal=off"],
        ["-serial", "chardev:console"],
        ["-global", "virtio-mmio.force-legacy=false"],
    ];
    let plain = ["-nodefaults", "-no-user-config", "-no-reboot"];
    arguments
        .as_flattened()
        .iter()
        .chain(&plain)
        .map(OsString::from)
        .collect()
}

/// QEMU's arguments for a system: the board, what it boots, and each VM's devices in their slots. Its
/// console is on standard input and output.
pub fn arguments(
    system: &System,
    slots: &Assignment,
    boot: Boot<'_>,
    cache: &Cache,
) -> Vec<OsString> {
    let guest_files = system.guest_files.unwrap_or(GUEST_FILES);
    let mut arguments = board(guest_files, system.harts.value, system.memory.value);
    let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
    add("-bios", boot.firmware.into());
    add("-kernel", boot.hypervisor.into());
    add("-initrd", boot.image.into());

    let date = match system.date {
        Date::Host => String::from("base=utc"),
        Date::At(seconds) => format!("base={}", calendar(seconds)),
    };
    add("-rtc", date.into());
    let mut hubs: BTreeMap<&str, usize> = BTreeMap::new();
    if let Some(host) = &system.host {
        hubs.insert(&host.network, 0);
        add("-netdev", user_network(host).into());
        add("-netdev", "hubport,id=outside,hubid=0,netdev=host".into());
    }
    for (shared, slot) in system.disks.iter().zip(slots.shared()) {
        let bus = format!("bus=virtio-mmio-bus.{slot}");
        add_disk(&mut add, &shared.disk, *slot, &bus, cache);
    }
    for ((number, switch), slot) in system.uplinks().zip(slots.uplinks()) {
        let next = hubs.len();
        let hub = *hubs.entry(&switch.name).or_insert(next);
        let address = format!("mac=52:54:00:01:00:{number:02x}");
        add_card(&mut add, *slot, hub, &address, "");
    }
    for (index, vm) in system.vms.iter().enumerate() {
        for (slot, device) in slots.vm(index) {
            let platform = match vm.tells_addresses(device.io(vm)) {
                true => ",iommu_platform=on",
                false => "",
            };
            let bus = format!("bus=virtio-mmio-bus.{slot}{platform}");
            match device {
                Device::Disk(number) => {
                    let Some(disk) = vm.disks.get(*number) else {
                        continue;
                    };
                    add_disk(&mut add, disk, *slot, &bus, cache);
                }
                Device::Card(number) => {
                    let Some(card) = vm.network.get(*number) else {
                        continue;
                    };
                    let next = hubs.len();
                    let hub = *hubs.entry(&card.network.value).or_insert(next);
                    let address = format!("mac=52:54:00:00:{index:02x}:{number:02x}");
                    add_card(&mut add, *slot, hub, &address, platform);
                }
                // A system with terminals is refused before it comes here.
                Device::Terminals => {}
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

/// Adds a network card in a slot, on a hub inside this QEMU, so that nothing reaches the host unless the host's network is there too.
fn add_card(
    add: &mut impl FnMut(&str, OsString),
    slot: Slot,
    hub: usize,
    address: &str,
    platform: &str,
) {
    let port = format!("hubport,id=net{slot},hubid={hub}");
    add("-netdev", port.into());
    let bus = format!("bus=virtio-mmio-bus.{slot}{platform}");
    let card = format!("virtio-net-device,netdev=net{slot},{address},{bus}");
    add("-device", card.into());
}

/// Adds a disk in a slot.
fn add_disk(
    add: &mut impl FnMut(&str, OsString),
    disk: &Disk,
    slot: Slot,
    bus: &str,
    cache: &Cache,
) {
    // A comma in a name would end it; QEMU wants it doubled.
    let path = locate(&disk.file.value, cache);
    let path = path.to_string_lossy().replace(',', ",,");
    let snapshot = if disk.keep { "off" } else { "on" };
    let drive = format!("file={path},format=raw,if=none,id=disk{slot},snapshot={snapshot}");
    add("-drive", drive.into());
    add(
        "-device",
        format!("virtio-blk-device,drive=disk{slot},{bus}").into(),
    );
}

/// QEMU's user-mode network, called `host`, with the ports of the host's loopback address that lead to guests.
pub fn user_network(host: &HostNetwork) -> String {
    let mut text = String::from("user,id=host");
    for Forward {
        host,
        address,
        guest,
    } in &host.forwards
    {
        text += &format!(",hostfwd=tcp:127.0.0.1:{host}-{address}:{guest}");
    }
    text
}

/// A time in seconds since 1970 as QEMU reads it, in UTC.
pub(crate) fn calendar(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_fits_only_where_a_piece_is_large_enough() {
        let mib = |size: u64| Bytes(size << 20);
        let fits = |memory, sizes: &[u64]| {
            let sizes: Vec<Bytes> = sizes.iter().map(|size| mib(*size)).collect();
            place(free_memory(mib(memory), 44 << 20).to_vec(), &sizes)
        };
        assert_eq!(fits(2048, &[512, 512]), Ok(()));
        // The sum would fit, but the image lies in the middle.
        assert_eq!(fits(1024, &[512]), Err(mib(512)));
        assert_eq!(fits(1024, &[400, 400]), Ok(()));
        assert_eq!(fits(2048, &[512, 512, 512]), Err(mib(512)));
        assert_eq!(fits(64, &[64]), Err(mib(64)));
    }

    #[test]
    fn a_date_is_written_as_it_was_read() {
        for text in [
            "1970-01-01T00:00:00",
            "2024-02-29T23:59:59",
            "2100-12-31T12:34:56",
        ] {
            let Some(Date::At(seconds)) = Date::parse(&format!("{text}Z")) else {
                panic!("{text}");
            };
            assert_eq!(calendar(seconds), text);
        }
    }

    #[test]
    fn a_host_network_is_qemus_own_with_its_ports() {
        let host = HostNetwork {
            network: String::from("lan"),
            forwards: ["2222:22", "80:10.0.2.16:8080"]
                .iter()
                .filter_map(|text| Forward::parse(text))
                .collect(),
        };
        assert_eq!(
            user_network(&host),
            "user,id=host,hostfwd=tcp:127.0.0.1:2222-10.0.2.15:22,hostfwd=tcp:127.0.0.1:80-10.0.2.16:8080"
        );
    }
}
