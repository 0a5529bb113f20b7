//! What is composed is what the hypervisor reads.

use super::*;
use crate::Document;
use abi::cpio::Archive;
use abi::system::{
    Allocation, Costs, Hidden, Parameters, PauseLoops, Slot, SystemDescription, VmId,
};
use std::fs;
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
    "#;
    let document = Document::new(&folder.join("system.toml"), String::from(text), &[]).unwrap();
    System::read(&document).unwrap()
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

    assert_eq!(read.time_slice_us, None);
    assert_eq!(read.parameters, Parameters::default());
    assert_eq!((read.spin, read.wait), (system.spin, system.wait));
    assert_eq!(read.console_focus, Some(VmId(1)));
    let [one, two] = &read.vms[..] else {
        panic!("{} VMs", read.vms.len())
    };
    assert_eq!(
        (one.name.as_str(), one.vcpus, one.memory),
        ("one", 2, 64 << 20)
    );
    assert_eq!(one.allocation, Allocation::Shared { share: 30 });
    assert_eq!(
        (one.bootargs, one.autostart, two.autostart),
        ("quiet", true, false)
    );
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

#[test]
fn the_hypervisor_reads_the_parameters_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut system = system(folder.path());
    let slots = slots::Assignment::of(&system);
    let cache = Cache::new(folder.path().join("cache"));
    let all = Parameters {
        affinity: Some(0),
        self_wait_budget: Some(3),
        reservation_limit_us: Some(250_000),
        round: Some(1024),
        relaxed_terms: Some(0),
        pause_loops: PauseLoops {
            gap: Some(64),
            window: Some(0),
            window_most: Some(u32::MAX),
        },
        costs: Costs {
            host_interrupt: Some(1),
            futile_pass: Some(20),
            dispatch: Some(300),
            mode_change: Some(4000),
        },
    };
    let one = Parameters {
        round: Some(2),
        ..Parameters::default()
    };
    system.vms[0].pause_loops.window = Some(1000);
    system.vms[0].hidden = Hidden::from_names("zawrs zbb").unwrap();
    for parameters in [all, one] {
        system.parameters = parameters;
        let image = compose(&system, &slots, &cache, None).unwrap();
        let archive = Archive::new(&image);
        let description = archive.find(abi::system::FILE_NAME).unwrap().unwrap();
        let read = SystemDescription::parse(description).unwrap();
        assert_eq!(read.parameters, parameters);
        // A VM's own come before the system's.
        let windows: Vec<_> = read.vms.iter().map(|vm| vm.pause_loops.window).collect();
        assert_eq!(windows, [Some(1000), parameters.pause_loops.window]);
        let hidden: Vec<_> = read
            .vms
            .iter()
            .map(|vm| vm.hidden.names().count())
            .collect();
        assert_eq!(hidden, [2, 0]);
    }
}

#[test]
fn each_device_has_a_slot_of_its_own() {
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
fn the_hypervisor_reads_the_switches_and_who_has_ports() {
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
