//! The micro-benchmarks find the costs of the machine that they run on.

mod programs;

use machine::device::Script;
use machine::timing::{Measurements, Profile};
use machine::{Config, Limit, Machine, Stop};

fn measured(profile: &Profile) -> Measurements {
    let mut config = Config::with_profile(profile);
    config.board.harts = 2;
    config.board.memory = 64 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    let program = std::fs::read(programs::build().join("measure")).expect("built");
    machine.load_bare(&program).expect("loads");
    let console = Script::default();
    let heard = console.heard.clone();
    let devices = &mut machine.system_mut().devices;
    devices.attach_console(Box::new(console));
    let stop = machine.run(Limit {
        instructions: Some(400_000_000),
        cycles: None,
    });
    let heard = heard.lock().expect("one thread");
    let text = String::from_utf8_lossy(&heard).into_owned();
    assert_eq!(stop, Stop::PowerOff, "{text}");
    println!("{text}");
    Measurements::parse(&text).expect("complete")
}

#[test]
fn the_profile_that_is_measured_is_the_profile_that_was_set() {
    let k3 = Profile::named("k3-class").expect("ships");
    let found = measured(&k3).found(&k3);
    let value = |key: &str| {
        let found = found.iter().find(|found| found.key == key);
        found
            .unwrap_or_else(|| panic!("{key} is found in {found:?}"))
            .value
    };
    let costs = k3.costs;
    let l2 = k3.l2.expect("a second level");
    let l2tlb = k3.l2tlb.expect("a second level");
    for (key, expected) in [
        ("costs.multiply", costs.multiply),
        ("costs.divide", costs.divide),
        ("costs.fence", costs.fence),
        ("costs.fence_i", costs.fence_i),
        ("costs.fence_translation", costs.fence_translation),
        ("costs.atomic", costs.atomic),
        ("costs.pause", costs.pause),
        ("costs.csr", costs.csr),
        ("costs.trap", costs.trap),
        ("costs.trap_return", costs.trap_return),
        ("costs.l2_hit", costs.l2_hit),
        ("costs.memory", costs.memory),
        ("costs.transfer", costs.transfer),
        ("costs.l2_tlb_hit", costs.l2_tlb_hit),
        ("l1d.size", k3.l1d.size),
        ("l2.size", l2.size),
        ("dtlb.entries", k3.dtlb.entries.into()),
        ("l2tlb.entries", l2tlb.entries.into()),
    ] {
        let found = value(key);
        // A tenth, and one cycle for what is lost by rounding.
        let near = found.abs_diff(expected) <= expected / 10 + 1;
        assert!(near, "{key}: {found} found, {expected} set");
    }
}
