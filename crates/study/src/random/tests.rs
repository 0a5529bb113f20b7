use super::{draw, milliseconds};
use std::collections::BTreeSet;
use std::path::Path;
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
