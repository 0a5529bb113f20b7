//! Guests whose work is vector code.

use super::run_with;

/// Two guests whose vector registers move with their vCPUs at every dispatch agree with scalar code, and so does one without vectors.
#[test]
#[ignore = "soak: minutes of vector code, and an image that is built for it; make soak runs it"]
fn soak_vector_code_agrees_with_scalar() {
    check(&run_with(
        "machine",
        "rva23.toml",
        &[],
        &["--profile", "k3-class"],
    ));
}

/// The same on QEMU's harts, with registers of 128 bits and of 256.
#[test]
#[ignore = "soak: minutes of QEMU, and an image that is built for it; make soak runs it"]
fn soak_vector_code_agrees_on_qemu() {
    let once = ["one", "two", "scalar"].map(|vm| {
        format!("vm.{vm}.command-line=\"console=ttyS0 quiet partita.rounds=1 partita.processes=2\"")
    });
    let changes: Vec<&str> = once.iter().map(String::as_str).collect();
    for length in ["vlen=128", "vlen=256"] {
        let options = ["--qemu-cpu", length, "--timeout", "1200"];
        check(&run_with("qemu", "rva23.toml", &changes, &options));
    }
}

fn check(report: &serde_json::Value) {
    let vms = report["vms"].as_array().unwrap();
    assert_eq!(vms.len(), 3, "{report}");
    let events = |name: &str| report["measures"][format!("events.{name}")].as_f64();
    assert!(events("migration") > Some(100.0), "{report}");
}
