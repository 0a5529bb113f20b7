//! Lacks of a computer, as the shell sees them.

use std::fs;
use std::process::Command;

#[test]
fn doctor_names_lacks_with_their_remedy() {
    let folder = tempfile::tempdir().unwrap();
    // The firmware that the variable names is not there.
    let firmware = folder.path().join("firmware");
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(["doctor", "--json", "found.json"])
        .current_dir(folder.path())
        .env("PARTITA_CACHE", folder.path().join("cache"))
        .env("PARTITA_FIRMWARE", &firmware)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{errors}");
    assert!(errors.contains("firmware"), "{errors}");
    let text = fs::read_to_string(folder.path().join("found.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |name: &str| {
        let mut all = found.as_array().unwrap().iter();
        all.find(|one| one["name"] == name).unwrap()
    };
    assert_eq!(of("firmware")["found"], false);
    assert_eq!(of("cache")["found"], true);
    assert_eq!(of("images")["found"], false);
    let detail = of("firmware")["detail"].as_str().unwrap();
    assert!(detail.contains(&firmware.display().to_string()), "{detail}");
}
