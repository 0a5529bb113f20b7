//! Guests that begin with a firmware of their own, which reads the guest's disk.

use super::{hypervisor, run_command};
use crate::common::room;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Beginning of the disk's one partition, in blocks of 512 bytes.
const PARTITION: u32 = 2048;

/// A disk with a partition table (UEFI 2.10, §5.2.1) and one file system, whose boot menu starts the exerciser.
pub(super) fn disk(folder: &Path) {
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

/// Register numbers (RISC-V calling convention).
const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;
const A6: u32 = 16;
const A7: u32 = 17;

/// A program that writes a line by SBI's debug console and powers off (SBI 2.0, chapters 12 and 10).
fn program(line: &str) -> Vec<u8> {
    let environment_call = 0x73;
    let add = |rd: u32, rs: u32, value: u32| value << 20 | rs << 15 | rd << 7 | 0x13;
    let load_upper = |rd: u32, value: u32| value & 0xffff_f000 | rd << 7 | 0x37;
    let code = [
        // auipc a1, 0
        A1 << 7 | 0x17,
        add(A1, A1, 4 * 14),
        add(A0, 0, line.len() as u32),
        add(A2, 0, 0),
        load_upper(A7, 0x4442_434e),
        add(A7, A7, 0x34e),
        add(A6, 0, 0),
        environment_call,
        load_upper(A7, 0x5352_5354),
        add(A7, A7, 0x354),
        add(A0, 0, 0),
        add(A1, 0, 0),
        environment_call,
        // jal zero, 0
        0x6f,
    ];
    let mut bytes: Vec<u8> = code.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend(line.as_bytes());
    bytes
}

/// An ELF file with one segment that is linked for this address (ELF-64 Object File Format).
fn elf(address: u64, program: &[u8]) -> Vec<u8> {
    let size = program.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // An executable for RISC-V, of version 1.
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    for number in [address, 64, 0] {
        file.extend(number.to_le_bytes());
    }
    for half in [0_u16, 0, 64, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // The segment is loaded, read, written and executed.
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    for number in [120, address, address, size, size, 4096] {
        file.extend(number.to_le_bytes());
    }
    file.extend(program);
    file
}

#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn flat_and_elf_programs_run() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    put("flat", program("flat at its address\n"));
    put("elf", elf(0x8123_4000, &program("elf at its address\n")));
    let vm = |name: &str, keys: &str| {
        format!("[vm.{name}]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n{keys}\n")
    };
    let system = String::from("harts = 1\nmemory = \"1 GiB\"\ntime-limit = \"10 s\"\n")
        + &vm("one", "firmware = \"flat\"")
        + &vm("two", "firmware = \"elf\"\nplacement = \"paged\"")
        + &vm("three", "kernel = \"elf\"\nplacement = \"resident\"");
    let path = folder.path().join("system.toml");
    fs::write(&path, system).unwrap();
    let mut command = run_command("machine", path.to_str().unwrap());
    let output = command.arg("--without-native").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for told in [
        "[one] flat at its address",
        "[two] elf at its address",
        "[three] elf at its address",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}
