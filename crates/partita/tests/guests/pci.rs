//! Guests that have the board's host bridge of PCI.

use super::common::room;
use super::run_command;
use std::fs;
use std::path::Path;
use system::cache::Cache;

/// Bytes of the disk behind virtio.
const DISK: u64 = 16 << 20;

/// Runs the example on QEMU with an NVMe disk and one of virtio behind the bridge; the guests must end well. Returns what the console showed.
fn run(folder: &Path, machine: &str, changes: &[&str]) -> String {
    let _room = room("qemu");
    let debian = Cache::from_environment()
        .unwrap()
        .folder()
        .join("debian/disk");
    let blank = folder.join("blank");
    fs::File::create(&blank).unwrap().set_len(DISK).unwrap();
    let mut command = run_command("qemu", "pci.toml");
    command.args(["--qemu-machine", machine]);
    for (name, file, device) in [
        ("nvme", debian.as_path(), "nvme,drive=nvme,serial=1"),
        (
            "virtio",
            &blank,
            "virtio-blk-pci,drive=virtio,disable-legacy=on,iommu_platform=on",
        ),
    ] {
        let drive = format!(
            "id={name},if=none,format=raw,snapshot=on,file={}",
            file.display()
        );
        command.args(["--qemu-drive", &drive, "--qemu-device", device]);
    }
    for change in changes {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{machine}, {changes:?}: {}\n{text}\n{errors}",
        output.status
    );
    text
}

/// Asserts that the guest with the bridge has written and read both disks, and that its neighbour has worked.
fn served(text: &str) {
    for line in [
        "[bridge] partita-guest start workload=pci cpus=2 disk=yes",
        "name=nvme",
        "name=virtio-pci",
        "[bridge] partita-guest result workload=nvme ok=yes",
        "[bridge] partita-guest result workload=virtio-vda ok=yes",
        "[bridge] partita-guest end ok=yes",
        "[neighbour] partita-guest result workload=hackbench ok=yes",
        "[neighbour] partita-guest end ok=yes",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let interrupts = text.split("partita-guest interrupts pci=").nth(1);
    let interrupts = interrupts.and_then(|rest| rest.split_whitespace().next());
    let interrupts = interrupts.and_then(|number| number.parse::<u32>().ok());
    assert!(interrupts > Some(100), "{interrupts:?} in\n{text}");
}

/// A stock guest binds the drivers of the bridge and of the disks behind it, whose interrupts come by wires.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn disks_behind_a_given_bridge_serve() {
    let folder = tempfile::tempdir().unwrap();
    served(&run(folder.path(), "aia=aplic-imsic", &[]));
}

/// Devices find the memory of a guest that lies elsewhere, and interrupt by each kind of controller.
#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_given_bridge_serves_on_every_board() {
    let folder = tempfile::tempdir().unwrap();
    for machine in ["aia=none", "aia=aplic", "aia=aplic-imsic"] {
        for placement in ["real", "resident"] {
            let change = format!("vm.bridge.placement=\"{placement}\"");
            served(&run(folder.path(), machine, &[&change]));
        }
    }
}

/// A guest that makes the configuration space of every function random, the host bridge's own among them, harms nobody else.
#[test]
#[ignore = "soak: a guest that writes wildly on QEMU; make soak runs it"]
fn soak_wild_configuration_spaces_harm_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let wild = "vm.bridge.command-line=\"console=ttyS0 quiet partita.bridge=wild\"";
    let text = run(folder.path(), "aia=aplic-imsic", &[wild]);
    for line in [
        "[bridge] partita-guest start workload=wild",
        "[bridge] partita-guest end ok=yes",
        "[neighbour] partita-guest result workload=hackbench ok=yes",
        "[neighbour] partita-guest end ok=yes",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}
