//! Files of results that were cut, damaged, foreign, full or in use.

use super::*;
use crate::laboratory::Computer;
use runner::measures::{Figures, Measure};
use serde_json::json;
use std::collections::BTreeMap;

fn entry(seed: u64) -> Entry {
    let point = Point {
        system: PathBuf::from("system.toml"),
        changes: vec![String::from("spin=\"wapd\"")],
        computer: Computer::Machine { profile: None },
        seed,
        ..Point::default()
    };
    let made_by = MadeBy {
        partita: String::from("0"),
        system: String::from("harts = 1"),
        profile: None,
        files: BTreeMap::new(),
    };
    Entry {
        id: point.identity(&made_by),
        point,
        made_by,
        outcome: Outcome::of_figures(Figures::from([(
            Measure::Throughput,
            0.1 + seed as f64 / 3.0,
        )])),
    }
}

fn three(path: &Path) -> Vec<u8> {
    let mut store = Store::open(path).unwrap();
    for seed in 0..3 {
        store.add(entry(seed)).unwrap();
    }
    drop(store);
    std::fs::read(path).unwrap()
}

#[test]
fn truncated_file_keeps_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/results.jsonl");
    let bytes = three(&path);
    let ends = |length: &usize| {
        bytes[length.saturating_sub(2)..]
            .iter()
            .take(4)
            .any(|byte| *byte == b'\n')
    };
    for length in (0..=bytes.len()).filter(|length| length % 23 == 0 || ends(length)) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let lines = bytes[..length]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let mut store = Store::open(&path).unwrap();
        for seed in 0..3 {
            let there = (seed as usize) + 1 < lines;
            let expected = there.then(|| entry(seed));
            assert_eq!(store.get(&entry(seed).id), expected.as_ref(), "{length}");
        }
        // What is added after the cut is read again.
        store.add(entry(9)).unwrap();
        drop(store);
        let again = Store::read(&path).unwrap();
        assert_eq!(again.len(), lines.saturating_sub(1) + 1);
        assert!(again.contains(&entry(9)));
    }
}

#[test]
fn figures_come_back_to_the_last_digit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    three(&path);
    let read = Store::read(&path).unwrap();
    for seed in 0..3 {
        assert!(read.contains(&entry(seed)));
    }
}

#[test]
fn a_damaged_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let text = String::from_utf8(three(&path)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"id\":";
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Line { line: 3, .. }), "{error}");
}

#[test]
fn foreign_files_are_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    let foreign = ["a diary\n", "no end of line", "{}\n", "[1]\n"];
    for text in foreign {
        std::fs::write(&path, text).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Foreign(_)), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::write(&path, "{\"partita_results\":99}\nwhatever\n").unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 99, .. }));
    assert!(error.to_string().contains("--results"), "{error}");
}

#[test]
fn two_do_not_write_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let first = Store::open(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    drop(first);
    Store::open(&path).unwrap();
}

#[test]
fn full_disk_loses_no_entry() {
    // Linux's device that is always full stands for the disk.
    let full = OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let mut store = Store::open(&path).unwrap();
    let disk = std::mem::replace(&mut store.file, full);
    assert!(store.add(entry(1)).is_err());
    assert_eq!(store.get(&entry(1).id), Some(&entry(1)));
    store.file = disk;
    store.add(entry(2)).unwrap();
    drop(store);
    assert_eq!(Store::read(&path).unwrap().len(), 2);
}

#[test]
fn what_makes_a_result_makes_its_name() {
    let base = entry(0);
    let mut others = vec![entry(1), entry(0), entry(0), entry(0)];
    others[1].point.changes.clear();
    others[2].point.computer = Computer::Qemu;
    others[3].made_by.system.push('\n');
    for other in &others {
        assert_ne!(other.point.identity(&other.made_by), base.id);
    }
    // Where the file lies does not matter.
    let mut moved = entry(0);
    moved.point.system = PathBuf::from("/elsewhere/system.toml");
    assert_eq!(moved.point.identity(&moved.made_by), base.id);
}

#[test]
fn older_forms_are_read_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let mut older = serde_json::to_value(entry(0)).unwrap();
    let measures = json!({ "etr": 0.1 });
    older["outcome"] =
        json!({ "finished": { "figures": measures, "report": { "measures": measures } } });
    std::fs::write(&path, format!("{{\"partita_results\":1}}\n{older}\n")).unwrap();
    assert_eq!(Store::read(&path).unwrap(), [entry(0)]);
    let mut store = Store::open(&path).unwrap();
    store.add(entry(1)).unwrap();
    drop(store);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "{\"partita_results\":2}"));
    let mut read = Store::read(&path).unwrap();
    read.sort_by_key(|entry| entry.point.seed);
    assert_eq!(read, [entry(0), entry(1)]);
}

#[test]
fn unknown_measures_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let text = String::from_utf8(three(&path)).unwrap();
    std::fs::write(&path, text.replace("throughput", "fame")).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    for told in [":2:", "no measure \"fame\"", "another version", "--results"] {
        assert!(error.contains(told), "{error}");
    }
}
