//! The custom extensions of docs/reference/extensions.md, switched on and off, and the performance counters,
//! as bare-metal programs of `conformance/` find them.

mod programs;

use std::path::Path;

use machine::device::Script;
use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};

/// Runs a program in the functional mode; gives how it ended and what it printed.
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
    let heard = console.output.clone();
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
fn extensions_do_as_described() {
    let program = programs::build().join("extensions");
    for harts in [1, 2] {
        let (stop, report) = run(&program, harts, &profile(true));
        assert_eq!(stop, Stop::PowerOff, "{harts} harts: {report}");
        assert!(
            report.contains("extensions: 17 tests, 0 failed"),
            "{report}"
        );
        // The program for machines without them finds that they are there.
        let (stop, _) = run(&programs::build().join("plain"), harts, &profile(true));
        assert_ne!(stop, Stop::PowerOff);
    }
}

#[test]
fn hardware_purges_follow_their_description() {
    let program = programs::build().join("fences");
    let mut profile = profile(true);
    profile.extensions.purge_check = true;
    profile.extensions.broadcast_fence = true;
    for harts in [1, 2] {
        let (stop, report) = run(&program, harts, &profile);
        assert_eq!(stop, Stop::PowerOff, "{harts} harts: {report}");
        assert!(report.contains("fences: 5 tests, 0 failed"), "{report}");
    }
}

#[test]
fn without_them_their_encodings_are_illegal() {
    let (stop, report) = run(&programs::build().join("plain"), 1, &profile(false));
    assert_eq!(stop, Stop::PowerOff, "{report}");
    assert!(report.contains("plain: 2 tests, 0 failed"), "{report}");
}

#[test]
fn counters_count_what_the_events_say() {
    let (stop, report) = run(&programs::build().join("counters"), 1, &profile(false));
    assert_eq!(stop, Stop::PowerOff, "{report}");
    assert!(report.contains("counters: 16 tests, 0 failed"), "{report}");
}
