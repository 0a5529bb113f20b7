//! From what a run reported to its measures.

use super::*;
use crate::report::{Exits, HartReport, Report, VmReport, Work};
use crate::table::number;
use crate::workloads::Guests;
use std::collections::BTreeMap;
use std::time::Duration;

/// Paper 000, table 3, case 1, WAPD: four harts, 43.75 % in guests, 2.48 % scheduling; paper 002, table 1, #1: 2.45 %
/// simulation, 4,800 jobs. A hart has 1,000,000 cycles here.
fn case_one() -> (Report, Guests) {
    let exits = |count, cycles| Exits { count, cycles };
    let work = |hart| Work {
        hart,
        guest: 437_500,
        scheduling: 20_000,
        simulation: 24_500,
        dispatches: 10,
        calls: 3,
        injected: 0,
        exits: BTreeMap::from([
            ("wrs-nto".into(), exits(200, 14_500)),
            ("wfi".into(), exits(100, 10_000)),
        ]),
        events: BTreeMap::from([
            ("futile-dispatch".into(), 5),
            ("request-fast".into(), 197),
            ("request-general".into(), 3),
        ]),
    };
    let vm = VmReport {
        name: String::from("one"),
        state: "stopped".into(),
        stop_reason: "power-off".into(),
        restarts: 0,
        guest_interrupts: None,
        work: (0..4).map(work).collect(),
    };
    let hart = |hart| HartReport {
        hart,
        elapsed: 1_000_000,
        idle: 513_200,
        scheduling: 4_800,
    };
    let report = Report {
        seconds: 2.0,
        vms: vec![vm],
        harts: (0..4).map(hart).collect(),
        own_memory: Some(3156),
    };
    let mut guests = Guests::default();
    let lines = [
        "exerciser: work completions=1200 elapsed-us=1014000000 completions-per-second=1.183 reads=7",
        "exerciser: work response-ns count=1200 min=1 mean=5 p50=8000000 p99=9000000 max=9",
        "exerciser: work spins=50 polls=150 excessive=0 out-of-order=0",
    ];
    for vm in ["one", "two", "three", "four"] {
        for line in lines {
            guests.line(vm, line, Duration::ZERO);
        }
    }
    guests.line(
        "two",
        "exerciser: work completions=1200 elapsed-us=1015012688",
        Duration::ZERO,
    );
    guests.line(
        "two",
        "exerciser: work response-ns p99=12000000 p50=1",
        Duration::ZERO,
    );
    (report, guests)
}

fn near(figures: &Figures, name: &str, expected: f64, within: f64) {
    let value = figures.named(name).unwrap_or(f64::NAN);
    assert!(
        (value - expected).abs() <= within,
        "{name}: {value}, not {expected}"
    );
}

#[test]
fn the_papers_figures_follow_from_each_other() {
    let (report, guests) = case_one();
    let inputs = Inputs {
        report: Some(&report),
        hardware: None,
        storms: None,
        exit_latency: &[],
        guests: &guests,
    };
    let figures = compute(&inputs);
    near(&figures, "throughput", 4.729, 0.0005);
    // 9.690 in the paper's table 3, from its ETR and the three shares, two of them rounded.
    near(&figures, "completions-per-busy-second", 9.690, 0.03);
    near(&figures, "guest-utilisation", 43.75, 1e-9);
    near(&figures, "scheduling-overhead", 2.48, 1e-9);
    near(&figures, "hypervisor-memory", 3156.0, 1e-9);
    near(&figures, "simulation-overhead", 2.45, 1e-9);
    near(&figures, "simulation-overhead.wrs-nto", 1.45, 1e-9);
    near(&figures, "idle", 51.32, 1e-9);
    near(&figures, "events.futile-dispatch", 20.0, 1e-9);
    near(&figures, "fast-path-ratio", 98.5, 1e-9);
    let parts = [
        Measure::GuestUtilisation,
        Measure::SchedulingOverhead,
        Measure::Idle,
    ];
    let parts: f64 = parts.iter().filter_map(|part| figures.get(*part)).sum();
    near(&figures, "simulation-overhead", 100.0 - parts, 1e-9);
    // 800 exits in 2 s of which 48.68 % were busy.
    near(&figures, "spin-exits-per-busy-second", 800.0 / 0.9736, 0.1);
    near(&figures, "response-p50", 8.0, 1e-9);
    near(&figures, "response-p99", 12.0, 1e-9);
    near(&figures, "polls-per-spin", 3.0, 1e-9);
    assert_eq!(figures.get(Measure::TlbMpki), None);
    assert_eq!(figures.get(Measure::ResponseP999), None);
}

