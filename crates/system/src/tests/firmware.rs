//! VMs that boot a firmware.

use super::*;
use crate::cache::U_BOOT;
use abi::system::{Io, Placement};

const SYSTEM: &str =
    "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n";

fn with(lines: &str) -> String {
    format!("{SYSTEM}{lines}\n")
}

#[test]
fn firmware_reaches_its_disks_without_being_told() {
    let system = read(&with("firmware = \"image:u-boot\""), &[]).unwrap();
    let vm = &system.vms[0];
    assert_eq!(vm.boot, BootForm::Firmware);
    assert_eq!(vm.kernel.value, FileName::Built(String::from(U_BOOT)));
    assert_eq!(vm.get(keys::PLACEMENT), Placement::Resident);
    assert_eq!(vm.get(keys::IO), Io::General);
    // What the VM says wins.
    let system = with("firmware = \"image:u-boot\"\nplacement = \"paged\"\nio = \"fast\"");
    let system = read(&system, &[]).unwrap();
    assert_eq!(system.vms[0].get(keys::PLACEMENT), Placement::Paged);
    assert_eq!(system.vms[0].get(keys::IO), Io::Fast);
    // A kernel's VM stays as it was.
    let system = read(&with("kernel = \"image:debian/kernel\""), &[]).unwrap();
    assert_eq!(system.vms[0].boot, BootForm::Kernel);
    assert_eq!(system.vms[0].get(keys::PLACEMENT), Placement::Real);
}

#[test]
fn firmwares_that_cannot_be_are_named() {
    for (lines, told) in [
        ("firmware = \"image:edk2\"", "a VM has no flash"),
        ("firmware = \"image:no-such\"", "builds no such file"),
        (
            "firmware = \"image:u-boot\"\nkernel = \"image:debian/kernel\"",
            "also has a kernel",
        ),
        (
            "firmware = \"image:u-boot\"\ninitrd = \"image:debian/initrd\"",
            "vm.a.initrd = \"image:debian/initrd\": a firmware takes no initial RAM disk",
        ),
        ("", "neither a kernel nor a firmware"),
    ] {
        let found = mistakes(&with(lines), &[]);
        assert!(found[0].contains(told), "{lines}: {found:?}");
    }
}
