//! The custom extensions of docs/extensions.md, switched on and off, and the performance counters,
//! as bare-metal programs of `conformance/` find them.

use std::path::{Path, PathBuf};
use std::process::Command;

use machine::device::Script;
use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};

/// Builds the programs and gives their folder.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--target", "riscv64gc-unknown-none-elf"])
        .arg("--manifest-path")
        .arg(root.join("conformance/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the programs build");
    target.join("riscv64gc-unknown-none-elf/debug")
}

/// Runs a program in the fast gear; gives how it ended and what it printed.
fn run(program: &Path, harts: u32, profile: &Profile) -> (Stop, String) {
    let mut config = Config::default();
    config.use_profile(profile);
    config.board.harts = harts;
    config.board.memory = 64 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine
        .load_bare(&std::fs::read(program).expect("a program"))
        .expect("a program");
    let console = Script::default();
    let heard = console.heard.clone();
    let devices = &mut machine.system_mut().devices;
    devices.attach_console(Box::new(console));
    let stop = machine.run(Limit {
        instructions: Some(200_000_000),
        cycles: None,
    });
    let heard = heard.lock().expect("one thread");
    (stop, String::from_utf8_lossy(&heard).into_owned())
}

fn profile(extensions: bool) -> Profile {
    let mut profile = Profile::default();
    profile.extensions.pending_test = extensions;
    profile.extensions.purge_mask = extensions;
    profile.extensions.pause_loop_exit = extensions;
    profile
}

#[test]
fn the_extensions_do_what_they_are_said_to_do() {
    let program = build().join("extensions");
    for harts in [1, 2] {
        let (stop, report) = run(&program, harts, &profile(true));
        assert_eq!(stop, Stop::PowerOff, "{harts} harts: {report}");
        assert!(
            report.contains("extensions: 16 tests, 0 failed"),
            "{report}"
        );
        // The program for machines without them finds that they are there.
        let (stop, _) = run(&build().join("plain"), harts, &profile(true));
        assert_ne!(stop, Stop::PowerOff);
    }
}

#[test]
fn without_them_their_encodings_are_illegal() {
    let (stop, report) = run(&build().join("plain"), 1, &profile(false));
    assert_eq!(stop, Stop::PowerOff, "{report}");
    assert!(report.contains("plain: 2 tests, 0 failed"), "{report}");
}

#[test]
fn counters_count_what_the_events_say() {
    let (stop, report) = run(&build().join("counters"), 1, &profile(false));
    assert_eq!(stop, Stop::PowerOff, "{report}");
    assert!(report.contains("counters: 16 tests, 0 failed"), "{report}");
}
