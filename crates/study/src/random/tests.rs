use super::{Floor, alone, draw, milliseconds};
use crate::compare::{Grid, Variation};
use crate::laboratory::{Computer, Entry, MadeBy, Outcome, Point};
use runner::document::RunDocument;
use runner::measures::{FigureName, Figures, Measure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;
use system::{Document, System};

#[test]
fn every_drawn_system_passes_the_check() {
    // What a system names need not be built or fetched yet for its keys to be right.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, [0; 4096]).unwrap();
    let file = file.display().to_string();
    for number in 0..300 {
        let drawn = draw(7, number, 100);
        let text = drawn.text();
        let text = text
            .replace("image:exerciser", &file)
            .replace("image:debian/disk", &file);
        assert!(!text.contains("image:"), "{text}");
        let document = Document::new(Path::new("drawn.toml"), text.clone(), &[]).unwrap();
        let system = System::read(&document);
        assert!(system.is_ok(), "{text}\n{:?}", system.err());
        for guest in &drawn.guests {
            let line = guest.command_line(100);
            let words = exerciser::arguments::Arguments::parse(&line).unwrap();
            let work = exerciser::workload::Workload::parse(&words);
            assert!(work.is_ok(), "{line}: {:?}", work.err());
        }
    }
}

#[test]
fn seed_determines_drawn_systems() {
    let texts = |seed| (0..20).map(move |number| draw(seed, number, 100).text());
    assert!(texts(1).eq(texts(1)));
    let all: BTreeSet<String> = texts(1).chain(texts(2)).collect();
    assert_eq!(all.len(), 40);
}

#[test]
fn the_space_is_covered() {
    let drawn: Vec<_> = (0..300).map(|number| draw(1, number, 100)).collect();
    let guests = || drawn.iter().flat_map(|system| &system.guests);
    for harts in 2..=4 {
        for vms in 2..=4 {
            let here = |system: &&super::Drawn| system.harts == harts && system.guests.len() == vms;
            assert!(drawn.iter().any(|system| here(&system)), "{harts}, {vms}");
        }
    }
    for kind in ["ticket", "swap", "queue"] {
        for spin in ["wrs", "call"] {
            assert!(guests().any(|guest| guest.kind == kind && guest.spin == spin));
        }
    }
    for decade in [60..200, 200..700, 700..2000, 2000..6301] {
        let count = guests()
            .filter(|guest| decade.contains(&guest.hold))
            .count();
        assert!(count > guests().count() / 20, "{decade:?}: {count}");
    }
    assert!(guests().any(|guest| guest.reads > 0));
    assert!(guests().any(|guest| guest.think_us > 0));
    assert!(guests().any(|guest| guest.partner_one_in > 0));
    assert!(guests().any(|guest| guest.locks == 0));
    assert!(drawn.iter().any(|system| {
        let shares: BTreeSet<u64> = system.guests.iter().map(|guest| guest.share).collect();
        shares.len() > 1
    }));
}

#[test]
fn work_is_bounded() {
    for number in 0..300 {
        for guest in draw(3, number, 100).guests {
            let turns = guest.compute + guest.locks * guest.hold;
            assert!(turns <= 20_000 + 12_000, "{guest:?}");
        }
    }
    let lengths = [45_000_000, 1_000_000_000, 2_400_000_000].map(milliseconds);
    assert_eq!(lengths, [600, 150, 120]);
}

/// Two policies, each with two start phases.
fn grid() -> Grid {
    let spin = Variation::parse("spin=wapd,reservation").unwrap();
    Grid::new(&[spin], 2, &Computer::default()).unwrap()
}

fn entry(outcome: Outcome) -> Entry {
    Entry {
        id: Fingerprint::of(b""),
        point: Point::default(),
        made_by: MadeBy::default(),
        outcome,
    }
}

fn finished(figures: Figures) -> Entry {
    let report = Box::new(RunDocument::of_figures(figures));
    entry(Outcome::Finished { report })
}

/// Two VMs with a third and two thirds of the shares.
fn unequal() -> super::Drawn {
    let mut drawn = draw(1, 0, 100);
    drawn.guests.truncate(2);
    drawn.guests[0].share = 50;
    drawn.guests[1].share = 100;
    drawn
}

#[test]
fn each_vm_runs_alone_once() {
    let changes = ["memory=2 GiB", "vm.b.share=7"].map(String::from);
    let files = ["1.toml", "2.toml"].map(PathBuf::from);
    let points = alone(&grid(), &files, &changes, &Computer::default());
    let (first, second) = points.split_at(points.len() / 2);
    assert_eq!(first, second, "the floor is the same for all policies");
    let parts = first
        .iter()
        .map(|point| (point.system.clone(), point.seed, point.changes.clone()));
    let [a, b] = [&changes[..1], &changes[..]].map(<[String]>::to_vec);
    let expected = [(0, 0, &a), (0, 1, &a), (1, 0, &b), (1, 1, &b)];
    let expected =
        expected.map(|(file, seed, changes)| (files[file].clone(), seed, changes.clone()));
    assert!(parts.eq(expected));
}

#[test]
fn a_vm_alone_keeps_its_table() {
    let drawn = unequal();
    let table = |text: &str, vm: &str| {
        let begin = text.find(&format!("[vm.{vm}]")).unwrap();
        let end = text[begin + 1..]
            .find("[vm.")
            .map_or(text.len(), |end| begin + 1 + end);
        String::from(text[begin..end].trim())
    };
    for (place, vm) in ["a", "b"].into_iter().enumerate() {
        let (name, text) = drawn.alone(place).unwrap();
        assert_eq!(name, format!("random-1-0-{vm}"));
        assert_eq!(text.matches("[vm.").count(), 1);
        assert_eq!(table(&text, vm), table(&drawn.text(), vm));
    }
    assert_eq!(drawn.alone(2), None);
}

#[test]
fn floor_ratio_is_ends_over_entitlement() {
    let together = |a: f64, b: f64| {
        let mut figures = Figures::new();
        figures.put_member(Measure::VmThroughput, "a", Some(a));
        figures.put_member(Measure::VmThroughput, "b", Some(b));
        finished(figures)
    };
    let by_itself = |ends| finished(Figures::from([(Measure::Throughput, ends)]));
    let all = [
        [together(40.0, 130.0), together(20.0, 150.0)],
        [together(60.0, 100.0), together(60.0, 100.0)],
    ];
    let each = [90.0, 110.0, 180.0, 220.0].map(by_itself);
    let each = [each.clone(), each].concat();
    let floor = Floor::new(&[unequal()], &grid(), &all.concat(), &each);
    let ratios = |row: usize| {
        let vms = floor.rows[row].vms.iter();
        vms.map(|vm| (vm.ratio * 100.0).round()).collect::<Vec<_>>()
    };
    // Alone they end 100 and 200: a third and two thirds of it are 33.3 and 133.3.
    assert_eq!(ratios(0), [90.0, 105.0]);
    assert_eq!(ratios(1), [180.0, 75.0]);
    let table = floor.table().to_string();
    for cell in ["0.900", "0.975", "0.750", "1.275", "random-1-0"] {
        assert!(table.contains(cell), "{cell}: {table}");
    }
    assert_eq!(floor.rows[1].worst().unwrap().vm, "b");
    assert_eq!(floor.worst_systems(), ["random-1-0"]);
    let json = serde_json::to_value(&floor).unwrap();
    assert_eq!(json["rows"][1]["vms"][1]["alone"], 200.0);
}

#[test]
fn unfinished_runs_have_no_ratio() {
    let mut figures = Figures::new();
    let name = FigureName::member(Measure::VmThroughput, "a");
    figures.put_member(Measure::VmThroughput, "a", Some(50.0));
    assert_eq!(figures.named(name.as_str()), Some(50.0));
    let together = vec![finished(figures); 4];
    let failed = entry(Outcome::Failed(String::from("no answer")));
    let by_itself = finished(Figures::from([(Measure::Throughput, 100.0)]));
    let each = [by_itself.clone(), failed, by_itself.clone(), by_itself];
    let each = [each.clone(), each].concat();
    let floor = Floor::new(&[unequal()], &grid(), &together, &each);
    let row = &floor.rows[0];
    assert_eq!(row.failures, ["random-1-0, a alone: no answer"]);
    let [only] = &row.vms[..] else {
        panic!("{:?}", row.vms);
    };
    // It finished beside the other VM without a single completion.
    assert_eq!((only.vm.as_str(), only.ratio), ("b", 0.0));
}
