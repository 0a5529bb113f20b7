//! Switches, and the VMs' ports of them.

use super::*;

const NO_UPLINK: u32 = u32::MAX;

fn switches(cells: &[u32]) -> Properties {
    with(root(), names::SWITCHES, Some(Value::Row(cells.to_vec())))
}

/// Two VMs, with slots 0 and 1, and with ports.
fn machines(first: &[u32], second: &[u32]) -> [Properties; 2] {
    let ports = |ports: &[u32]| Some(Value::Row(ports.to_vec()));
    [
        with(vm("first", &[0]), names::PORTS, ports(first)),
        with(vm("second", &[1]), names::PORTS, ports(second)),
    ]
}

#[test]
fn switches_and_ports_are_read() {
    let cells = [NO_UPLINK, 5];
    let blob = blob(&switches(&cells), &machines(&[1, 0], &[1]));
    let system = SystemDescription::parse(&blob).unwrap();
    let uplinks = [None, Some(Slot(5))].map(|uplink| SwitchDescription { uplink });
    assert_eq!(system.switches[..], uplinks);
    assert_eq!(uplinks.map(|switch| switch.cell()), cells);
    assert_eq!(system.vms[0].ports[..], [1, 0]);
    assert_eq!(system.vms[1].ports[..], [1]);
    let blob = self::blob(&root(), &[vm("first", &[0]), vm("second", &[1])]);
    let system = SystemDescription::parse(&blob).unwrap();
    assert!(system.switches.is_empty() && system.vms[0].ports.is_empty());
}

#[test]
fn uplinks_that_cannot_be_are_refused() {
    for (cells, expected) in [
        (&[32][..], Problem::OutOfRange { min: 0, max: 31 }),
        (&[0x1_0000], Problem::OutOfRange { min: 0, max: 31 }),
        (&[NO_UPLINK; MAX_SWITCHES + 1], Problem::TooMany),
        // A VM has the slot, or another switch.
        (&[1], Problem::Taken),
        (&[5, NO_UPLINK, 5], Problem::Taken),
    ] {
        let (problem, told) = refusal(&switches(cells), &machines(&[0], &[0]));
        assert_eq!(problem, expected, "{told}");
        assert!(told.contains("switches"), "{told}");
    }
    let disks = with(
        switches(&[5]),
        names::SHARED_DISKS,
        Some(Value::Row(Vec::from([4, 5]))),
    );
    assert_eq!(refusal(&disks, &machines(&[0], &[0])).0, Problem::Taken);
}

#[test]
fn ports_that_cannot_be_are_refused() {
    for (ports, expected) in [
        (&[2][..], Problem::NoSuchDevice),
        (&[8], Problem::OutOfRange { min: 0, max: 7 }),
        (&[0x100], Problem::OutOfRange { min: 0, max: 7 }),
        (&[0, 1, 0], Problem::Taken),
    ] {
        let cells = [NO_UPLINK, 5];
        let (problem, told) = refusal(&switches(&cells), &machines(&[0], ports));
        assert_eq!(problem, expected, "{told}");
        assert!(told.contains("VM second") && told.contains("ports"));
    }
    assert_eq!(
        refusal(&root(), &machines(&[0], &[])).0,
        Problem::NoSuchDevice
    );
    // With one more VM that has all ports, there are more than there are devices for.
    let all: Vec<u32> = (0..MAX_SWITCHES as u32).collect();
    let most = MAX_SHARING / MAX_SWITCHES;
    let vms = (0..=most).map(|number| {
        let name = match number == most {
            true => "second",
            // Pairs of letters that follow each other, each another one.
            false => &"abcdefghijklmnopqrstuvwxyzyxwvutsrqponmlk"[number..number + 2],
        };
        let ports = Some(Value::Row(all.clone()));
        with(vm(name, &[]), names::PORTS, ports)
    });
    let vms: Vec<Properties> = vms.collect();
    let (problem, told) = refusal(&switches(&[NO_UPLINK; MAX_SWITCHES]), &vms);
    assert_eq!(problem, Problem::TooMany, "{told}");
    assert!(told.contains("VM second"), "{told}");
    let focus = with(
        switches(&[NO_UPLINK; MAX_SWITCHES]),
        names::CONSOLE_FOCUS,
        None,
    );
    assert!(SystemDescription::parse(&blob(&focus, &vms[..most])).is_ok());
}
