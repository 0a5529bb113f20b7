//! The images without the hypervisor.

use super::common::room;
use std::fs;
use std::process::{Command, Stdio};

#[test]
#[ignore = "needs QEMU and the images; make test runs it"]
fn the_images_boot_without_a_hypervisor() {
    let _room = room("qemu");
    let cache = system::cache::Cache::from_environment().unwrap();
    for harts in ["1", "4"] {
        let file = |name: &str| cache.folder().join("debian").join(name);
        let drive = format!(
            "file={},format=raw,if=none,id=disk,snapshot=on",
            file("disk").display()
        );
        let output = Command::new(runner::qemu::PROGRAM)
            .args([
                "-machine",
                "virt,aia=aplic-imsic",
                "-cpu",
                "rv64",
                "-smp",
                harts,
                "-m",
                "512M",
            ])
            .args([
                "-nodefaults",
                "-display",
                "none",
                "-serial",
                "stdio",
                "-no-reboot",
            ])
            .arg("-bios")
            .arg(runner::computer::firmware::find().unwrap())
            .arg("-kernel")
            .arg(file("kernel"))
            .arg("-initrd")
            .arg(file("initrd"))
            .args(["-append", "console=ttyS0 quiet partita.workload=job"])
            .args([
                "-global",
                "virtio-mmio.force-legacy=false",
                "-drive",
                &drive,
            ])
            .args([
                "-device",
                "virtio-blk-device,drive=disk,bus=virtio-mmio-bus.0",
            ])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains(&format!(
                "partita-guest start workload=job cpus={harts} disk=yes"
            )),
            "{text}"
        );
        assert!(text.contains("partita-guest complaints count=0"), "{text}");
        assert!(text.contains("partita-guest end ok=yes"), "{text}");
    }
}

/// Debian by itself on the machine, with a disk that takes its time and whose first request fails.
#[test]
#[ignore = "needs the images; make test runs it"]
fn disks_follow_the_profile() {
    let _room = room("machine");
    let cache = system::cache::Cache::from_environment().unwrap();
    let file = |name: &str| cache.folder().join("debian").join(name);
    let folder = tempfile::tempdir().unwrap();
    let (profile, figures) = (
        folder.path().join("slow.toml"),
        folder.path().join("figures"),
    );
    let ideal = include_str!("../../../../profiles/ideal.toml");
    let disk =
        "[disk.service]\nfixed_nanoseconds = 100_000\n[disk.faults]\nerrors = { at = [0] }\n";
    fs::write(&profile, format!("{ideal}\n{disk}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args([
            "machine",
            "--mode",
            "functional",
            "--snapshot",
            "--timeout",
            "600",
        ])
        .args(["--append", "console=ttyS0 partita.workload=job"])
        .arg("--kernel")
        .arg(file("kernel"))
        .arg("--initrd")
        .arg(file("initrd"))
        .arg("--disk")
        .arg(file("disk"))
        .arg("--profile")
        .arg(profile)
        .arg("--monitor")
        .arg(&figures)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
    assert!(text.contains("I/O error, dev vda, sector 0"), "{text}");
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(figures).unwrap()).unwrap();
    let disk = &figures["devices"][0];
    let figure = |name: &str| disk[name].as_u64().unwrap();
    assert_eq!(
        (disk["kind"].as_str(), figure("errors")),
        (Some("block"), 1)
    );
    assert!(figure("requests") > 1, "{disk}");
    // A cycle of the ideal machine is a nanosecond.
    assert_eq!(figure("busy_cycles"), figure("requests") * 100_000);
}