#[test]
fn every_figure_has_a_definition() {
    let (report, guests) = case_one();
    let inputs = Inputs {
        report: Some(&report),
        hardware: None,
        storms: None,
        exit_latency: &[],
        guests: &guests,
    };
    let figures = compute(&inputs);
    let text = show(&figures).to_string();
    for name in figures.names() {
        let explained = explain(name.as_str()).unwrap();
        assert!(explained.starts_with(name.as_str()), "{explained}");
        assert!(text.contains(name.as_str()), "{name} is not in the table");
    }
    let error = explain("respons-p50").unwrap_err();
    assert!(error.contains("did you mean response-p50?"), "{error}");
}

#[test]
fn host_interrupts_are_those_of_hs_mode() {
    let traps = |causes: &[(&str, u64)]| {
        let causes = causes.iter().copied();
        causes
            .map(|(cause, count)| (String::from(cause), count))
            .collect()
    };
    let hart = |hart| machine::monitor::HartReport {
        hart,
        cycles: 0,
        instructions: 0,
        mean_instruction_picoseconds: None,
        total: BTreeMap::new(),
        modes: BTreeMap::new(),
        virtual_machines: BTreeMap::new(),
        exits: BTreeMap::new(),
        exits_to_machine: BTreeMap::new(),
        traps: BTreeMap::from([
            (
                "HS".into(),
                traps(&[
                    ("supervisor guest external interrupt", 3),
                    ("machine timer interrupt", 100),
                ]),
            ),
            (
                "VS".into(),
                traps(&[
                    ("supervisor guest external interrupt", 2),
                    ("supervisor timer interrupt", 1),
                    ("virtual supervisor external interrupt", 100),
                    ("virtual instruction", 100),
                ]),
            ),
        ]),
        host_translations: 0,
    };
    let hardware = machine::monitor::Report {
        cycles: 500,
        hertz: 1_000,
        measured: false,
        memory_hash: String::new(),
        longest_hypervisor_stretch: None,
        harts: vec![hart(0), hart(1)],
        devices: Vec::new(),
        definitions: BTreeMap::new(),
    };
    let figures = compute(&Inputs {
        report: None,
        hardware: Some(&hardware),
        storms: None,
        exit_latency: &[],
        guests: &Guests::default(),
    });
    near(&figures, "host-interrupts-per-second.guest", 20.0, 1e-9);
    near(&figures, "host-interrupts-per-second.timer", 4.0, 1e-9);
    near(&figures, "host-interrupts-per-second.external", 0.0, 1e-9);
    near(&figures, "host-interrupts-per-second.software", 0.0, 1e-9);
    near(&figures, "host-interrupts-per-second", 24.0, 1e-9);
    assert!(figures.names().all(|name| explain(name.as_str()).is_ok()));
}

#[test]
fn instruction_time_includes_part_of_walks() {
    // Two harts with one guest: half of it in each mode, on each of them.
    let counts = || {
        let events = [
            ("cycles", 325_000),
            ("waited-cycles", 12_500),
            ("instructions", 125_000),
            ("walks", 2_500),
            ("walk-cycles", 62_500),
        ];
        events
            .map(|(event, count)| (event.into(), count))
            .into_iter()
            .collect()
    };
    let hart = |hart| machine::monitor::HartReport {
        hart,
        cycles: 1_000_000,
        instructions: 300_000,
        mean_instruction_picoseconds: None,
        total: BTreeMap::new(),
        modes: BTreeMap::new(),
        virtual_machines: BTreeMap::from([(
            1,
            machine::monitor::VirtualReport {
                supervisor: counts(),
                user: counts(),
                exits: BTreeMap::new(),
            },
        )]),
        exits: BTreeMap::new(),
        exits_to_machine: BTreeMap::new(),
        traps: BTreeMap::new(),
        host_translations: 0,
    };
    let hardware = machine::monitor::Report {
        cycles: 1_000_000,
        hertz: 45_000_000,
        measured: true,
        memory_hash: String::new(),
        longest_hypervisor_stretch: None,
        harts: vec![hart(0), hart(1)],
        devices: Vec::new(),
        definitions: BTreeMap::new(),
    };
    let guests = Guests::default();
    let figures = compute(&Inputs {
        report: None,
        hardware: Some(&hardware),
        storms: None,
        exit_latency: &[],
        guests: &guests,
    });
    near(&figures, "guest-instructions", 0.25, 1e-9);
    near(&figures, "guest-page-walks", 0.005, 1e-9);
    near(&figures, "guest-tlb-miss-ratio", 2.0, 1e-9);
    near(&figures, "guest-cycles-per-walk", 25.0, 1e-9);
    near(&figures, "guest-cpi", 2.5, 1e-9);
    // MIET = T0 + NITR x AT.
    near(&figures, "guest-base-cpi", 2.5 - 0.02 * 25.0, 1e-9);
}

