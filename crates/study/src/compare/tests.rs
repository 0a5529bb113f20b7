//! From what is varied to tables.

use super::*;
use crate::laboratory::with_phase;
use crate::laboratory::{Computer, Entry, MadeBy, Outcome, Point};
use runner::measures::{Figures, Measure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;

fn varied(texts: &[&str]) -> Vec<Variation> {
    texts
        .iter()
        .map(|text| Variation::parse(text).unwrap())
        .collect()
}

fn grid() -> Grid {
    let variations = varied(&["spin=wopd,wapd", "vm.a.dedicated-harts=[0,1],[2,3]"]);
    Grid::new(&variations, 3, &Computer::Qemu).unwrap()
}

#[test]
fn every_combination_is_there_once() {
    let labels: Vec<String> = grid().combinations.iter().map(Combination::label).collect();
    let expected = [
        "spin=wopd vm.a.dedicated-harts=[0,1]",
        "spin=wopd vm.a.dedicated-harts=[2,3]",
        "spin=wapd vm.a.dedicated-harts=[0,1]",
        "spin=wapd vm.a.dedicated-harts=[2,3]",
    ];
    assert_eq!(labels, expected);
    let points = grid().points(
        Path::new("a.toml"),
        &[String::from("harts=2")],
        &Computer::Qemu,
    );
    assert_eq!(points.len(), 12);
    assert_eq!(
        points[5].changes,
        ["harts=2", "spin=wopd", "vm.a.dedicated-harts=[2,3]"]
    );
    assert_eq!(points[5].seed, 2);
}

#[test]
fn a_profile_changes_the_computer() {
    let machine = Computer::Machine { profile: None };
    let variations = varied(&["profile=ideal,rocket-h"]);
    let points =
        Grid::new(&variations, 1, &machine)
            .unwrap()
            .points(Path::new("a.toml"), &[], &machine);
    let profile = Some(String::from("rocket-h"));
    assert_eq!(points[1].computer, Computer::Machine { profile });
    assert!(points[1].changes.is_empty());
    let error = Grid::new(&variations, 1, &Computer::Qemu).unwrap_err();
    assert_eq!(error, GridError::ProfileOnQemu);
}

#[test]
fn mistakes_are_named() {
    for text in ["spin", "=a", "spin=", "spin=a,,b", "spin=a,b,a"] {
        assert!(Variation::parse(text).is_err(), "{text}");
    }
    let twice = varied(&["spin=a,b", "spin=c"]);
    let error = Grid::new(&twice, 1, &Computer::Qemu).unwrap_err();
    assert_eq!(error, GridError::KeyTwice(String::from("spin")));
    let many = varied(&["a=1,2"]);
    let error = Grid::new(&many, u32::MAX, &Computer::Qemu).unwrap_err();
    assert!(matches!(error, GridError::TooMany(_)));
}

fn entry(point: Point, outcome: Outcome) -> Entry {
    let made_by = MadeBy {
        partita: String::new(),
        system: String::new(),
        profile: None,
        files: BTreeMap::new(),
    };
    Entry {
        id: Fingerprint::of(b""),
        point,
        made_by,
        outcome,
    }
}

#[test]
fn figures_are_compared_phase_by_phase() {
    let grid = Grid::new(&varied(&["spin=wopd,wapd"]), 3, &Computer::Qemu).unwrap();
    let points = grid.points(Path::new("a.toml"), &[], &Computer::Qemu);
    // The second is twice the first in every phase, though the phases differ by more than that.
    let etr = [1.0, 10.0, 100.0, 2.0, 20.0, 200.0];
    let mut entries: Vec<Entry> = points
        .into_iter()
        .zip(etr)
        .map(|(point, etr)| {
            let figures = Figures::from([(Measure::Throughput, etr)]);
            entry(point, Outcome::of_figures(figures))
        })
        .collect();
    let comparison = Comparison::new(&grid, &entries, 0.0);
    let cell = comparison.cell(1, "throughput").unwrap();
    assert_eq!(cell.value.median, 20.0);
    let ratio = cell.ratio.unwrap();
    assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
    assert!(
        comparison
            .csv()
            .contains("spin=wapd,throughput,completions/s,3,20,2,200,0.75,2,2,2")
    );

    // A column for each key that is varied, by which programs choose.
    let csv = comparison.csv();
    assert!(csv.starts_with("spin,combination,measure,"), "{csv}");
    assert!(csv.contains("\nwapd,spin=wapd,throughput,"), "{csv}");

    entries[4].outcome = Outcome::Failed(String::from("lost"));
    let comparison = Comparison::new(&grid, &entries, 0.0);
    assert!(comparison.has_failures());
    assert_eq!(comparison.rows[1].failures, [(1, String::from("lost"))]);
    assert_eq!(
        comparison.cell(1, "throughput").unwrap().value.median,
        101.0
    );
    let table = comparison.table("throughput").to_string();
    assert!(table.contains("2 of 3"), "{table}");
}

/// A comparison of two methods with these throughputs by method and seed; no figure is a run that failed.
fn compared(seeds: u32, etr: impl Fn(bool, u64) -> Option<f64>) -> Comparison {
    compared_within(0.0, seeds, etr)
}

/// A comparison of two methods with a smallest effect that counts.
fn compared_within(
    smallest: f64,
    seeds: u32,
    etr: impl Fn(bool, u64) -> Option<f64>,
) -> Comparison {
    let grid = Grid::new(&varied(&["spin=wopd,wapd"]), seeds, &Computer::Qemu).unwrap();
    let points = grid.points(Path::new("a.toml"), &[], &Computer::Qemu);
    let entries = points.into_iter().map(|point| {
        let second = point.changes.contains(&String::from("spin=wapd"));
        let outcome = match etr(second, point.seed) {
            None => Outcome::Failed(String::from("it took longer than it may")),
            Some(etr) => Outcome::of_figures(Figures::from([(Measure::Throughput, etr)])),
        };
        entry(point, outcome)
    });
    Comparison::new(&grid, &entries.collect::<Vec<_>>(), smallest)
}

#[test]
fn legend_counts_finished_runs_only() {
    let legend = |comparison: Comparison| comparison.legend(&["throughput"]);
    let none = legend(compared(3, |_, _| None));
    assert!(
        none.contains("No run finished") && !none.contains('%'),
        "{none}"
    );
    // Of the second's three runs two finished: their interval holds the median with one half.
    let two = legend(compared(3, |second, seed| {
        (!second || seed < 2).then_some(1.0 + seed as f64)
    }));
    assert!(
        two.contains("50.0 %") && two.contains("1 of 6 runs"),
        "{two}"
    );
    let one = legend(compared(1, |second, _| {
        Some(if second { 2.0 } else { 1.0 })
    }));
    assert!(!one.contains('%') && one.contains("may be chance"), "{one}");
    assert!(one.contains("One start phase alone"), "{one}");
    let six = legend(compared(6, |_, seed| Some(seed as f64 + 1.0)));
    assert!(six.contains("96.9 %") && !six.contains("Six"), "{six}");
    // What is not shown does not count.
    let shown = compared(3, |_, seed| Some(seed as f64)).legend(&["busy"]);
    assert!(!shown.contains('%'), "{shown}");
}

#[test]
fn identical_start_phases_are_reported() {
    let comparison = compared(4, |second, seed| {
        Some(if second { 2.0 } else { seed as f64 + 1.0 })
    });
    let said = comparison.legend(&["throughput"]);
    assert!(
        said.contains("The seeds had no effect: the runs of spin=wapd agree"),
        "{said}"
    );
    assert!(
        said.contains("--start-at") && said.contains("seed="),
        "{said}"
    );
    // A point is no interval.
    let table = comparison.table("throughput").to_string();
    assert!(!table.contains("2.000 .. 2.000"), "{table}");
    let all = compared(4, |_, _| Some(2.0)).legend(&["throughput"]);
    assert!(all.contains("the runs of every row agree"), "{all}");
    // Equal in one figure, not in all.
    let varied = compared(4, |_, seed| Some(seed as f64 + 1.0)).legend(&["throughput"]);
    assert!(!varied.contains("no effect"), "{varied}");
}

#[test]
fn best_is_named_with_its_lead() {
    // More throughput is better; the second has a fifth more in every phase.
    let told = compared(6, |second, seed| {
        Some((seed + 1) as f64 * if second { 1.2 } else { 1.0 })
    });
    let line = told.verdict("throughput").unwrap();
    assert_eq!(
        line,
        "best: spin=wapd, 1.200 [1.200, 1.200] of the next, spin=wopd"
    );
    // Forecast in some phases, behind in others.
    let open = compared(6, |second, seed| {
        Some(
            (seed + 1) as f64
                * if second && seed % 2 == 0 {
                    1.3
                } else if second {
                    0.9
                } else {
                    1.0
                },
        )
    });
    assert!(
        open.verdict("throughput")
            .unwrap()
            .starts_with("undecided: "),
        "{:?}",
        open.verdict("throughput")
    );
    let one = compared(1, |second, _| Some(if second { 2.0 } else { 1.0 }));
    assert!(one.verdict("throughput").unwrap().contains(
        "no verdict: 1 seed is too few; use --seeds 6: spin=wapd is 2.000, from one run,"
    ));
    // A lead that is surely smaller than what counts is none.
    let slight = |second, seed| Some((seed + 1) as f64 * if second { 1.002 } else { 1.0 });
    let line = compared_within(0.01, 6, slight)
        .verdict("throughput")
        .unwrap();
    assert_eq!(
        line,
        "equal within 1.000 %: spin=wapd is 1.002 [1.002, 1.002] of spin=wopd"
    );
    // What says what happened, and not how well, has no best; nor has a single row.
    assert_eq!(told.verdict("guest-utilisation"), None);
    assert_eq!(
        compared(3, |second, seed| (!second).then_some(seed as f64)).verdict("throughput"),
        None
    );
}

#[test]
fn best_of_three_uses_all_pairs() {
    let compared = |seeds| {
        let grid = Grid::new(&varied(&["spin=rslp,wopd,wapd"]), seeds, &Computer::Qemu).unwrap();
        let points = grid.points(Path::new("a.toml"), &[], &Computer::Qemu);
        let entries = points.into_iter().map(|point| {
            let factor = match &point.changes[0][..] {
                "spin=wapd" => 1.2,
                "spin=wopd" => 1.1,
                _ => 1.0,
            };
            let etr = (point.seed + 1) as f64 * factor;
            let figures = Figures::from([(Measure::Throughput, etr)]);
            entry(point, Outcome::of_figures(figures))
        });
        let entries: Vec<Entry> = entries.collect();
        let comparison = Comparison::new(&grid, &entries, 0.0);
        comparison.verdict("throughput").unwrap()
    };
    // Three pairs: 2 * 2^-6 = 0.031 is above 0.05 / 3, and 2 * 2^-7 = 0.0156 below.
    assert!(compared(6).starts_with("no verdict: 6 seeds are too few; use --seeds 7"));
    let line = compared(7);
    assert!(line.starts_with("best: spin=wapd, "), "{line}");
    assert!(line.ends_with("(3 pairs, decided together)"), "{line}");
}

#[test]
fn each_exerciser_gets_own_phase() {
    let folder = tempfile::tempdir().unwrap();
    let system = folder.path().join("system.toml");
    std::fs::write(folder.path().join("kernel"), "").unwrap();
    let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n";
    let lines = ["exercise=work", "exercise=work seed=5", "exercise=boot"];
    let mut text = String::from("harts = 1\nmemory = \"1 GiB\"\n");
    for (name, line) in ["a", "b", "c"].iter().zip(lines) {
        text += &format!("[vm.{name}]\n{vm}command-line = \"{line}\"\n");
    }
    std::fs::write(&system, text).unwrap();
    let phase = |seed| {
        with_phase(Point {
            system: PathBuf::from(&system),
            changes: Vec::new(),
            computer: Computer::Qemu,
            seed,
            ..Point::default()
        })
        .unwrap()
    };
    assert_eq!(
        phase(0).changes,
        ["vm.a.command-line=\"exercise=work seed=1\""]
    );
    assert_ne!(phase(0).changes, phase(1).changes);
    // What it becomes is a system still.
    let line = &phase(7).read().unwrap().vms[0].command_line;
    assert_eq!(line, "exercise=work seed=22");
}

#[test]
fn short_keys_are_written_out() {
    let folder = tempfile::tempdir().unwrap();
    let system = folder.path().join("system.toml");
    std::fs::write(folder.path().join("kernel"), "").unwrap();
    let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n\
              command-line = \"exercise=work think-us=5\"\n";
    let text = format!("harts = 2\nmemory = \"1 GiB\"\n[vm.a]\n{vm}[vm.b]\n{vm}");
    std::fs::write(&system, text).unwrap();
    let point = |change: &str, profile: Option<&str>| Point {
        system: system.clone(),
        changes: vec![String::from(change)],
        computer: Computer::Machine {
            profile: profile.map(String::from),
        },
        seed: 0,
        ..Point::default()
    };
    let changes = |change| {
        let point = expand(point(change, None), folder.path());
        point.map(|point| point.changes)
    };
    assert_eq!(
        changes("vms=1").unwrap(),
        ["vm.b.autostart=false", "when-idle=\"power-off\""]
    );
    assert!(changes("vms=2").unwrap().is_empty());
    assert_eq!(
        changes("vcpus=2").unwrap(),
        ["vm.a.vcpus=2", "vm.b.vcpus=2"]
    );
    assert_eq!(
        changes("guest-interrupt-files=3").unwrap(),
        ["guest-interrupt-files=3"]
    );
    let line = "vm.a.command-line=\"exercise=work think-us=70\"";
    assert_eq!(changes("guest.think-us=70").unwrap()[0], line);
    for change in [
        "vms=0",
        "vms=3",
        "vms=x",
        "guest.think-us=long",
        "profile.costs.trap=1",
    ] {
        assert!(changes(change).is_err(), "{change}");
    }

    let swept = expand(
        point("profile.costs.trap=77", Some("rocket-h")),
        folder.path(),
    )
    .unwrap();
    let Computer::Machine {
        profile: Some(path),
    } = swept.computer
    else {
        panic!("no profile")
    };
    let profile = machine::timing::Profile::find(&path).unwrap();
    let mut expected = machine::timing::Profile::named("rocket-h").unwrap();
    expected.costs.trap = 77;
    assert_eq!(profile, expected);
    for change in [
        "profile.costs.trapp=1",
        "profile.cost.trap=1",
        "profile.costs.trap=x",
        "profile.costs.trap=",
        "profile.prefetcher={ streams = 8",
    ] {
        assert!(
            expand(point(change, Some("rocket-h")), folder.path()).is_err(),
            "{change}"
        );
    }
}
