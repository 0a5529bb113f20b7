//! The hypervisor's reader finds in an image what was composed into it.

use super::*;
use crate::{Document, Origin};
use abi::cpio::Archive;
use abi::keys::{self, Scope, Settings, Takes};
use abi::system::{Allocation, Hidden, Placement, Slot, SystemDescription, VmId};
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::Path;

/// A system of two VMs with files of its own in `folder`.
fn system(folder: &Path) -> System {
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(folder.join("kernel"), b"first kernel").unwrap();
    fs::write(folder.join("other/kernel"), b"second kernel").unwrap();
    fs::write(folder.join("initrd"), b"initrd").unwrap();
    fs::write(folder.join("disk"), b"disk").unwrap();
    let text = r#"
        harts = 4
        memory = "1 GiB"
        [vm.one]
        vcpus = 2
        memory = "64 MiB"
        share = 30
        kernel = "kernel"
        initrd = "initrd"
        command-line = "quiet"
        disks = [{ file = "disk" }, { file = "disk", slot = 0 }]
        network = ["lan"]
        [vm.two]
        vcpus = 1
        memory = "64 MiB"
        dedicated-harts = [3]
        kernel = "other/kernel"
        initrd = "initrd"
        rng = true
        autostart = false
        devices = ["/soc/rtc@101000", "/soc/gpio@4000"]
    "#;
    let document = Document::new(&folder.join("system.toml"), String::from(text), &[]).unwrap();
    System::read(&document).unwrap()
}

#[test]
fn packed_kernels_are_flat_in_images() {
    let folder = tempfile::tempdir().unwrap();
    let system = system(folder.path());
    let packed = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    fs::write(folder.path().join("kernel"), packed("flat kernel")).unwrap();
    fs::write(folder.path().join("initrd"), packed("initrd")).unwrap();
    let slots = slots::Assignment::of(&system);
    let cache = Cache::new(folder.path().join("cache"));
    let image = compose(&system, &slots, &cache, None).unwrap();
    let archive = Archive::new(&image);
    let files = archive.entries().map(Result::unwrap);
    let of = |name: &str| {
        let mut files = files.clone().filter(|file| file.name.ends_with(name));
        files.next().unwrap().data.to_vec()
    };
    assert_eq!(of("1/initrd"), packed("initrd"));
    assert_eq!(of("0/kernel"), b"flat kernel");
}

#[test]
fn the_hypervisor_reads_what_is_composed() {
    let folder = tempfile::tempdir().unwrap();
    let system = system(folder.path());
    let slots = slots::Assignment::of(&system);
    let cache = Cache::new(folder.path().join("cache"));
    let image = compose(&system, &slots, &cache, Some(&system.vms[1].name)).unwrap();

    let archive = Archive::new(&image);
    assert_eq!(archive.length().unwrap().next_multiple_of(4), image.len());
    let first = archive.entries().next().unwrap().unwrap();
    assert_eq!(first.name, abi::system::FILE_NAME);
    let read = SystemDescription::parse(first.data).unwrap();

    assert_eq!(read.settings, Settings::default());
    assert_eq!(read.console_focus, Some(VmId(1)));
    let [one, two] = &read.vms[..] else {
        panic!("{} VMs", read.vms.len())
    };
    let given = "/soc/rtc@101000 /soc/gpio@4000";
    assert_eq!((one.given, two.given), ("", given));
    assert_eq!(
        (one.name.as_str(), one.vcpus, one.memory),
        ("one", 2, 64 << 20)
    );
    assert_eq!(one.allocation, Allocation::Shared { share: 30 });
    assert_eq!(one.bootargs, "quiet");
    assert!(one.get(keys::AUTOSTART) && !two.get(keys::AUTOSTART));
    assert_eq!(two.allocation, system.vms[1].allocation.value);
    let file = |name| archive.find(name).unwrap();
    assert_eq!(file(one.kernel), Some(&b"first kernel"[..]));
    assert_eq!(file(two.kernel), Some(&b"second kernel"[..]));
    assert_eq!(file(one.initrd.unwrap()), Some(&b"initrd"[..]));
    assert_eq!(one.initrd, two.initrd);
    // The description, two kernels and an initrd that both share; what else there is only aligns these.
    let files = archive.entries().map(Result::unwrap);
    assert_eq!(files.filter(|entry| entry.name != "pad").count(), 4);
}

/// The hypervisor's description of a system.
fn described(system: &System, folder: &Path) -> Vec<u8> {
    let slots = slots::Assignment::of(system);
    let cache = Cache::new(folder.join("cache"));
    let image = compose(system, &slots, &cache, None).unwrap();
    let archive = Archive::new(&image);
    archive
        .find(abi::system::FILE_NAME)
        .unwrap()
        .unwrap()
        .to_vec()
}

