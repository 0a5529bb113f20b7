//! A queue for each hart: vCPUs go from one to another while their VMs contend for locks.

use super::common::hypervisor;
use super::exercise_with;

/// The longest wait for a lock that is allowed. A vCPU whose VM has overdrawn its account waits for some rounds of 10 ms.
const LONGEST_MS: u64 = 60;

/// Four VMs of four vCPUs on eight harts, each with one lock that is always taken.
fn system(duration_ms: u32) -> String {
    let exerciser = hypervisor().with_file_name("exerciser");
    let head =
        "harts = 8\nmemory = \"2 GiB\"\nguest-interrupt-files = 7\nrun-queue = \"per-hart\"\n";
    let vm = |name: char| {
        format!(
            "[vm.{name}]\nvcpus = 4\nmemory = \"32 MiB\"\nshare = 1\nkernel = \"{}\"\n\
             command-line = \"exercise=work duration-ms={duration_ms} lock=ticket spin=wrs compute=2000 locks=4 hold=800 lock-count=1\"\n",
            exerciser.display()
        )
    };
    ('a'..='d').fold(String::from(head), |system, name| system + &vm(name))
}

/// A hart that tells itself while it asks the scheduler asks again. Else it would count as told, and nobody would tell it of a vCPU that comes to its queue.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn vcpus_moved_between_queues_run_on() {
    moved_vcpus_run_on("rslp", 75);
}

#[test]
#[ignore = "soak: minutes of eight harts; make soak runs it"]
fn soak_moved_vcpus_run_on() {
    for spin in ["rslp", "wapd"] {
        moved_vcpus_run_on(spin, 150);
    }
}

fn moved_vcpus_run_on(spin: &str, duration_ms: u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("system.toml");
    std::fs::write(&path, system(duration_ms)).unwrap();
    let path = path.to_str().unwrap();
    let changes = [format!("spin={spin}")];
    let told = exercise_with("machine", path, 4, &changes, &["--profile", "k3-class"]);
    let waits = told
        .lines()
        .filter(|line| line.contains("work lock-wait-ns"));
    let most = waits.filter_map(|line| line.split_once(" max="));
    let most: Vec<u64> = most.map(|(_, most)| most.trim().parse().unwrap()).collect();
    assert_eq!(most.len(), 4, "{spin}: {told}");
    assert!(
        most.iter().all(|&most| most < LONGEST_MS * 1_000_000),
        "{spin}: {most:?} ns for a lock"
    );
}
