//! Descriptions good and bad.

use super::*;
use crate::keys::{self, Takes};
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec::Vec;
use vm_fdt::FdtWriter;

mod properties;
mod slices;
mod switches;

use properties::{OF_SYSTEM, OF_VM, ends, rows};

/// A property to write.
#[derive(Clone)]
enum Value {
    Text(&'static str),
    Long(u64),
    Row(Vec<u32>),
    Empty,
}

type Properties = Vec<(&'static str, Value)>;

fn write(writer: &mut FdtWriter, properties: &Properties) {
    for (name, value) in properties {
        match value {
            Value::Text(text) => writer.property_string(name, text),
            Value::Long(number) => writer.property_u64(name, *number),
            Value::Row(row) => writer.property_array_u32(name, row),
            Value::Empty => writer.property_null(name),
        }
        .unwrap();
    }
}

fn blob(root: &Properties, vms: &[Properties]) -> Vec<u8> {
    let mut writer = FdtWriter::new().unwrap();
    let root_node = writer.begin_node("").unwrap();
    write(&mut writer, root);
    let vms_node = writer.begin_node(names::VMS_NODE).unwrap();
    for (index, vm) in vms.iter().enumerate() {
        let node = writer
            .begin_node(&std::format!("{}@{index:x}", names::VM_NODE))
            .unwrap();
        write(&mut writer, vm);
        writer.end_node(node).unwrap();
    }
    writer.end_node(vms_node).unwrap();
    writer.end_node(root_node).unwrap();
    writer.finish().unwrap()
}

fn root() -> Properties {
    Vec::from([
        (names::COMPATIBLE, Value::Text(names::COMPATIBLE_VALUE)),
        ("time-slice", Value::Row(Vec::from([5000]))),
        ("spin", Value::Text("wopd")),
        ("wait", Value::Text("self-wait")),
        (names::CONSOLE_FOCUS, Value::Text("second")),
    ])
}

fn vm(name: &'static str, slots: &[u32]) -> Properties {
    Vec::from([
        (names::NAME, Value::Text(name)),
        (names::VCPUS, Value::Row(Vec::from([2]))),
        (names::MEMORY, Value::Long(256 << 20)),
        ("placement", Value::Text("real")),
        (names::SHARE, Value::Row(Vec::from([30]))),
        (names::KERNEL, Value::Text("kernel")),
        (names::DEVICES, Value::Row(slots.to_vec())),
        ("autostart", Value::Row(Vec::from([1]))),
    ])
}

/// Properties with one changed, or taken away.
fn with(mut properties: Properties, name: &'static str, value: Option<Value>) -> Properties {
    properties.retain(|(other, _)| *other != name);
    properties.extend(value.map(|value| (name, value)));
    properties
}

fn refusal(root: &Properties, vms: &[Properties]) -> (Problem, String) {
    let blob = blob(root, vms);
    let error = SystemDescription::parse(&blob).unwrap_err();
    (error.problem, error.to_string())
}

#[test]
fn a_description_is_read_whole() {
    let dedicated = with(vm("second", &[3, 1]), names::SHARE, None);
    let dedicated = with(
        dedicated,
        names::DEDICATED_HARTS,
        Some(Value::Row(Vec::from([3, 2]))),
    );
    let dedicated = with(dedicated, names::INITRD, Some(Value::Text("initrd")));
    let dedicated = with(dedicated, names::BOOTARGS, Some(Value::Text("quiet")));
    let dedicated = with(dedicated, "autostart", number(0));
    let dedicated = with(dedicated, "on-failure", Some(Value::Text("restart")));
    let blob = blob(&root(), &[vm("first", &[0]), dedicated]);
    let system = SystemDescription::parse(&blob).unwrap();

    assert_eq!(system.get(keys::TIME_SLICE), Some(5000));
    assert_eq!(system.get(keys::SPIN), SpinMethod::Wopd);
    assert_eq!(system.get(keys::WAIT), WaitMethod::SelfWait);
    assert_eq!(system.console_focus, Some(VmId(1)));
    assert_eq!(system.get(keys::WHEN_IDLE), WhenIdle::PowerOffAfterAll);
    assert_eq!(system.get(keys::AFFINITY), 3);
    assert_eq!(system.settings.given(keys::AFFINITY), None);
    let [first, second] = &system.vms[..] else {
        panic!("{} VMs", system.vms.len())
    };
    assert_eq!(
        (first.name.as_str(), first.vcpus, first.memory),
        ("first", 2, 256 << 20)
    );
    assert_eq!(first.allocation, Allocation::Shared { share: 30 });
    assert_eq!(
        (first.kernel, first.initrd, first.bootargs),
        ("kernel", None, "")
    );
    assert!(first.get(keys::AUTOSTART));
    assert_eq!(first.get(keys::ON_FAILURE), OnFailure::Stop);
    assert_eq!((second.initrd, second.bootargs), (Some("initrd"), "quiet"));
    assert!(!second.get(keys::AUTOSTART));
    assert_eq!(second.get(keys::ON_FAILURE), OnFailure::Restart);
    assert_eq!(second.devices[..], [Slot(1), Slot(3)]);
    let Allocation::Dedicated { harts } = second.allocation else {
        panic!("shared")
    };
    assert!(harts.iter().eq([HartId(2), HartId(3)]));
}

fn number(number: u32) -> Option<Value> {
    Some(Value::Row(Vec::from([number])))
}

/// Key of the second VM, its value, and the problem and the words of the message.
type Mistake = (
    &'static str,
    Option<Value>,
    Problem,
    &'static [&'static str],
);

fn assert_named<const N: usize>(mistakes: [Mistake; N]) {
    for (name, value, problem, words) in mistakes {
        let second = with(vm("second", &[1]), name, value);
        let (found, message) = refusal(&root(), &[vm("first", &[0]), second]);
        assert_eq!(found, problem, "{name}: {message}");
        for word in words {
            assert!(message.contains(word), "{message:?} lacks {word:?}");
        }
    }
}

#[test]
fn mistakes_of_allocation_name_vm_and_value() {
    assert_named([
        (
            names::VCPUS,
            number(65),
            Problem::OutOfRange { min: 1, max: 64 },
            &["VM second", "vcpus = 65"],
        ),
        (
            names::VCPUS,
            number(0),
            Problem::OutOfRange { min: 1, max: 64 },
            &["VM second", "vcpus = 0"],
        ),
        (
            names::VCPUS,
            None,
            Problem::Missing,
            &["VM second", "vcpus"],
        ),
        (
            names::MEMORY,
            Some(Value::Long(4096)),
            Problem::Granule,
            &["memory = 4096"],
        ),
        (names::MEMORY, number(4096), Problem::WrongType, &["memory"]),
        (
            "placement",
            Some(Value::Text("here")),
            Problem::UnknownWord,
            &["placement = here"],
        ),
        (
            "balloon",
            number(1),
            Problem::Balloon,
            &["VM second", "paged"],
        ),
        (
            names::SHARE,
            None,
            Problem::Allocation,
            &["VM second", "either"],
        ),
        (
            names::SHARE,
            number(0),
            Problem::OutOfRange {
                min: 1,
                max: 10_000,
            },
            &["share = 0"],
        ),
        (
            names::DEDICATED_HARTS,
            number(0),
            Problem::Allocation,
            &["VM second", "either"],
        ),
        (
            names::DEDICATED_HARTS,
            number(64),
            Problem::OutOfRange { min: 0, max: 63 },
            &["dedicated-harts = 64"],
        ),
    ]);
}

#[test]
fn mistakes_of_devices_name_vm_and_value() {
    assert_named([
        (names::KERNEL, None, Problem::Missing, &["kernel"]),
        (
            names::KERNEL,
            Some(Value::Text("")),
            Problem::Missing,
            &["kernel"],
        ),
        (
            names::DEVICES,
            number(0),
            Problem::Taken,
            &["VM second", "devices = 0"],
        ),
        (
            names::DEVICES,
            number(32),
            Problem::OutOfRange { min: 0, max: 31 },
            &["devices = 32"],
        ),
        (
            names::MEDIATED,
            number(2),
            Problem::NoSuchDevice,
            &["VM second", "mediated = 2"],
        ),
        (
            names::FAST,
            number(1),
            Problem::NoSuchDevice,
            &["VM second", "fast = 1"],
        ),
        (
            "colour",
            number(1),
            Problem::UnknownProperty,
            &["VM second", "colour"],
        ),
    ]);
}

#[test]
fn mistakes_of_the_system_are_named() {
    let vms = [vm("first", &[0]), vm("second", &[1])];
    let changed = |name, value| refusal(&with(root(), name, value), &vms).0;
    assert_eq!(
        changed(names::COMPATIBLE, Some(Value::Text("a,b"))),
        Problem::NotASystem
    );
    assert_eq!(
        changed(names::CONSOLE_FOCUS, Some(Value::Text("third"))),
        Problem::NoSuchVm
    );
    assert_eq!(
        refusal(&with(root(), names::CONSOLE_FOCUS, None), &[]).0,
        Problem::NoVm
    );
    let twins = [vm("second", &[0]), vm("second", &[1])];
    assert_eq!(refusal(&root(), &twins).0, Problem::NameTaken);
}

/// Names of `count` VMs.
fn names_of(count: usize) -> impl Iterator<Item = &'static str> {
    (0..count).map(|number| &*std::format!("vm-{number}").leak())
}

