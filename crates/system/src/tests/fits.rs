//! VMs that do not fit: too many vCPUs, harts or devices, and disks that two VMs claim.

use super::*;

/// A system without mistakes must not fail in the hypervisor: both use one list of limits.
#[test]
fn vcpus_beyond_the_limit_are_refused() {
    let vm = |number: u32| {
        format!(
            "[vm.v{number}]\nvcpus = 16\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"image:debian/kernel\"\n"
        )
    };
    let system = |vms| {
        let tables: String = (0..vms).map(vm).collect();
        format!("harts = 4\nmemory = \"2 GiB\"\n{tables}")
    };
    assert_eq!(read(&system(4), &[]).unwrap().vms.len(), 4);
    mistake(&system(6), &[], &["vm.v4.vcpus", "80 vCPUs", "64 at most"]);
}

#[test]
fn gang_needs_one_run_queue() {
    read(GOOD, &["spin=gang"]).unwrap();
    read(GOOD, &["spin=wapd", "run-queue=per-hart"]).unwrap();
    mistake(
        GOOD,
        &["spin=gang", "run-queue=per-hart"],
        &["spin=gang", "run-queue is per-hart", "\"global\""],
    );
}

#[test]
fn migration_that_cannot_be_is_found() {
    read(GOOD, &["experiment.migration=always"]).unwrap();
    mistake(
        GOOD,
        &["experiment.migration=always", "scheduling=pinned"],
        &["experiment.migration=always", "scheduling is pinned"],
    );
    mistake(
        GOOD,
        &["experiment.migration=always", "run-queue=per-hart"],
        &["experiment.migration=always", "run-queue is per-hart"],
    );
    mistake(
        GOOD,
        &["experiment.migration=always", "vm.web.scheduling=pinned"],
        &["experiment.migration=always", "scheduling is pinned"],
    );
    mistake(
        GOOD,
        &[
            "harts=3",
            "vm.control.dedicated-harts=[1, 2]",
            "experiment.migration=always",
        ],
        &[
            "experiment.migration=always",
            "1 of the harts is shared",
            "at least two harts by one queue",
        ],
    );
}

#[test]
fn what_does_not_fit_is_found() {
    let line = format!(
        "a.toml:{}",
        1 + GOOD[..GOOD.find("dedicated").unwrap()].lines().count()
    );
    let text = GOOD.replace("[2, 3]", "[2, 9]");
    mistake(
        &text,
        &[],
        &[
            &line,
            "vm.control.dedicated-harts = [2, 9]",
            "hart 9",
            "0 to 3",
        ],
    );
    mistake(
        GOOD,
        &["vm.control.dedicated-harts=[3]"],
        &["1 harts for 2 vCPUs"],
    );
    mistake(
        GOOD,
        &["harts=2", "vm.control.dedicated-harts=[0, 1]"],
        &["every hart is dedicated"],
    );
    mistake(
        GOOD,
        &["tlb-purge=keep"],
        &["tlb-purge=keep", "go to other harts", "one-shot"],
    );
    read(GOOD, &["tlb-purge=keep", "scheduling=pinned"]).unwrap();
    read(GOOD, &["tlb-purge=one-shot"]).unwrap();
    read(
        GOOD,
        &[
            "experiment.purge=new-vmid",
            "experiment.remote-fences=any-vcpu",
        ],
    )
    .unwrap();
    // A VM says it otherwise than its system.
    let fixed = "vm.web.scheduling=pinned";
    read(GOOD, &["tlb-purge=keep", fixed]).unwrap();
    let floats = "vm.web.scheduling=floating";
    mistake(
        GOOD,
        &["tlb-purge=keep", "scheduling=pinned", floats],
        &[floats, "go to other harts", "one-shot"],
    );
    mistake(
        GOOD,
        &["vm.control.scheduling=pinned"],
        &["vm.control.scheduling=pinned", "harts of its own", "leave"],
    );
    mistake(
        GOOD,
        &["memory=768 MiB"],
        &["memory = 768 MiB", "768 MiB do not fit", "for 512 MiB"],
    );
    let cards = "vm.control.network=[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    mistake(GOOD, &[cards], &["9 devices", "8 slots"]);
    let twice = "vm.control.disks=[{ file = \"image:debian/disk\", slot = 1 }]";
    let text = GOOD.replace(
        "{ file = \"image:debian/disk\" }",
        "{ file = \"image:debian/disk\", slot = 1 }",
    );
    mistake(
        &text,
        &[twice],
        &["vm.control.disks[0].slot = 1", "vm.web.disks[0]"],
    );
}

#[test]
fn persistent_disks_belong_to_one_vm() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().to_str().unwrap();
    let kept = format!("vm.web.disks=[{{ file = {name:?}, persistent = true }}]");
    let other = format!("vm.control.disks=[{{ file = {name:?} }}]");
    read(GOOD, &[&kept]).unwrap();
    mistake(
        GOOD,
        &[&kept, &other],
        &["vm.control.disks[0].file", "vm.web.disks[0]"],
    );
    mistake(
        GOOD,
        &["vm.web.disks=[{ file = \"image:debian/disk\", persistent = true }]"],
        &["vm.web.disks[0].file", "cache"],
    );
}