#[test]
fn per_cent_of_native() {
    // Paper 002, table 1, #4: 16.34 against 16.90 natively is 96.69 %.
    let run = Figures::from([
        (Measure::Throughput, 16.34),
        (Measure::CompletionsPerBusySecond, 1.0),
    ]);
    let native = Figures::from([
        (Measure::Throughput, 16.90),
        (Measure::CompletionsPerBusySecond, 1.25),
    ]);
    let figures = relative(&run, &native);
    near(&figures, "relative-throughput", 96.69, 0.005);
    near(
        &figures,
        "elapsed-time-expansion",
        100.0 * (16.90 / 16.34 - 1.0),
        1e-9,
    );
    near(&figures, "cpu-time-expansion", 25.0, 1e-9);
    assert!(relative(&run, &Figures::new()).is_empty());
}

#[test]
fn guest_lines_give_only_own_figures() {
    let mut guests = Guests::default();
    for line in [
        "exerciser: work completions=NaN elapsed-us=inf",
        "exerciser: work completions=",
        "exerciser: work",
        "exerciser: PASS completions=4",
        "work completions=5",
    ] {
        guests.line("web", line, Duration::ZERO);
    }
    assert_eq!(guests, Guests::default());
}

#[test]
fn numbers_have_four_digits() {
    let cases = [
        (0.0, "0"),
        (12_345.6, "12346"),
        (1.2345678, "1.235"),
        (-97.66, "-97.66"),
        (0.000123456, "0.0001235"),
        (1e-12, "0.000000000"),
    ];
    for (value, expected) in cases {
        assert_eq!(number(value), expected);
    }
}

#[test]
fn debian_jobs_are_timed_by_their_lines() {
    let mut guests = Guests::default();
    let mut say = |seconds: u64, line: &str| {
        guests.line(
            "web",
            &format!("partita-guest {line}"),
            Duration::from_secs(seconds),
        );
    };
    say(2, "start workload=batch cpus=2 disk=yes");
    say(3, "begin workload=batch number=1");
    say(4, "begin workload=batch number=2");
    say(7, "job workload=batch number=2 name=link ok=yes");
    say(8, "job workload=batch number=1 ok=yes");
    // A job that failed is no end, and one that never began has no time.
    say(9, "begin workload=batch number=3");
    say(10, "job workload=batch number=3 ok=no");
    say(12, "job workload=batch number=9 ok=yes");
    say(13, "result workload=batch ok=no seconds=9 rounds=1");
    let web = guests.vm("web").unwrap();
    assert_eq!(web.get("completions"), Some(3.0));
    assert_eq!(web.get("elapsed-us"), Some(10e6));
    assert_eq!(web.get("response-ns.p50"), Some(3e9));
    assert_eq!(web.get("response-ns.p99"), Some(5e9));
    assert_eq!(web.get("job-ns.link"), Some(3e9));
    // A guest that only says when it starts and ends has counted nothing.
    guests.line("db", "partita-guest start workload=boot", Duration::ZERO);
    guests.line(
        "db",
        "partita-guest result workload=boot",
        Duration::from_secs(1),
    );
    assert_eq!(guests.vm("db"), None);
}

