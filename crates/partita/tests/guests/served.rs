//! A guest whose disk another guest serves.

use super::run;

/// Every VM powered off, its kernel without complaints (or the run would have failed).
fn all_powered_off(report: &serde_json::Value, vms: usize) {
    let all = report["vms"].as_array().unwrap();
    assert_eq!(all.len(), vms);
    assert!(all.iter().all(|vm| vm["reason"] == "power-off"), "{report}");
}

/// Two stock Debian guests: the one writes to a disk that the other serves, reads back and compares.
#[test]
#[ignore = "needs the hypervisor, partita-serve and the images; make test runs it"]
fn a_guest_serves_its_disk_to_another() {
    served("machine");
}

#[test]
#[ignore = "soak: a minute of QEMU; make soak runs it"]
fn soak_guests_serve_disks_on_qemu() {
    served("qemu");
}

fn served(on: &str) {
    let report = run(on, "served.toml", &[]);
    all_powered_off(&report, 2);
    let web = &report["vms"].as_array().unwrap()[1];
    let requests = web["work"].as_array().unwrap().iter();
    let requests = requests.filter_map(|work| work["events"]["request-general"].as_u64());
    assert!(requests.sum::<u64>() > 500, "{web}");
}

/// The serving guest reboots three times in the midst of the other's work, which loses nothing.
#[test]
#[ignore = "needs the hypervisor, partita-serve and the images; make test runs it"]
fn rebooting_servers_lose_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    std::fs::write(&count, vec![0; 1 << 20]).unwrap();
    let disks =
        format!("vm.storage.disks=[{{ file = \"image:debian/disk\" }}, {{ file = {count:?} }}]");
    let report = run(
        "machine",
        "served.toml",
        &[
            "vm.storage.vcpus=2",
            "vm.storage.command-line=\"console=ttyS0 quiet partita.reboot=2 partita.idle=4\"",
            &disks,
            "vm.web.placement=\"paged\"",
            "vm.web.command-line=\"console=ttyS0 quiet partita.workload=fio partita.seconds=12\"",
        ],
    );
    all_powered_off(&report, 2);
    let vms = report["vms"].as_array().unwrap();
    assert_eq!(vms[0]["restarts"].as_u64(), Some(3), "{report}");
}

/// A serving guest that lies reaches nothing that it was not granted, and a neighbour's memory stays as it is.
#[test]
#[ignore = "needs the hypervisor, the exerciser, partita-serve and the images; make test runs it"]
fn lying_servers_reach_grants_alone() {
    let report = run(
        "machine",
        "served.toml",
        &[
            "vm.storage.vcpus=2",
            "vm.storage.command-line=\"console=ttyS0 quiet partita.hostile=1\"",
            "vm.web.initrd=\"image:serve/initrd\"",
            "vm.web.command-line=\"console=ttyS0 quiet partita.noise=20\"",
            "vm.victim.vcpus=2",
            "vm.victim.memory=\"64 MiB\"",
            "vm.victim.share=50",
            "vm.victim.kernel=\"image:exerciser\"",
            "vm.victim.command-line=\"exercise=heartbeat duration-ms=20000\"",
        ],
    );
    all_powered_off(&report, 3);
    // The program says itself whether something was reached, and then the run would have failed.
    let faults = report["measures"]["exits-per-second.guest-page-fault"].as_f64();
    assert!(faults > Some(1.0), "{report}");
}
