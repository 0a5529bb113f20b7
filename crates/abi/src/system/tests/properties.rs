//! Every property of the table of keys, at its limits and beyond.

use super::*;
use crate::keys::{self, ROWS, Scope};

/// The property rows of these scopes, with the place of each.
pub(super) fn rows(scopes: [Scope; 2]) -> impl Iterator<Item = (usize, &'static keys::Row)> {
    let rows = ROWS.iter().enumerate();
    rows.filter(move |(_, row)| row.property && scopes.iter().any(|scope| row.is_in(*scope)))
}

/// Values at the ends of a row's limits, and values beyond them.
pub(super) fn ends(row: &keys::Row) -> ([Value; 2], Vec<Value>) {
    let row_of = |number: u64| Value::Row(Vec::from([number as u32]));
    let (min, max) = match row.takes {
        Takes::Word(words) => {
            let word = |word: Option<&&'static str>| Value::Text(word.unwrap());
            let good = [word(words.first()), word(words.last())];
            return (good, Vec::from([Value::Text("no-such-word")]));
        }
        Takes::Number { min, max, .. } => (min.into(), max.into()),
        Takes::Time { min, max } => (min, max),
        Takes::Flag => (0, 1),
        other => panic!("{other:?} is no property"),
    };
    let beyond = [
        min.checked_sub(1),
        (max < u32::MAX.into()).then_some(max + 1),
    ];
    let beyond = beyond.into_iter().flatten().map(row_of);
    ([row_of(min), row_of(max)], beyond.collect())
}

pub(super) const OF_SYSTEM: [Scope; 2] = [Scope::System, Scope::Experiment];
pub(super) const OF_VM: [Scope; 2] = [Scope::Vm, Scope::VmExperiment];

/// A good system with one more value in the root, or in its second VM.
fn with_value(
    scopes: [Scope; 2],
    name: &'static str,
    value: Value,
) -> (Properties, [Properties; 2]) {
    // A slice would bound the reservation's limit, and a balloon needs single pages.
    let root = with(root(), "time-slice", None);
    let second = match name {
        "balloon" => with(vm("second", &[1]), "placement", Some(Value::Text("paged"))),
        _ => vm("second", &[1]),
    };
    match scopes == OF_SYSTEM {
        true => (with(root, name, Some(value)), [vm("first", &[0]), second]),
        false => (root, [vm("first", &[0]), with(second, name, Some(value))]),
    }
}

#[test]
fn every_property_is_read_to_its_limits() {
    for scopes in [OF_SYSTEM, OF_VM] {
        for (place, row) in rows(scopes) {
            for value in ends(row).0 {
                let (root, vms) = with_value(scopes, row.name, value.clone());
                let blob = blob(&root, &vms);
                let system = SystemDescription::parse(&blob).unwrap();
                let read = match scopes == OF_SYSTEM {
                    true => system.settings.number(place),
                    false => system.vms[1].settings.number(place),
                };
                let given = match (value, row.takes) {
                    (Value::Row(row), _) => u64::from(row[0]),
                    (Value::Text(text), Takes::Word(words)) => {
                        words.iter().position(|word| *word == text).unwrap() as u64
                    }
                    _ => panic!("{} has no such value", row.name),
                };
                assert_eq!(read, Some(given), "{}", row.name);
            }
        }
    }
}

#[test]
fn values_beyond_limits_are_refused_by_name() {
    for scopes in [OF_SYSTEM, OF_VM] {
        for (_, row) in rows(scopes) {
            for value in ends(row).1 {
                let (root, vms) = with_value(scopes, row.name, value);
                let (problem, told) = refusal(&root, &vms);
                let out = matches!(problem, Problem::OutOfRange { .. } | Problem::UnknownWord);
                assert!(out && told.contains(row.name), "{told}");
            }
            for wrong in [Value::Long(10), Value::Empty] {
                let (root, vms) = with_value(scopes, row.name, wrong);
                assert_eq!(refusal(&root, &vms).0, Problem::WrongType, "{}", row.name);
            }
            let [first, _] = ends(row).0;
            let (root, [one, mut two]) = with_value(scopes, row.name, first.clone());
            let mut twice = root.clone();
            match scopes == OF_SYSTEM {
                true => twice.push((row.name, first)),
                false => two.push((row.name, first)),
            }
            assert_eq!(
                refusal(&twice, &[one, two]).0,
                Problem::Repeated,
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn properties_of_systems_are_none_of_vms() {
    let other = rows(OF_SYSTEM).filter(|(_, row)| !OF_VM.iter().any(|scope| row.is_in(*scope)));
    for (_, row) in other {
        let [value, _] = ends(row).0;
        let own = with(vm("second", &[1]), row.name, Some(value));
        let (problem, told) = refusal(&root(), &[vm("first", &[0]), own]);
        assert_eq!(problem, Problem::UnknownProperty, "{told}");
    }
}

#[test]
fn a_vms_value_comes_before_the_systems() {
    let root = with(root(), "ple-window", number(512));
    let second = with(vm("second", &[1]), "ple-window", number(64));
    let second = with(second, "ple-window-max", number(128));
    let blob = blob(&root, &[vm("first", &[0]), second]);
    let system = SystemDescription::parse(&blob).unwrap();
    let terms = |vm: usize| system.pause_loops(&system.vms[vm]);
    let of = |window, window_max| PauseLoops {
        gap: 128,
        window,
        window_max,
    };
    assert_eq!((terms(0), terms(1)), (of(512, 512), of(64, 128)));
}

#[test]
fn reservations_are_not_below_a_slice() {
    let vms = [vm("first", &[0]), vm("second", &[1])];
    let (problem, told) = refusal(&with(root(), "reservation-limit", number(4999)), &vms);
    assert_eq!(
        problem,
        Problem::OutOfRange {
            min: 5000,
            max: 1_000_000
        }
    );
    assert!(told.contains("reservation-limit = 4999"), "{told}");
}