/// Jobs that one line ends and begins, in a part of the work.
#[test]
fn part_counts_jobs_that_end_inside() {
    let mut guests = Guests::default();
    let say = |guests: &mut Guests, seconds: u64, line: &str| {
        let line = format!("partita-guest {line}");
        guests.line("db", &line, Duration::from_secs(seconds));
    };
    say(&mut guests, 1, "begin number=1");
    say(&mut guests, 2, "next 1");
    say(&mut guests, 2, "begin number=2");
    guests.begin("db", Duration::from_secs(4));
    // Both had begun before.
    say(&mut guests, 5, "next 1");
    say(&mut guests, 8, "next 2");
    // One that failed is no end, and the next that this client begins is not known.
    say(&mut guests, 9, "job number=2 ok=no");
    say(&mut guests, 10, "next 2");
    say(&mut guests, 11, "underway");
    guests.end("db", Duration::from_secs(14));
    say(&mut guests, 15, "next 1");
    let db = guests.vm("db").unwrap();
    assert_eq!(db.get("completions"), Some(3.0));
    assert_eq!(db.get("elapsed-us"), Some(10e6));
    assert_eq!(db.get("response-ns.p50"), Some(3e9));
    assert_eq!(db.get("response-ns.p99"), Some(6e9));
}

/// Where several VMs count their ends, each has a throughput of its own, by its own time.
#[test]
fn each_of_several_vms_has_a_throughput() {
    let figures = |lines: &[(&str, &str)]| {
        let mut guests = Guests::default();
        for (vm, line) in lines {
            guests.line(vm, line, Duration::ZERO);
        }
        compute(&Inputs {
            report: None,
            hardware: None,
            storms: None,
            exit_latency: &[],
            guests: &guests,
        })
    };
    let one = ("one", "exerciser: work completions=100 elapsed-us=2000000");
    let alone = figures(&[one]);
    assert_eq!(alone.named("throughput"), Some(50.0));
    assert_eq!(alone.named("throughput.one"), None, "it is the whole's");
    let both = figures(&[
        one,
        ("two", "exerciser: work completions=30 elapsed-us=1000000"),
    ]);
    assert_eq!(both.named("throughput.one"), Some(50.0));
    assert_eq!(both.named("throughput.two"), Some(30.0));
    assert_eq!(
        both.named("throughput"),
        Some(65.0),
        "in the longer of the times"
    );
}

#[test]
fn former_names_are_refused_with_present() {
    for (former, present) in [
        ("etr", "throughput"),
        ("etr.web", "throughput.web"),
        ("busy-per-end", "cpu-time-per-completion"),
        ("pause-time.next-off", "pause-wait-share.waiter-preempted"),
        ("exits-per-wait-within.10", "exits-per-wait-cdf.10"),
    ] {
        let error = explain(former).unwrap_err();
        let expected = format!("the measure {former} is called {present} now");
        assert_eq!(error, expected);
        assert!(explain(present).is_ok(), "{present}");
    }
}

/// No former name is one of another measure, and each present name is one.
#[test]
fn former_names_lead_to_measures() {
    for (former, present) in renamed::RENAMED {
        assert!(known(former).is_err(), "{former}");
        let present = match present.ends_with('.') {
            true => format!("{present}one"),
            false => String::from(present),
        };
        assert!(known(&present).is_ok(), "{present}");
    }
}

#[test]
fn stored_figures_come_under_present_names() {
    let stored = r#"{"ends":3.0,"etr":2.5,"events.spin-begun":4.0,"exits-per-second.wfi":1.0}"#;
    let figures: Figures = serde_json::from_str(stored).unwrap();
    assert_eq!(figures.get(Measure::Throughput), Some(2.5));
    assert_eq!(
        serde_json::to_string(&figures).unwrap(),
        r#"{"completions":3.0,"events.spin-wait":4.0,"exits-per-second.wfi":1.0,"throughput":2.5}"#
    );
    let error = serde_json::from_str::<Figures>(r#"{"charm":1.0}"#).unwrap_err();
    assert!(error.to_string().contains("charm"), "{error}");
}

#[test]
fn measures_have_rows_and_unique_names() {
    let mut names: Vec<&str> = Measure::ALL.iter().map(|measure| measure.name()).collect();
    assert_eq!(Measure::ROWS.len(), names.len());
    for measure in Measure::ALL {
        let member = match measure.is_family() {
            true => format!("{}one", measure.name()),
            false => String::from(measure.name()),
        };
        assert_eq!(Measure::find(&member), Some(*measure));
        let (line, definition) = (measure.line(), measure.definition());
        assert!(!line.is_empty() && definition.ends_with('.'), "{member}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(Measure::ROWS.len(), names.len());
}
