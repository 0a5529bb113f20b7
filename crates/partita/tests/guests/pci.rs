//! Guests that have the board's host bridge of PCI.

use super::common::room;
use super::run_command;
use std::fs;
use std::path::Path;
use system::cache::Cache;

/// Bytes of the disk behind virtio.
const DISK: u64 = 16 << 20;

/// Devices besides the disks of NVMe and virtio.
const MORE: [&str; 8] = [
    "--qemu-netdev",
    "user,id=net",
    "--qemu-device",
    "ahci,id=ahci",
    "--qemu-device",
    "ide-hd,bus=ahci.0,drive=sata",
    "--qemu-device",
    "e1000e,netdev=net,romfile=",
];

/// Runs the example on QEMU with an NVMe disk and one of virtio behind the bridge; the guests must end well. Returns what the console showed.
fn run(folder: &Path, machine: &str, changes: &[&str], more: &[&str]) -> String {
    let _room = room("qemu");
    let cache = Cache::from_environment().unwrap();
    let debian = cache.folder().join("debian/disk");
    let blank = |name: &str| {
        let path = folder.join(name);
        fs::File::create(&path).unwrap().set_len(DISK).unwrap();
        path
    };
    let mut command = run_command("qemu", "pci.toml");
    command.args(["--timeout", "900", "--qemu-machine", machine]);
    for (name, file) in [
        ("nvme", debian),
        ("virtio", blank("virtio")),
        ("sata", blank("sata")),
    ] {
        let file = file.display();
        let drive = format!("id={name},if=none,format=raw,snapshot=on,file={file}");
        command.args(["--qemu-drive", &drive]);
    }
    let virtio = "virtio-blk-pci,drive=virtio,disable-legacy=on,iommu_platform=on";
    for device in ["nvme,drive=nvme,serial=1", virtio] {
        command.args(["--qemu-device", device]);
    }
    command.args(more);
    for change in changes {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let whole = format!(
        "{machine}, {changes:?}: {}\n{text}\n{errors}",
        output.status
    );
    assert!(output.status.success(), "{whole}");
    text
}

/// Asserts that the console showed these lines.
fn shows(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

/// Asserts that the guest with the bridge has written and read both disks, and that its neighbour has worked.
fn served(text: &str) {
    shows(
        text,
        &[
            "[bridge] partita-guest start workload=pci cpus=2 disk=yes",
            "name=nvme",
            "name=virtio-pci",
            "[bridge] partita-guest result workload=nvme ok=yes",
            "[bridge] partita-guest result workload=vda ok=yes",
            "[bridge] partita-guest end ok=yes",
            "[neighbour] partita-guest result workload=hackbench ok=yes",
            "[neighbour] partita-guest end ok=yes",
        ],
    );
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
    let text = run(folder.path(), "aia=aplic-imsic", &[], &[]);
    served(&text);
    shows(&text, &["its guest is trusted", " msi=0"]);
}

/// Devices that their guest has read and write memory of the firmware and of the hypervisor reach none of it behind an IOMMU, and serve.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn an_iommu_confines_a_given_bridge() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [
        "vm.bridge.confined=\"required\"",
        "vm.bridge.command-line=\"console=ttyS0 quiet partita.seconds=2 partita.bridge=reach\"",
    ];
    let edu = ["--qemu-device", "edu,dma_mask=0xffffffffffff"];
    let text = run(folder.path(), "iommu-sys=on", &changes, &edu);
    served(&text);
    shows(
        &text,
        &[
            "[partita] bridge: an IOMMU confines its devices to its memory",
            "[bridge] partita-guest result workload=reach ok=yes",
            "the address 0x80200000 (cause 21)",
            "the address 0x80200000 (cause 23)",
        ],
    );
    assert!(!text.contains("its guest is trusted"), "{text}");
    // Each vCPU has its queue of the NVMe disk, whose messages reach the vCPU's file.
    assert!(!text.contains(" msi=0"), "{text}");
}

