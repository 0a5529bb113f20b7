//! From console lines to a report.

use super::*;
use crate::measures::{Figures, Measure};
use abi::monitor::{self as records, Cycles, HartCounters, Header, Ticks, VmId, VmName, VmRecord};

/// A console's text with one report in it: two VMs, of which the second did nothing.
fn console() -> String {
    let mut text = String::from("[partita] hello\n");
    let header = Header {
        timebase: 10_000_000,
        elapsed: Ticks(40_000_000),
    };
    let mut report = records::Report::default();
    report.begin(&mut text, header).unwrap();
    let vms = [
        ("web", VmState::Stopped, StopReason::PowerOff),
        ("spare", VmState::Defined, StopReason::None),
    ];
    for (id, (name, state, reason)) in vms.into_iter().enumerate() {
        let (vm, name) = (VmId(id as u8), VmName::new(name).unwrap());
        let record = VmRecord {
            vm,
            name,
            state,
            stop_reason: reason,
            restarts: 0,
        };
        report.vm(&mut text, &record).unwrap();
    }
    let hart = HartCounters {
        elapsed: Cycles(1000),
        idle: Cycles(250),
        scheduling: Cycles(10),
    };
    report.hart(&mut text, HartId(0), &hart).unwrap();
    let mut counters = WorkCounters::new();
    counters.guest = Cycles(500);
    counters.scheduling = Cycles(40);
    counters.dispatches = 7;
    counters.injected = 30;
    counters.exit(ExitCause::Wfi, Cycles(100));
    counters.exit(ExitCause::Wfi, Cycles(60));
    counters.exit(ExitCause::Csr, Cycles(40));
    let mut line = records::WorkLine::FIRST;
    while let Some(next) = report
        .work(&mut text, (VmId(0), HartId(0)), &counters, line)
        .unwrap()
    {
        line = next;
    }
    report.end(&mut text).unwrap();
    text
}

fn collected(extra: &[(&str, &str)]) -> Collector {
    let mut collector = Collector::new();
    for line in console().lines() {
        collector.line(None, line);
    }
    for (vm, line) in extra {
        assert!(!collector.line(Some(vm), line));
    }
    collector
}

#[test]
fn a_report_is_gathered() {
    let interrupts = "partita-guest interrupts timer=100 ipi=20 device=10 total=130";
    let report = collected(&[("web", interrupts)]).report().unwrap();
    assert_eq!(report.seconds, 4.0);
    let [web, spare] = &report.vms[..] else {
        panic!("{} VMs", report.vms.len())
    };
    assert!(web.is_orderly() && spare.is_orderly());
    assert_eq!(
        (web.injected(), web.direct(), web.exits("wfi")),
        (30, Some(100), 2)
    );
    assert_eq!((web.work[0].guest, web.work[0].simulation), (500, 200));
    assert!(spare.work.is_empty());

    let text = report.to_string();
    for words in [
        ["web", "50.00 %"],
        ["wfi", "0.5"],
        ["(no VM)", "25.00 %"],
        ["web", "power-off"],
        ["1 hart,", "4.000 s"],
    ] {
        assert!(
            text.lines()
                .any(|line| words.iter().all(|word| line.contains(word))),
            "no line of\n{text}\nhas {words:?}"
        );
    }
}

#[test]
fn table_and_measures_agree_on_waits() {
    let report = collected(&[]).report().unwrap();
    let whole: u64 = report.harts.iter().map(|hart| hart.elapsed).sum();
    let held: u64 = report
        .vms
        .iter()
        .flat_map(|vm| &vm.work)
        .map(|work| work.guest)
        .sum();
    let held = held as f64 * 100.0 / whole as f64;
    let figures = |busy: f64| Figures::from([(Measure::GuestUtilisation, busy)]);
    let said = crate::summary::waits(&report, &figures(held - 7.25)).unwrap();
    for figure in [held, held - 7.25, 7.25] {
        assert!(said.contains(&format!("{figure:.2} %")), "{said}");
    }
    assert_eq!(crate::summary::waits(&report, &figures(held)), None);
    // A call of a guest to its firmware, and not what `spin-exits-per-busy-second` counts.
    let text = report.to_string();
    assert!(text.contains("SBI calls"), "{text}");
}

#[test]
fn report_with_lost_line_is_none() {
    let mut collector = Collector::new();
    let text = console();
    for line in text.lines().filter(|line| !line.contains("cause=wfi")) {
        collector.line(None, line);
    }
    assert_eq!(collector.report(), None);
    assert_eq!(collector.errors().len(), 1);
}

#[test]
fn a_guest_cannot_write_a_report() {
    let mut collector = Collector::new();
    for line in console().lines() {
        assert!(!collector.line(Some("web"), line));
    }
    assert_eq!(collector.report(), None);
}

#[test]
fn guest_failures_take_bounded_memory() {
    let mut collector = Collector::new();
    for _ in 0..100_000 {
        collector.line(Some("web"), "exerciser: FAIL again");
    }
    assert!(collector.failures().len() <= 100);
}

#[test]
fn failures_of_guests_are_kept() {
    let collector = collected(&[
        (
            "web",
            "partita-guest result workload=fio ok=no seconds=1 rounds=1",
        ),
        (
            "web",
            "partita-guest result workload=hackbench ok=yes seconds=1 rounds=1",
        ),
        ("web", "partita-guest complaints count=2"),
        ("spare", "partita-guest complaints count=0"),
        ("web", "partita-guest job workload=batch number=3 ok=no"),
        ("web", "partita-guest job workload=batch number=4 ok=yes"),
        ("web", "partita-guest end ok=no seconds=3"),
        ("spare", "partita-guest end ok=yes seconds=3"),
        ("spare", "exerciser: PASS work elapsed-us=5"),
        ("late", "exerciser: unknown parameter `jbos`"),
        ("late", "exerciser: FAIL work elapsed-us=5"),
        ("alone", "exerciser: FAIL work elapsed-us=5"),
    ]);
    let expected = [
        "web: the workload fio failed",
        "web: the kernel complained 2 times",
        "web: job 3 of the workload batch failed",
        "web: its work did not end well (ok=no)",
        "late: the exercise failed: work elapsed-us=5, after it said: unknown parameter `jbos`",
        "alone: the exercise failed: work elapsed-us=5",
    ];
    assert_eq!(collector.failures(), expected);
}
