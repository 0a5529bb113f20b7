//! Guests that reach each other.

use super::{check, run};

/// Guests that have no cards of the computer's fetch from each other through a switch, and compare what they got.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn guests_reach_each_other_through_a_switch() {
    guests_reach_each_other("machine", &[], "");
}

/// With an uplink the first of them reaches the host's network too.
#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_an_uplink_reaches_the_host_network() {
    let uplink = ["switch.lan.uplink=true", "host-network=\"lan\""];
    guests_reach_each_other("qemu", &uplink, "partita.outside=10.0.2.2");
}

fn guests_reach_each_other(on: &str, more: &[&str], outside: &str) {
    const LINE: &str =
        "console=ttyS0 quiet partita.workload=network partita.guests=3 partita.amount=1";
    let lines = [("one", 1), ("two", 2), ("three", 3)].map(|(vm, number)| {
        format!("vm.{vm}.command-line={LINE} partita.number={number} {outside}")
    });
    let lines = lines.iter().map(String::as_str);
    let changes: Vec<&str> = lines.chain(more.iter().copied()).collect();
    let report = run(on, "switched.toml", &changes);
    check(&report, 2, 3, 0);
    let frames = |name: &str| report["measures"][format!("events.{name}")].as_f64();
    let (sent, received) = (frames("frame-sent"), frames("frame-received"));
    // Each of the three sends a MiB to both others, in frames of 1,500 bytes.
    assert!(sent > Some(4_000.0) && received > Some(4_000.0), "{report}");
}

/// Cards of the computer's that are simulated, one of a guest in single pages: what they fetch is compared with what was sent. A card says
/// itself how it is reached.
#[test]
#[ignore = "needs the hypervisor and the images; make test runs it"]
fn guests_reach_each_other_by_mediated_cards() {
    mediated_cards_reach_each_other("machine");
}

#[test]
#[ignore = "soak: a minute of QEMU; make soak runs it"]
fn soak_mediated_cards_work_on_qemu() {
    mediated_cards_reach_each_other("qemu");
}

fn mediated_cards_reach_each_other(on: &str) {
    const LINE: &str = "console=ttyS0 quiet partita.workload=network partita.amount=1";
    let lines = [("one", 1), ("two", 2)]
        .map(|(vm, number)| format!("vm.{vm}.command-line={LINE} partita.number={number}"));
    let changes = [
        "when-idle=\"power-off\"",
        "vm.three.autostart=false",
        "vm.one.placement=\"paged\"",
        "vm.one.network=[{ network = \"cards\", io = \"fast\" }]",
        "vm.two.network=[{ network = \"cards\", io = \"general\" }]",
        &lines[0],
        &lines[1],
    ];
    let report = run(on, "switched.toml", &changes);
    let of = |vm: usize, name: &str| {
        let vms = report["vms"].as_array().unwrap();
        let work = vms[vm]["work"].as_array().unwrap().iter();
        work.map(|work| work["events"][name].as_u64().unwrap_or(0))
            .sum::<u64>()
    };
    // A MiB comes in 700 frames at least.
    assert!(of(0, "request-fast") > 700, "{report}");
    assert!(of(1, "request-general") > 700, "{report}");
    assert_eq!((of(0, "request-general"), of(1, "request-fast")), (0, 0));
}
