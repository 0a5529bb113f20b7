//! QEMU as the computer that a system runs on.

use abi::keys;
use abi::system::Slot;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use system::cache::Cache;
use system::image::slots::{Assignment, Device};
use system::{Bytes, Date, Disk, Forward, HostNetwork, System, calendar};

/// The program.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// The oldest version that is known to do what Partita needs.
pub const OLDEST_VERSION: (u32, u32) = (10, 0);
/// Guest interrupt files a hart that its board has at most, and that a system gets which does not say.
pub const GUEST_FILES: u32 = 7;
/// Extensions of the harts besides QEMU's own choice (which has H, Sstc, Svadu, Zawrs, Smaia and Ssaia).
const CPU: &str = "rv64,svinval=on,svpbmt=on,sscofpmf=on,v=on";

/// Why QEMU cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// QEMU is not installed.
    #[error(
        "{PROGRAM} cannot be started ({0}); install QEMU 10.0 or newer: on Debian 12 the packages \
         qemu-system-riscv and opensbi of bookworm-backports, which `make setup` does"
    )]
    Start(#[source] std::io::Error),
    /// QEMU is too old.
    #[error(
        "{PROGRAM} is version {0}; version 10.0 or newer is needed, which bookworm-backports has"
    )]
    Old(String),
    /// QEMU has not so many guest interrupt files.
    #[error(
        "guest-interrupt-files = {0}: QEMU's board has at most {GUEST_FILES} a hart; lower it, or run on the machine"
    )]
    GuestFiles(u32),
    /// QEMU runs have no users at terminals.
    #[error(
        "vm.{0}.terminals: terminals have users on the machine alone; run without --on qemu, or leave them out"
    )]
    Terminals(String),
}

/// Checks that QEMU is there and new enough.
///
/// # Errors
/// QEMU cannot run the system; the message says what to do.
pub fn check() -> Result<(), QemuError> {
    version().map(drop)
}

/// Version of QEMU, if it is there and new enough.
///
/// # Errors
/// As for [`check`].
pub fn version() -> Result<String, QemuError> {
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
    Ok(String::from(version))
}

/// Departures from the board that a system gets, in QEMU's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variant {
    /// Further options of `-machine`, such as `aia=none`. A later one counts.
    pub machine: Option<String>,
    /// Further options of `-cpu`, such as `sstc=off`.
    pub cpu: Option<String>,
    /// Further drives, each the options of a `-drive`.
    pub drives: Vec<String>,
    /// Further ends of networks, each the options of a `-netdev`.
    pub networks: Vec<String>,
    /// Further devices, each the options of a `-device`.
    pub devices: Vec<String>,
}

impl Variant {
    /// Adds the options to QEMU's arguments, as [`arguments`] makes them.
    pub fn add_to(&self, arguments: &mut Vec<OsString>) {
        for (option, further) in [("-machine", &self.machine), ("-cpu", &self.cpu)] {
            let place = arguments.iter().position(|argument| argument == option);
            let value = place.and_then(|place| arguments.get_mut(place + 1));
            if let (Some(value), Some(further)) = (value, further) {
                value.push(",");
                value.push(further);
            }
        }
        for (option, values) in [
            ("-drive", &self.drives),
            ("-netdev", &self.networks),
            ("-device", &self.devices),
        ] {
            for value in values {
                arguments.extend([option.into(), value.into()]);
            }
        }
    }
}

/// Files that QEMU boots.
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
    let guest_files = system
        .get(keys::GUEST_INTERRUPT_FILES)
        .unwrap_or(GUEST_FILES);
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
    let path = disk.path(cache);
    let path = path.to_string_lossy().replace(',', ",,");
    let snapshot = if disk.get(keys::PERSISTENT) {
        "off"
    } else {
        "on"
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_follows_the_usual_board() {
        let mut arguments = board(7, 2, Bytes(1 << 30));
        let variant = Variant {
            machine: Some(String::from("aia=none")),
            cpu: Some(String::from("sstc=off,zawrs=off")),
            networks: vec![String::from("user,id=n")],
            drives: vec![String::from("id=a,if=none,file=a.raw")],
            devices: vec![String::from("nvme,drive=a"), String::from("e1000e")],
        };
        variant.add_to(&mut arguments);
        let text = arguments.join(" ".as_ref());
        let text = text.to_str().unwrap();
        assert!(
            text.starts_with("-machine virt,aia=aplic-imsic,aia-guests=7,aia=none -cpu rv64,"),
            "{text}"
        );
        assert!(text.contains(",v=on,sstc=off,zawrs=off -smp 2 "), "{text}");
        let further =
            " -drive id=a,if=none,file=a.raw -netdev user,id=n -device nvme,drive=a -device e1000e";
        assert!(text.ends_with(further), "{text}");
        let mut plain = board(7, 2, Bytes(1 << 30));
        Variant::default().add_to(&mut plain);
        assert_eq!(plain, board(7, 2, Bytes(1 << 30)));
    }

    #[test]
    fn host_network_is_qemus_with_ports() {
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