/// Runs the example on the machine with two disks of virtio behind the bridge; the guests must end well. Returns what the console showed.
fn run_on_machine(folder: &Path, options: &[&str], changes: &[&str]) -> String {
    let _room = room("machine");
    let debian = Cache::from_environment()
        .unwrap()
        .folder()
        .join("debian/disk");
    let blank = folder.join("blank");
    fs::File::create(&blank).unwrap().set_len(DISK).unwrap();
    let mut command = run_command("machine", "pci.toml");
    for disk in [debian, blank] {
        command.arg("--pci-disk").arg(disk);
    }
    command.args(options);
    for change in changes {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let whole = format!(
        "{options:?}, {changes:?}: {}\n{text}\n{errors}",
        output.status
    );
    assert!(output.status.success(), "{whole}");
    shows(
        &text,
        &[
            "[bridge] partita-guest start workload=pci cpus=2 disk=yes",
            "name=virtio-pci",
            "[bridge] partita-guest result workload=vda ok=yes",
            "[bridge] partita-guest result workload=vdb ok=yes",
            "[bridge] partita-guest end ok=yes",
            "[neighbour] partita-guest result workload=hackbench ok=yes",
            "[neighbour] partita-guest end ok=yes",
        ],
    );
    text
}

/// On the machine, too, a stock guest drives the disks behind its bridge, whose interrupts come by wires.
#[test]
#[ignore = "soak: a minute of the machine; make soak runs it"]
fn soak_machine_disks_behind_a_bridge_serve() {
    let folder = tempfile::tempdir().unwrap();
    let text = run_on_machine(folder.path(), &[], &[]);
    shows(&text, &["its guest is trusted", " msi=0"]);
}

/// The machine's IOMMU confines the devices, also of a guest whose memory lies elsewhere, and their messages reach vCPUs that float.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn machine_iommu_confines_a_given_bridge() {
    let folder = tempfile::tempdir().unwrap();
    for placement in ["real", "resident"] {
        let placement = format!("vm.bridge.placement=\"{placement}\"");
        let changes = ["vm.bridge.confined=\"required\"", &placement];
        let text = run_on_machine(folder.path(), &["--iommu"], &changes);
        shows(
            &text,
            &["[partita] bridge: an IOMMU confines its devices to its memory"],
        );
        assert!(!text.contains("its guest is trusted"), "{text}");
        assert!(!text.contains(" msi=0"), "{text}");
    }
}

/// Without an IOMMU nothing starts that requires one.
#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn bridge_without_an_iommu_is_not_confined() {
    let _room = room("qemu");
    let mut command = run_command("qemu", "pci.toml");
    let output = command
        .args(["--set", "vm.bridge.confined=\"required\""])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reason = "bridge cannot have /soc/pci@30000000: confined: no IOMMU that Partita drives";
    shows(&text, &[reason]);
    assert!(!text.contains("[neighbour]"), "{text}");
}

/// Devices find the memory of a guest that lies elsewhere, with and without an IOMMU, and interrupt by each kind of controller.
#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_given_bridge_serves_on_every_board() {
    let folder = tempfile::tempdir().unwrap();
    for aia in ["aia=none", "aia=aplic", "aia=aplic-imsic"] {
        for iommu in ["off", "on"] {
            let machine = format!("{aia},iommu-sys={iommu}");
            for placement in ["real", "resident"] {
                let change = format!("vm.bridge.placement=\"{placement}\"");
                let text = run(folder.path(), &machine, &[&change], &MORE);
                served(&text);
                for device in ["sda", "eth0"] {
                    let line = format!("[bridge] partita-guest result workload={device} ok=yes");
                    shows(&text, &[&line]);
                }
            }
        }
    }
}

/// A guest that makes the configuration space of every function random, the host bridge's own among them, harms nobody else.
#[test]
#[ignore = "soak: a guest that writes wildly on QEMU; make soak runs it"]
fn soak_wild_configuration_spaces_harm_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let wild = "vm.bridge.command-line=\"console=ttyS0 quiet partita.bridge=wild\"";
    let text = run(folder.path(), "aia=aplic-imsic", &[wild], &MORE);
    shows(
        &text,
        &[
            "[bridge] partita-guest start workload=wild",
            "[bridge] partita-guest end ok=yes",
            "[neighbour] partita-guest result workload=hackbench ok=yes",
            "[neighbour] partita-guest end ok=yes",
        ],
    );
}
