//! Guests whose work is vector code.

use super::run_with;

/// Two guests whose vector registers move with their vCPUs at every dispatch agree with scalar code, and so does one without vectors.
#[test]
#[ignore = "soak: minutes of vector code, and an image that is built for it; make soak runs it"]
fn soak_vector_code_agrees_with_scalar() {
    let report = run_with("machine", "rva23.toml", &[], &["--profile", "k3-class"]);
    let vms = report["vms"].as_array().unwrap();
    assert_eq!(vms.len(), 3, "{report}");
    let events = |name: &str| report["measures"][format!("events.{name}")].as_f64();
    assert!(events("migration") > Some(100.0), "{report}");
}
