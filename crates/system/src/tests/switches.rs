//! Networks that are switches.

use super::*;
use crate::image::slots::Assignment;

const TWO: &str = r#"
harts = 2
memory = "1 GiB"

[switch.lan]

[vm.one]
vcpus = 1
memory = "64 MiB"
share = 30
kernel = "image:debian/kernel"
network = ["lan", "wide"]

[vm.two]
vcpus = 1
memory = "64 MiB"
share = 30
kernel = "image:debian/kernel"
network = ["wide", "lan"]
"#;

#[test]
fn cards_on_switches_are_ports() {
    let system = read(TWO, &[]).unwrap();
    let [lan] = &system.switches[..] else {
        panic!("{:?}", system.switches)
    };
    assert_eq!((lan.name.as_str(), lan.uplink), ("lan", false));
    for vm in &system.vms {
        let ports: Vec<&str> = vm.ports.iter().map(|port| port.value.as_str()).collect();
        assert_eq!(ports, ["lan"]);
        let cards: Vec<&str> = (vm.network.iter())
            .map(|card| card.network.value.as_str())
            .collect();
        assert_eq!(cards, ["wide"]);
    }
    // The two cards have slots, and the ports need none.
    let slots = Assignment::of(&system);
    assert_eq!([slots.vm(0).len(), slots.vm(1).len()], [1, 1]);
    assert!(slots.uplinks().is_empty());
    let system = read(TWO, &["switch.lan.uplink=true"]).unwrap();
    let slots = Assignment::of(&system);
    let [uplink] = slots.uplinks() else {
        panic!("{:?}", slots.uplinks())
    };
    let mut others = slots.vm(0).iter().chain(slots.vm(1));
    assert!(others.all(|(slot, _)| slot != uplink));
}

#[test]
fn mistakes_in_switches_are_named() {
    mistake(
        TWO,
        &["switch.wan={}"],
        &["switch.wan", "no VM has a port", "network = [\"wan\"]"],
    );
    mistake(
        TWO,
        &["vm.two.network=[\"lan\", \"lan\"]"],
        &["vm.two.network", "a port of the switch lan already"],
    );
    mistake(TWO, &["switch.lan.uplink=1"], &["switch.lan.uplink"]);
    mistake(TWO, &["switch.lan.uplnk=true"], &["switch.lan.uplnk"]);
    mistake(TWO, &["switch=3"], &["switch", "a table"]);
    mistake(
        TWO,
        &["host-network=\"lan\""],
        &["host-network", "uplink = true"],
    );
    let uplinked = ["host-network=\"lan\"", "switch.lan.uplink=true"];
    assert!(read(TWO, &uplinked).is_ok());
    let names: Vec<String> = (0..9).map(|number| format!("\"n{number}\"")).collect();
    let tables: Vec<String> = (0..9).map(|number| format!("n{number} = {{}}")).collect();
    let changes = [
        format!("switch={{ {} }}", tables.join(", ")),
        format!("vm.one.network=[{}]", names.join(", ")),
    ];
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    mistake(TWO, &changes, &["switch.n8", "there are 9 switches", "8"]);
}

#[test]
fn uplinks_need_slots_as_cards_do() {
    // Six cards and an uplink; another one, and a ninth device.
    let cards = "vm.two.network=[\"lan\", \"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    let one = "vm.one.network=[\"lan\", \"wan\"]";
    let mut changes = vec![cards, one, "switch.wan.uplink=true"];
    assert!(read(TWO, &changes).is_ok());
    changes.push("switch.lan.uplink=true");
    assert!(read(TWO, &changes).is_ok());
    changes.push("vm.two.rng=true");
    mistake(TWO, &changes, &["9 devices", "8 slots"]);
}
