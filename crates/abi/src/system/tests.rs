//! Descriptions good and bad.

use super::*;
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec::Vec;
use vm_fdt::FdtWriter;

mod slices;
mod switches;

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
        (names::TIME_SLICE_US, Value::Row(Vec::from([5000]))),
        (names::SPIN, Value::Text("wopd")),
        (names::WAIT, Value::Text("self-wait")),
        (names::CONSOLE_FOCUS, Value::Text("second")),
    ])
}

fn vm(name: &'static str, slots: &[u32]) -> Properties {
    Vec::from([
        (names::NAME, Value::Text(name)),
        (names::VCPUS, Value::Row(Vec::from([2]))),
        (names::MEMORY, Value::Long(256 << 20)),
        (names::PLACEMENT, Value::Text("real")),
        (names::SHARE, Value::Row(Vec::from([30]))),
        (names::KERNEL, Value::Text("kernel")),
        (names::DEVICES, Value::Row(slots.to_vec())),
        (names::AUTOSTART, Value::Empty),
    ])
}

/// The same properties with one changed, or taken away.
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
    let dedicated = with(dedicated, names::AUTOSTART, None);
    let dedicated = with(dedicated, names::ON_FAILURE, Some(Value::Text("restart")));
    let blob = blob(&root(), &[vm("first", &[0]), dedicated]);
    let system = SystemDescription::parse(&blob).unwrap();

    assert_eq!(system.time_slice_us, Some(5000));
    assert_eq!(
        (system.spin, system.wait),
        (SpinMethod::Wopd, WaitMethod::SelfWait)
    );
    assert_eq!(system.console_focus, Some(VmId(1)));
    assert_eq!(system.when_idle, WhenIdle::PowerOffAfterAll);
    assert_eq!(system.migration, Migration::AsNeeded);
    assert_eq!(system.parameters, Parameters::default());
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
    assert_eq!((first.autostart, first.on_failure), (true, OnFailure::Stop));
    assert_eq!((second.initrd, second.bootargs), (Some("initrd"), "quiet"));
    assert_eq!(
        (second.autostart, second.on_failure),
        (false, OnFailure::Restart)
    );
    assert_eq!(second.devices[..], [Slot(1), Slot(3)]);
    let Allocation::Dedicated { harts } = second.allocation else {
        panic!("shared")
    };
    assert!(harts.iter().eq([HartId(2), HartId(3)]));
}

#[test]
fn how_vcpus_move_is_one_of_two_words() {
    let with_word = |word| with(root(), names::MIGRATION, Some(Value::Text(word)));
    let machines = [vm("first", &[0]), vm("second", &[1])];
    let always = blob(&with_word("always"), &machines);
    let system = SystemDescription::parse(&always).unwrap();
    assert_eq!(system.migration, Migration::Always);
    let (problem, told) = refusal(&with_word("never"), &machines);
    assert_eq!(problem, Problem::UnknownWord);
    assert!(
        told.contains("migration") && told.contains("never"),
        "{told}"
    );
}

fn number(number: u32) -> Option<Value> {
    Some(Value::Row(Vec::from([number])))
}