#[test]
fn every_given_property_reaches_the_hypervisor() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::Set(String::new());
    let composed = system(folder.path());
    for (place, row) in keys::ROWS
        .iter()
        .enumerate()
        .filter(|(_, row)| row.property)
    {
        let (low, high) = match row.takes {
            Takes::Number { min, max, .. } => (min.into(), max.into()),
            Takes::Time { min, max } => (min, max),
            Takes::Word(words) => (0, words.len() as u64 - 1),
            _ => (0, 1),
        };
        for value in [low, high] {
            let mut system = composed.clone();
            let of_vm = |scope| matches!(scope, Scope::Vm | Scope::VmExperiment);
            let (of_vm, of_system) = (
                row.scopes.iter().any(|scope| of_vm(*scope)),
                row.scopes.iter().any(|scope| !of_vm(*scope)),
            );
            if of_system {
                system.settings.set(place, value, origin.clone());
            }
            if of_vm {
                let settings = &mut system.vms[0].settings;
                settings.set(place, value, origin.clone());
                // A balloon needs single pages.
                let paged = Placement::ALL
                    .iter()
                    .position(|word| *word == Placement::Paged);
                if place == keys::BALLOON.place() {
                    settings.set(
                        keys::PLACEMENT.place(),
                        paged.unwrap() as u64,
                        origin.clone(),
                    );
                }
            }
            let blob = described(&system, folder.path());
            let read = SystemDescription::parse(&blob).unwrap();
            let own = read.vms[0].settings.number(place);
            assert_eq!(
                read.settings.number(place),
                of_system.then_some(value),
                "{}",
                row.name
            );
            assert_eq!(own, of_vm.then_some(value), "{}", row.name);
        }
    }
}

#[test]
fn hidden_extensions_reach_the_hypervisor() {
    let folder = tempfile::tempdir().unwrap();
    let mut system = system(folder.path());
    system.vms[0].hidden = Hidden::from_names("zawrs zbb").unwrap();
    let blob = described(&system, folder.path());
    let read = SystemDescription::parse(&blob).unwrap();
    let hidden = read.vms.iter().map(|vm| vm.hidden.names().count());
    assert_eq!(hidden.collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn devices_have_distinct_slots() {
    let folder = tempfile::tempdir().unwrap();
    let system = system(folder.path());
    let slots = slots::Assignment::of(&system);
    let one = slots.vm(0);
    assert!(one.contains(&(Slot(0), slots::Device::Disk(1))), "{one:?}");
    let mut all: Vec<_> = one
        .iter()
        .chain(slots.vm(1))
        .map(|(slot, _)| *slot)
        .collect();
    let count = system.vms.iter().map(crate::verify::devices).sum::<usize>();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(one.is_sorted_by_key(|(slot, _)| *slot));
}

#[test]
fn a_file_that_vanishes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let system = system(folder.path());
    fs::remove_file(folder.path().join("other/kernel")).unwrap();
    let cache = Cache::new(folder.path());
    let error = compose(&system, &slots::Assignment::of(&system), &cache, None).unwrap_err();
    assert!(error.to_string().contains("other/kernel"), "{error}");
}

#[test]
fn switches_and_ports_reach_the_hypervisor() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernel"), b"kernel").unwrap();
    let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 30\nkernel = \"kernel\"";
    let text = format!(
        "harts = 1\nmemory = \"1 GiB\"\n[switch.lan]\n[switch.wan]\nuplink = true\n\
         [vm.one]\n{vm}\nnetwork = [\"wan\", \"other\", \"lan\"]\n[vm.two]\n{vm}\nnetwork = [\"wan\"]\n"
    );
    let document = Document::new(&folder.path().join("system.toml"), text, &[]).unwrap();
    let system = System::read(&document).unwrap();
    let slots = slots::Assignment::of(&system);
    let cache = Cache::new(folder.path().join("cache"));
    let image = compose(&system, &slots, &cache, None).unwrap();
    let archive = Archive::new(&image);
    let first = archive.entries().next().unwrap().unwrap();
    let read = SystemDescription::parse(first.data).unwrap();
    let uplinks: Vec<_> = read.switches.iter().map(|switch| switch.uplink).collect();
    assert_eq!(uplinks, [None, Some(slots.uplinks()[0])]);
    let ports: Vec<_> = read.vms.iter().map(|vm| vm.ports.to_vec()).collect();
    assert_eq!(ports, [vec![1, 0], vec![1]]);
    assert_eq!(read.vms[0].devices.len(), 1);
}
