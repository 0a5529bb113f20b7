//! Disks in other forms than raw.

use super::firmware::disk;
use super::run_command;
use crate::common::room;
use std::fs;
use std::path::Path;
use std::process::Command;

/// `qemu-img` in a folder. False if it is not installed.
fn qemu_img(folder: &Path, arguments: &str) -> bool {
    let mut command = Command::new("qemu-img");
    command.args(arguments.split(' ')).current_dir(folder);
    match command.output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments}: {errors}");
            true
        }
        Err(_) => false,
    }
}

/// Output of a run of a guest that boots from a disk with these keys.
fn run(folder: &Path, keys: &str) -> (bool, String) {
    let system = format!(
        "harts = 2\nmemory = \"1 GiB\"\ntime-limit = \"60 s\"\n[vm.own]\nvcpus = 2\nmemory = \"256 MiB\"\nshare = 1\n\
         firmware = \"image:u-boot\"\ndisks = [{{ {keys} }}]\n"
    );
    let path = folder.join("system.toml");
    fs::write(&path, system).unwrap();
    let mut command = run_command("machine", path.to_str().unwrap());
    let output = command.arg("--without-native").output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), text.concat())
}

/// A snapshot of a qcow2 image over a raw backing file has what the guest boots; the image's present state has nothing.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn guest_boots_a_snapshot_of_qcow2() {
    let _room = room("machine");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    disk(folder);
    if !qemu_img(folder, "create -q -f qcow2 -b disk -F raw top.qcow2") {
        println!("qemu-img is not installed (package qemu-utils): not tested");
        return;
    }
    qemu_img(folder, "snapshot -c before top.qcow2");
    // A disk of zeros in the place of the backing file's content.
    let mut erase = Command::new("qemu-io");
    erase.args(["-c", "write -z 0 8M", "top.qcow2"]);
    assert!(erase.current_dir(folder).output().unwrap().status.success());
    let (ended, text) = run(folder, "file = \"top.qcow2\", snapshot = \"before\"");
    assert!(ended && text.contains("PASS boot"), "{text}");
    assert!(text.contains("making a raw disk of top.qcow2"), "{text}");
    let (ended, text) = run(folder, "file = \"top.qcow2\", snapshot = \"before\"");
    assert!(ended && !text.contains("making a raw disk"), "{text}");
    let (ended, text) = run(folder, "file = \"top.qcow2\", snapshot = \"after\"");
    assert!(!ended && text.contains("name one of before"), "{text}");
    // Other forms of the same disk.
    for (form, file) in [("vmdk", "a.vmdk"), ("vhdx", "a.vhdx")] {
        qemu_img(folder, &format!("convert -O {form} disk {file}"));
        let (ended, text) = run(folder, &format!("file = \"{file}\""));
        assert!(ended && text.contains("PASS boot"), "{form}: {text}");
    }
}