/// The parameters' properties with their bounds.
fn parameters() -> [(&'static str, core::ops::RangeInclusive<u32>); 9] {
    [
        (names::AFFINITY, AFFINITY),
        (names::SELF_WAIT_BUDGET, SELF_WAIT_BUDGET),
        // A limit below the slice of 5 ms is refused as well.
        (
            names::RESERVATION_LIMIT_US,
            5_000..=*RESERVATION_LIMIT_US.end(),
        ),
        (names::ROUND, ROUND),
        (names::RELAXED_TERMS, RELAXED_TERMS),
        (names::HOST_INTERRUPT_COST, COST),
        (names::FUTILE_PASS_COST, COST),
        (names::DISPATCH_COST, COST),
        (names::MODE_CHANGE_COST, COST),
    ]
}

#[test]
fn parameters_are_read_up_to_their_bounds() {
    let machines = [vm("first", &[0]), vm("second", &[1])];
    let with_all = |of: &dyn Fn(&core::ops::RangeInclusive<u32>) -> u32| {
        parameters().iter().fold(root(), |root, (name, range)| {
            with(root, name, number(of(range)))
        })
    };
    for end in [
        core::ops::RangeInclusive::start,
        core::ops::RangeInclusive::end,
    ] {
        let blob = blob(&with_all(&|range| *end(range)), &machines);
        let read = SystemDescription::parse(&blob).unwrap().parameters;
        let values = [
            read.affinity,
            read.self_wait_budget,
            read.reservation_limit_us,
            read.round,
            read.relaxed_terms,
            read.costs.host_interrupt,
            read.costs.futile_pass,
            read.costs.dispatch,
            read.costs.mode_change,
        ];
        let expected = parameters().map(|(_, range)| Some(*end(&range)));
        assert_eq!(values, expected);
    }
}

#[test]
fn parameters_out_of_their_bounds_are_refused_by_name_and_value() {
    let machines = [vm("first", &[0]), vm("second", &[1])];
    for (name, range) in parameters() {
        let below = range.start().checked_sub(1);
        for value in below.into_iter().chain([range.end() + 1, u32::MAX]) {
            let (problem, told) = refusal(&with(root(), name, number(value)), &machines);
            assert_eq!(problem, Problem::OutOfRange, "{name}");
            let shown = std::format!("{name} = {value}:");
            assert!(told.contains(&shown), "{told:?} lacks {shown:?}");
        }
        let twice = [
            root(),
            Vec::from([
                (name, Value::Row(Vec::from([*range.end()]))),
                (name, Value::Row(Vec::from([*range.end()]))),
            ]),
        ]
        .concat();
        assert_eq!(refusal(&twice, &machines).0, Problem::Repeated, "{name}");
        for wrong in [Value::Text("many"), Value::Long(10), Value::Empty] {
            let (problem, _) = refusal(&with(root(), name, Some(wrong)), &machines);
            assert_eq!(problem, Problem::WrongType, "{name}");
        }
        let own = with(vm("second", &[1]), name, number(*range.end()));
        let (problem, told) = refusal(&root(), &[vm("first", &[0]), own]);
        assert_eq!(problem, Problem::UnknownProperty, "{told}");
    }
}

#[test]
fn each_mistake_is_named_with_its_vm_property_and_value() {
    let cases: Vec<(&'static str, Option<Value>, Problem, &[&str])> = Vec::from([
        (
            names::VCPUS,
            number(65),
            Problem::OutOfRange,
            &["VM second", "vcpus = 65"][..],
        ),
        (
            names::VCPUS,
            number(0),
            Problem::OutOfRange,
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
            Problem::OutOfRange,
            &["memory = 4096"],
        ),
        (names::MEMORY, number(4096), Problem::WrongType, &["memory"]),
        (
            names::PLACEMENT,
            Some(Value::Text("here")),
            Problem::UnknownWord,
            &["placement = here"],
        ),
        (
            names::BALLOON,
            Some(Value::Empty),
            Problem::Balloon,
            &["VM second", "single pages"],
        ),
        (
            names::BALLOON,
            number(1),
            Problem::WrongType,
            &["VM second", "wrong type"],
        ),
        (
            names::SHARE,
            None,
            Problem::Allocation,
            &["VM second", "either"],
        ),
        (names::SHARE, number(0), Problem::OutOfRange, &["share = 0"]),
        (
            names::DEDICATED_HARTS,
            number(0),
            Problem::Allocation,
            &["VM second", "either"],
        ),
        (
            names::DEDICATED_HARTS,
            number(64),
            Problem::OutOfRange,
            &["dedicated-harts = 64"],
        ),
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
            Problem::OutOfRange,
            &["devices = 32"],
        ),
        (
            names::SIMULATED,
            number(2),
            Problem::NoSuchDevice,
            &["VM second", "simulated = 2"],
        ),
        (
            names::FAST,
            number(1),
            Problem::NoSuchDevice,
            &["VM second", "fast = 1"],
        ),
        (
            names::AUTOSTART,
            number(1),
            Problem::WrongType,
            &["autostart"],
        ),
        (
            "colour",
            number(1),
            Problem::UnknownProperty,
            &["VM second", "colour"],
        ),
    ]);
    for (name, value, problem, words) in cases {
        let second = with(vm("second", &[1]), name, value);
        let (found, message) = refusal(&root(), &[vm("first", &[0]), second]);
        assert_eq!(found, problem, "{name}: {message}");
        for word in words {
            assert!(message.contains(word), "{message:?} lacks {word:?}");
        }
    }
}

#[test]
fn mistakes_of_the_system_are_named() {
    let vms = [vm("first", &[0]), vm("second", &[1])];
    let changed = |name, value| refusal(&with(root(), name, value), &vms).0;
    assert_eq!(
        changed(names::COMPATIBLE, Some(Value::Text("a,b"))),
        Problem::NotASystem
    );
    for slice in [0, 999, 10_001, u32::MAX] {
        assert_eq!(
            changed(names::TIME_SLICE_US, number(slice)),
            Problem::OutOfRange
        );
    }
    assert_eq!(
        changed(names::SPIN, Some(Value::Text("idle"))),
        Problem::UnknownWord
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

/// So many names of VMs.
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
    fn garbage_never_panics_and_what_passes_is_in_bounds(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let full = parameters()
            .iter()
            .fold(root(), |root, (name, range)| with(root, name, number(*range.end())));
        let mut blob = blob(&full, &[vm("first", &[0]), vm("second", &[1])]);
        for (position, byte) in changes {
            let position = position.index(blob.len());
            blob[position] = byte;
        }
        match SystemDescription::parse(&blob) {
            Ok(system) => {
                let slice = system.time_slice_us;
                prop_assert!(slice.is_none_or(|slice| TIME_SLICE_US.contains(&slice)));
                let given = system.parameters;
                prop_assert!(given.affinity.is_none_or(|value| AFFINITY.contains(&value)));
                prop_assert!(given.self_wait_budget.is_none_or(|value| SELF_WAIT_BUDGET.contains(&value)));
                let limits = slice.unwrap_or(0).max(*RESERVATION_LIMIT_US.start())..=*RESERVATION_LIMIT_US.end();
                prop_assert!(given.reservation_limit_us.is_none_or(|value| limits.contains(&value)));
                prop_assert!(given.round.is_none_or(|value| ROUND.contains(&value)));
                prop_assert!(given.relaxed_terms.is_none_or(|value| RELAXED_TERMS.contains(&value)));
                let Costs { host_interrupt, futile_pass, dispatch, mode_change } = given.costs;
                for cost in [host_interrupt, futile_pass, dispatch, mode_change] {
                    prop_assert!(cost.is_none_or(|value| COST.contains(&value)));
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
