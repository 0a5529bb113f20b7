//! The table of keys is consistent in itself.

use super::*;
use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec::Vec;

#[test]
fn a_key_stands_once_in_a_table() {
    for scope in Scope::ALL {
        let names: Vec<&str> = of(scope).map(|(row, _)| row.name).collect();
        let different: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), different.len(), "{scope:?}: {names:?}");
        assert!(!names.is_empty(), "{scope:?}");
    }
}

#[test]
fn notes_are_plain_sentences() {
    for (row, note) in ROWS.iter().zip(&NOTES) {
        let text = note.text.trim();
        let first = text.split(' ').next().unwrap_or_default();
        let question = [
            "What", "Whether", "Who", "Whose", "When", "Which", "How", "It", "By",
        ];
        assert!(!question.contains(&first), "{}: {text}", row.name);
        assert!(text.ends_with('.'), "{}: {text}", row.name);
    }
}

#[test]
fn a_property_has_limits_of_32_bits() {
    for row in ROWS.iter().filter(|row| row.property) {
        let fits = match row.takes {
            Takes::Number { min, max, .. } => min <= max,
            Takes::Time { min, max } => min <= max && max <= u32::MAX.into(),
            Takes::Word(words) => !words.is_empty(),
            Takes::Flag => true,
            _ => false,
        };
        assert!(fits, "{}", row.name);
    }
}

#[test]
fn defaults_are_within_limits() {
    for row in &ROWS {
        let Without::Value(usual) = row.without else {
            continue;
        };
        let fits = match row.takes {
            Takes::Number { min, max, .. } => (min.into()..=max.into()).contains(&usual),
            Takes::Time { min, max } => (min..=max).contains(&usual),
            Takes::Word(words) => (usual as usize) < words.len(),
            Takes::Flag => usual <= 1,
            _ => false,
        };
        assert!(fits, "{}", row.name);
    }
}

#[test]
fn settings_keep_the_first_value() {
    let mut settings = Settings::default();
    assert_eq!(settings.get(SPIN), SpinMethod::Reservation);
    assert_eq!(
        (settings.get(ROUND), settings.given(AFFINITY)),
        (None, None)
    );
    assert!(settings.set(AFFINITY.place(), 7) && !settings.set(AFFINITY.place(), 8));
    assert!(!settings.set(HARTS.place(), 4) && !settings.set(COUNT, 4));
    let settings = settings.with(SPIN, SpinMethod::Wapd).with(ROUND, Some(9));
    assert_eq!(settings.get(SPIN), SpinMethod::Wapd);
    assert_eq!((settings.get(ROUND), settings.get(AFFINITY)), (Some(9), 7));
    let shown = std::format!("{settings:?}");
    assert!(shown.contains("affinity"), "{shown}");
}

#[test]
fn new_names_of_keys_are_keys() {
    for renamed in &RENAMED {
        assert!(
            !of(renamed.scope).any(|(row, _)| row.name == renamed.old),
            "{renamed:?}"
        );
        let (scope, name) = match (renamed.new.split_once('.'), renamed.scope) {
            (Some(("experiment", name)), Scope::System) => (Scope::Experiment, name),
            (Some(("experiment", name)), Scope::Vm) => (Scope::VmExperiment, name),
            (None, scope) => (scope, renamed.new),
            other => panic!("{other:?}"),
        };
        assert!(of(scope).any(|(row, _)| row.name == name), "{renamed:?}");
    }
    for (key, old, new) in RENAMED_WORDS {
        let row = ROWS.iter().find(|row| row.name == key).unwrap();
        let Takes::Word(words) = row.takes else {
            panic!("{key} takes no words")
        };
        assert!(words.contains(&new) && !words.contains(&old), "{key}");
    }
}

#[test]
fn words_are_values_by_their_place() {
    for (place, word) in SpinMethod::WORDS.iter().enumerate() {
        let value: SpinMethod = SPIN.value(Some(place as u64));
        assert_eq!((value.name(), value.number()), (*word, Some(place as u64)));
    }
    let shown: Vec<String> = SpinMethod::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(shown, SpinMethod::WORDS);
}

#[test]
fn paths_lead_to_their_rows() {
    let name = |path| by_path(path).map(|row| (row.name, row.scopes[0]));
    assert_eq!(name("memory"), Some(("memory", Scope::System)));
    assert_eq!(name("vm.web.memory"), Some(("memory", Scope::Vm)));
    assert_eq!(name("experiment.round"), Some(("round", Scope::Experiment)));
    assert_eq!(
        name("vm.web.experiment.ple-gap"),
        Some(("ple-gap", Scope::Experiment))
    );
    assert_eq!(name("switch.lan.uplink"), Some(("uplink", Scope::Switch)));
    for path in [
        "round",
        "vm.web",
        "vm.web.round",
        "a.b.c",
        "",
        "vm.web.experiment.ple.x.y",
    ] {
        assert_eq!(name(path), None, "{path}");
    }
}