#[test]
fn vms_beyond_the_bound_are_refused() {
    let mut vms: Vec<_> = names_of(MAX_VMS).map(|name| vm(name, &[])).collect();
    let root = with(root(), names::CONSOLE_FOCUS, None);
    assert_eq!(
        SystemDescription::parse(&blob(&root, &vms))
            .unwrap()
            .vms
            .len(),
        MAX_VMS
    );
    vms.push(vm("one-more", &[]));
    assert_eq!(refusal(&root, &vms).0, Problem::TooMany);
}

#[test]
fn vcpus_beyond_the_bound_are_refused() {
    let many = |name| {
        let vcpus = Value::Row(Vec::from([MAX_VCPUS_PER_VM as u32]));
        with(vm(name, &[]), names::VCPUS, Some(vcpus))
    };
    let root = with(root(), names::CONSOLE_FOCUS, None);
    let mut vms: Vec<_> = names_of(MAX_VCPUS / MAX_VCPUS_PER_VM).map(many).collect();
    assert!(SystemDescription::parse(&blob(&root, &vms)).is_ok());
    vms.push(vm("one-more", &[]));
    assert_eq!(refusal(&root, &vms).0, Problem::TooManyVcpus);
}

#[test]
fn names_are_checked() {
    for good in ["a", "web-1", "A_b", "abcdefghijklmnopqrstuvwxyz01234"] {
        assert_eq!(VmName::new(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "1",
        "-a",
        "a b",
        "a]",
        "é",
        "partita",
        "abcdefghijklmnopqrstuvwxyz012345",
    ] {
        assert_eq!(VmName::new(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn a_description_cut_short_is_refused(cut in any::<prop::sample::Index>()) {
        let blob = blob(&root(), &[vm("first", &[0]), vm("second", &[1])]);
        prop_assert!(SystemDescription::parse(&blob[..cut.index(blob.len())]).is_err());
    }

    #[test]
    fn garbage_never_panics_nor_passes_bounds(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let ends = rows(OF_SYSTEM).map(|(_, row)| (row.name, ends(row).0[1].clone()));
        let full = ends.fold(root(), |root, (name, value)| with(root, name, Some(value)));
        let mut blob = blob(&full, &[vm("first", &[0]), vm("second", &[1])]);
        for (position, byte) in changes {
            let position = position.index(blob.len());
            blob[position] = byte;
        }
        match SystemDescription::parse(&blob) {
            Ok(system) => {
                for (place, row) in rows(OF_SYSTEM).chain(rows(OF_VM)) {
                    let (low, high) = match row.takes {
                        Takes::Number { min, max, .. } => (min.into(), max.into()),
                        Takes::Time { min, max } => (min, max),
                        Takes::Word(words) => (0, words.len() as u64 - 1),
                        _ => (0, 1),
                    };
                    let vms = system.vms.iter().map(|vm| vm.settings.number(place));
                    for given in vms.chain([system.settings.number(place)]).flatten() {
                        prop_assert!((low..=high).contains(&given), "{} = {given}", row.name);
                    }
                }
                for vm in &system.vms {
                    prop_assert!((1..=MAX_VCPUS_PER_VM).contains(&(vm.vcpus as usize)));
                    prop_assert_eq!(vm.memory % MEMORY_GRANULE, 0);
                }
                for (index, vm) in system.vms.iter().enumerate() {
                    prop_assert_eq!(system.find(vm.name.as_str()).map(VmId::index), Some(index));
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
