//! Guests of Partita run under KVM on the same machine too, so that both can be compared.

use crate::run;

/// Work with reads and a lock, for a second.
const WORK: &str = "exercise=work lock=swap duration-ms=1000 terminals=4 steps=1 compute=1000 reads=1 sectors=8 locks=1 hold=20 lock-count=4";

#[test]
#[ignore = "soak: boots Debian with KVM and a QEMU for each VM on the machine; make soak runs it"]
fn soak_exercisers_work_under_kvm() {
    let words = ["one", "two"].map(|vm| format!("vm.{vm}.command-line=\"{WORK}\""));
    let disks =
        ["one", "two"].map(|vm| format!("vm.{vm}.disks=[{{ file = \"image:debian/disk\" }}]"));
    let changes: Vec<&str> = words.iter().chain(&disks).map(String::as_str).collect();
    let report = super::run_with("machine", "exercises.toml", &changes, &["--kvm"]);
    for vm in ["one", "two"] {
        let ends = report["measures"][format!("throughput.{vm}")]
            .as_f64()
            .unwrap();
        assert!(ends > 0.0, "{vm}: {ends}");
    }
    // Nothing of ours is below them.
    let books = |report: &serde_json::Value| report["harts"].as_array().map(Vec::len);
    assert_eq!(books(&report), Some(0), "{report}");
    let ours = run("machine", "exercises.toml", &changes);
    assert_eq!(books(&ours), Some(2));
}
