//! Guests that begin with a firmware of their own, which reads the guest's disk.

use super::{hypervisor, run_command};
use crate::common::room;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Beginning of the disk's one partition, in blocks of 512 bytes.
const PARTITION: u32 = 2048;

/// A disk with a partition table (UEFI 2.10, §5.2.1) and one file system, whose boot menu starts the exerciser.
fn disk(folder: &Path) {
    let content = folder.join("content");
    fs::create_dir_all(content.join("extlinux")).unwrap();
    fs::copy(
        hypervisor().with_file_name("exerciser"),
        content.join("exerciser"),
    )
    .unwrap();
    let menu =
        "default a\ntimeout 1\nlabel a\n  kernel /exerciser\n  append exercise=boot harts=2\n";
    fs::write(content.join("extlinux/extlinux.conf"), menu).unwrap();
    let file_system = folder.join("file-system");
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-t", "ext4", "-d"]).arg(&content);
    make.arg(&file_system).arg("8M");
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    assert!(make.env("PATH", path).status().unwrap().success());
    let file_system = fs::read(file_system).unwrap();
    let mut bytes = vec![0; PARTITION as usize * 512];
    // Bootable, of Linux's kind, with addresses of blocks alone.
    bytes[446] = 0x80;
    bytes[450] = 0x83;
    bytes[454..458].copy_from_slice(&PARTITION.to_le_bytes());
    let blocks = (file_system.len() / 512) as u32;
    bytes[458..462].copy_from_slice(&blocks.to_le_bytes());
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes.extend(file_system);
    fs::write(folder.join("disk"), bytes).unwrap();
}

#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn u_boot_starts_what_the_disk_holds() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    disk(folder.path());
    let system = "harts = 2\nmemory = \"1 GiB\"\ntime-limit = \"60 s\"\n[vm.own]\nvcpus = 2\nmemory = \"256 MiB\"\nshare = 1\n\
                  firmware = \"image:u-boot\"\ndisks = [{ file = \"disk\" }]\n";
    let path = folder.path().join("system.toml");
    fs::write(&path, system).unwrap();
    let mut command = run_command("machine", path.to_str().unwrap());
    let output = command.arg("--without-native").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for told in [
        "Found /extlinux/extlinux.conf",
        "Starting kernel",
        "PASS boot",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

/// systemd-boot on the guest's disk starts a stock kernel, and U-Boot keeps EFI's variables on the disk.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn u_boot_starts_an_efi_boot_manager() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let cache = system::cache::Cache::from_environment().unwrap();
    runner::images::ensure(&cache, &["efi/disk"], &guest_images::Progress::new()).unwrap();
    let disk = folder.path().join("disk");
    fs::copy(cache.built("efi/disk").unwrap(), &disk).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/firmware.toml");
    let mut command = run_command("machine", example.to_str().unwrap());
    let own = format!("vm.own.disks=[{{ file = {disk:?}, persistent = true }}]");
    let output = command
        .args(["--without-native", "--set", &own])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for told in [
        "Debian with a shell",
        "EFI stub: Booting Linux Kernel",
        "efi: EFI v",
        "partita-guest end ok=yes",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    // The name of an entry of FAT, without its point.
    let bytes = fs::read(&disk).unwrap();
    assert!(bytes.windows(11).any(|name| name == b"UBOOTEFIVAR"));
}
