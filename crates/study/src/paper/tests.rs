//! Tests of the papers' files and verdicts.

mod decisions;

use super::*;
use crate::laboratory::statistics::Summary;
use crate::laboratory::verdict::{Answer, Verdict};
use crate::laboratory::{Computer, Entry, MadeBy, Outcome, Point};
use runner::measures::{Figures, Measure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;

fn folder(paper: &str) -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    tree.join("experiments").join(paper)
}

fn published(paper: &str) -> Published {
    Published::read(&folder(paper).join("published.toml")).unwrap()
}

fn value(paper: &Published, table: u32, case: &str, measure: &str, method: &str) -> f64 {
    let case = paper
        .cases
        .iter()
        .find(|one| one.table == table && one.name == case);
    let figures = &case.unwrap().figures;
    let figure = figures.iter().find(|figure| figure.measure == measure);
    figure.unwrap().values[method]
}

#[test]
fn transcription_agrees_with_papers_text() {
    let spins = published("paper-000");
    // The text: WAPD has 0.02 to 0.27 points more overhead than RSLP. 0.27 is case 7's.
    let points: Vec<f64> = (1..=7)
        .map(|case| {
            let of = |method| value(&spins, 3, &case.to_string(), "scheduling-overhead", method);
            of("wapd") - of("rslp")
        })
        .collect();
    let least = points.iter().copied().fold(f64::INFINITY, f64::min);
    let most = points.iter().copied().fold(0.0, f64::max);
    assert!(
        (least - 0.02).abs() < 1e-9 && (most - 0.27).abs() < 1e-9,
        "{points:?}"
    );
    // ITR is ETR over the busy part, which is the guests' part and some more: in each case of table 3 but the fifth,
    // whose ITR does not follow.
    for case in ["1", "2", "3", "4", "6", "7"] {
        let of = |measure| value(&spins, 3, case, measure, "rslp");
        let busy = of("throughput") / of("completions-per-busy-second") * 100.0;
        let least = of("guest-utilisation") + of("scheduling-overhead");
        assert!(
            busy > least - 0.6 && busy < 101.0,
            "case {case}: {busy} {least}"
        );
    }
    let waits = published("paper-002");
    // Table 1, (b - a) / a in per cent, and b / c.
    for (case, gain, part) in [
        ("1", 1.18, 109.75),
        ("2", 0.47, 94.21),
        ("3", 3.82, 99.83),
        ("4", 29.15, 96.69),
        ("5", 22.63, 97.66),
    ] {
        let of = |method| value(&waits, 1, case, "throughput", method);
        let (a, b, c) = (of("active-wait-all"), of("self-wait-all"), of("native"));
        assert!(((b - a) / a * 100.0 - gain).abs() < 0.15, "case {case}");
        assert!((b / c * 100.0 - part).abs() < 0.05, "case {case}");
        let said = value(&waits, 1, case, "relative-throughput", "self-wait-all");
        assert_eq!(said, part);
    }
}

#[test]
fn paper_003_ratios_match_its_frequencies() {
    let paper = published("paper-003");
    let of = |measure, method| value(&paper, 1, "as published", measure, method);
    for (method, said) in [("fixed", 0.6), ("last-host", 2.2)] {
        let nitr = 100.0 * of("guest-page-walks", method) / of("guest-instructions", method);
        assert!((of("guest-tlb-miss-ratio", method) - nitr).abs() < 1e-4);
        assert!((nitr - said).abs() < 0.05, "{nitr}");
    }
    let ratio = of("guest-tlb-miss-ratio", "last-host") / of("guest-tlb-miss-ratio", "fixed");
    // Printed as 3.78.
    assert!((ratio - 3.78).abs() < 0.03, "{ratio}");
}

#[test]
fn systems_do_the_work_that_they_say() {
    for paper in [
        "paper-000",
        "paper-001",
        "paper-002",
        "paper-003",
        "paper-004",
    ] {
        for case in published(paper).cases {
            let path = folder(paper).join(&case.system);
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split_whitespace();
            let words = words.map(|word| word.trim_end_matches('.'));
            let named: Vec<&str> = words.filter(|word| word.ends_with(".args")).collect();
            assert!(!named.is_empty(), "{} names no work", path.display());
            let line = |file: &&str| {
                let work = std::fs::read_to_string(path.with_file_name(file)).unwrap();
                let work: Vec<&str> = work.lines().filter(|line| !line.starts_with('#')).collect();
                format!("command-line = \"{}\"", work.join(" "))
            };
            // A work for each VM, or one for all.
            let works: Vec<String> = named.iter().map(line).collect();
            let lines = text.lines().filter(|line| line.starts_with("command-line"));
            for (place, found) in lines.enumerate() {
                let work = works.get(place).filter(|_| works.len() > 1);
                assert_eq!(found, work.unwrap_or(&works[0]), "{}", path.display());
            }
        }
    }
}

#[test]
fn only_paper_profile_has_papers_hardware() {
    let paper = published("paper-002");
    let test = |on| format!("profile.extensions.pending_test={on}");
    let changes = |name, own| paper.method(name, own).unwrap().1;
    assert!(changes("self-wait-all", true).contains(&test(true)));
    let local = changes("self-wait-local", true);
    assert_eq!(local.last(), Some(&test(false)));
    assert_eq!(paper.method("self-wait-local", false), None);
    // Nor do its scheduler's costs belong to another computer; its rules do.
    assert_eq!(
        changes("self-wait-all", false),
        ["experiment.trap-waits=true"]
    );
    let own = changes("self-wait-all", true);
    assert!(
        own.contains(&String::from("experiment.mode-change-cost=100")),
        "{own:?}"
    );
    // Ours has its own rules, and the same costs.
    let ours = changes("self-wait", true);
    assert_eq!(
        ours[..2],
        ["experiment.trap-waits=true", "experiment.trap-waits=false"]
    );
    assert_eq!(ours[2..], own[1..]);
}

#[test]
fn papers_are_registered_before_runs() {
    let experiments = folder("");
    for paper in [
        "paper-000",
        "paper-001",
        "paper-002",
        "paper-003",
        "paper-004",
    ] {
        let state = registration::state(&experiments, paper, &published(paper)).unwrap();
        let registration::State::Registered { commit, files, .. } = state else {
            panic!("partita paper NAME --register has not been said of {paper}")
        };
        assert!(commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit()));
        // What was published, a profile, and the systems with their workloads; paper 001 has two systems and one workload.
        assert!(files >= 5, "{paper}");
    }
}

#[test]
fn ours_is_compared_with_ours() {
    let paper = published("paper-000");
    let case = &paper.cases[0];
    assert_eq!(paper.base(case, "wapd"), "rslp");
    assert_eq!(paper.base(case, "wapd-ours"), "rslp-ours");
    let (value, changes) = paper.method("wapd", true).unwrap();
    assert_eq!(value, "wapd");
    assert!(changes.contains(&String::from("experiment.affinity=0")));
    let (value, changes) = paper.method("wapd-ours", false).unwrap();
    assert_eq!(
        (value.as_str(), &changes[..]),
        (
            "wapd",
            &[
                String::from("experiment.affinity=0"),
                String::from("experiment.affinity=3")
            ][..]
        )
    );
}

fn summary(low: f64, median: f64, high: f64) -> Summary {
    Summary {
        count: 10,
        median,
        low,
        high,
        confidence: 0.95,
    }
}

#[test]
fn sizes_follow_from_intervals() {
    let of = |paper, (low, median, high)| Size::of(paper, &summary(low, median, high));
    // Half of 1.2 is its root, 1.095, and twice is 1.44.
    assert_eq!(of(1.2, (1.1, 1.15, 1.4)), Some(Size::Alike));
    assert_eq!(of(1.2, (1.02, 1.03, 1.09)), Some(Size::Smaller));
    assert_eq!(of(1.2, (1.45, 1.5, 1.6)), Some(Size::Larger));
    assert_eq!(of(1.2, (1.05, 1.15, 1.2)), None);
    assert_eq!(of(0.9, (0.2, 0.5, 0.6)), Some(Size::Larger));
}

/// A plan for one system with two VMs, and entries whose figures come from `figure`, by method and seed: eight start phases,
/// enough for a table of six comparisons.
fn judged(paper: &str, figure: impl Fn(&Point) -> Figures) -> Judgement {
    judged_with(8, paper, figure)
}

/// A paper's file, and its plan with so many start phases for one system with two VMs.
fn paper_and_plan(seeds: u32, paper: &str) -> (Published, Plan) {
    let tree = tempfile::tempdir().unwrap();
    let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n\
              command-line = \"exercise=work duration-ms=10000 jobs=4\"\n";
    let system = format!("harts = 1\nmemory = \"1 GiB\"\n[vm.a]\n{vm}[vm.b]\n{vm}");
    std::fs::write(tree.path().join("kernel"), "").unwrap();
    std::fs::write(tree.path().join("system.toml"), system).unwrap();
    std::fs::write(tree.path().join("published.toml"), paper).unwrap();
    let paper = Published::read(&tree.path().join("published.toml")).unwrap();
    let wanted = Wanted {
        table: None,
        quick: true,
        seeds,
        computer: Computer::Machine { profile: None },
        hertz: Some(450_000_000),
    };
    let plan = Plan::new(&paper, tree.path(), &wanted).unwrap();
    (paper, plan)
}

/// Judgement of a paper's file by made-up figures.
fn judged_with(seeds: u32, paper: &str, figure: impl Fn(&Point) -> Figures) -> Judgement {
    let (paper, plan) = paper_and_plan(seeds, paper);
    let made_by = MadeBy {
        partita: String::new(),
        system: String::new(),
        profile: None,
        files: BTreeMap::new(),
    };
    let entries: Vec<Entry> = plan
        .points()
        .into_iter()
        .map(|point| Entry {
            id: Fingerprint::of(b""),
            outcome: Outcome::of_figures(figure(&point)),
            point,
            made_by: made_by.clone(),
        })
        .collect();
    judge(&paper, &plan, &entries, registration::State::Never)
}

const PAPER: &str = r#"
title = "t"
source = "s"
vary = "wait"
[[case]]
table = 1
name = "1"
title = "c"
system = "system.toml"
methods = ["host-interrupt", "self-wait"]
quick = { jobs = 2 }
native = { jobs = 8 }
figure = [
  { measure = "throughput", values = { host-interrupt = 1.0, self-wait = 1.2, native = 2.0 } },
  { measure = "relative-throughput", values = { host-interrupt = 50, self-wait = 60 } },
]
claim = [{ text = "more", measure = "throughput", more = "self-wait", less = "host-interrupt" }]
[[negative]]
title = "nothing"
system = "system.toml"
methods = ["host-interrupt", "self-wait"]
measure = "throughput"
tolerance = 1.0
"#;

/// Judgement of runs with this much more throughput under self-wait.
fn gain(point: &Point, gain: f64) -> Figures {
    let method = match point.native {
        true => 2.0,
        false if point.changes.contains(&String::from("wait=self-wait")) => 1.0 + gain,
        false => 1.0,
    };
    let phase = 1.0 + point.seed as f64 / 10.0;
    Figures::from([(Measure::Throughput, phase * method)])
}

#[test]
fn gain_fails_where_impossible() {
    let judgement = judged(PAPER, |point| gain(point, 0.2));
    let [case] = &judgement.cases[..] else {
        panic!("{judgement:?}")
    };
    let effect = case
        .effects
        .iter()
        .find(|effect| effect.measure == "throughput" && effect.method == "self-wait")
        .unwrap();
    assert_eq!(effect.verdict, Some(Verdict::AsInThePaper));
    assert_eq!(effect.size, Some(Size::Alike));
    let of_native = case
        .effects
        .iter()
        .find(|effect| effect.measure == "relative-throughput" && effect.method == "self-wait");
    let of_native = of_native.unwrap().ours.unwrap();
    assert!((of_native.median - 60.0).abs() < 1e-9);
    // Phases differ by more than the gain, but not within a phase.
    assert_eq!(case.claims[0].question.answer, Answer::Above);
    let failures = judgement.failures();
    assert!(failures[0].contains("can be none"), "{failures:?}");
    assert!(show(&judgement).contains("AN EFFECT"));
    let page = page(&judgement, &[], "below", &[]);
    for text in [
        "Table 1, case 1: c",
        "as in the paper",
        "AN EFFECT",
        "below",
    ] {
        assert!(page.contains(text), "{page}");
    }

    // What is surely smaller than the tolerance is shown to be none, and is none where the paper has an effect.
    let judgement = judged(PAPER, |point| gain(point, 0.005));
    assert!(judgement.failures().is_empty());
    assert_eq!(judgement.negatives[0].question.answer, Answer::Within);
    let effects = judgement.cases[0].effects.iter();
    let mut effects = effects.filter(|effect| effect.method == "self-wait");
    let verdict = effects.next().unwrap().verdict;
    assert_eq!(verdict, Some(Verdict::NoneWhereThePaperHasOne));
}

#[test]
fn claim_may_bound_a_ratio() {
    let answer = |times: &str, gained: f64| {
        let paper = PAPER.replacen(
            "less = \"host-interrupt\"",
            &format!("less = \"host-interrupt\", times = {times}"),
            1,
        );
        let judgement = judged(&paper, |point| gain(point, gained));
        let claim = judgement.cases[0].claims[0].clone();
        (claim.question.answer, claim.found)
    };
    assert_eq!(answer("1.1", 0.2).0, Answer::Above);
    let (twice, found) = answer("2", 0.2);
    assert_eq!(twice, Answer::Below);
    assert!(
        found.ends_with("ratio 1.200 [1.200 .. 1.200], wanted above 2"),
        "{found}"
    );
    // A little less counts as no less.
    assert_eq!(answer("0.998", -0.001).0, Answer::Above);
    assert_eq!(answer("0.998", -0.003).0, Answer::Below);
}

#[test]
fn the_model_stands_beside_what_is_measured() {
    let paper = PAPER.replacen(
        "quick = { jobs = 2 }",
        "quick = { jobs = 2 }\nmodel = \"host-interrupt\"",
        1,
    );
    let judgement = judged(&paper, |point| {
        let is_new = point.changes.contains(&String::from("wait=self-wait"));
        // T0 = 3 and AT = 25 cycles, 2 % of walks before and 1 % after.
        let nitr = if is_new { 1.0 } else { 2.0 };
        let time = 3.0 + nitr / 100.0 * 25.0;
        Figures::from([
            (Measure::GuestTlbMissRatio, nitr),
            (Measure::GuestCpi, time),
            (Measure::GuestBaseCpi, 3.0),
            (Measure::GuestCyclesPerWalk, 25.0),
        ])
    });
    let [point] = &judgement.cases[0].model[..] else {
        panic!("{judgement:?}")
    };
    assert_eq!(
        (point.method.as_str(), point.base.as_str()),
        ("self-wait", "host-interrupt")
    );
    let expected = 100.0 * 0.25 / 3.5;
    assert!((point.r.median - 2.0).abs() < 1e-9);
    assert!((point.modelled - expected).abs() < 1e-9, "{point:?}");
    assert!((point.measured.median - expected).abs() < 1e-9, "{point:?}");
    let text = show(&judgement);
    assert!(text.contains("so D 7.1 % with T0 3"), "{text}");
}

#[test]
fn case_may_have_own_computer_and_phases() {
    let tree = tempfile::tempdir().unwrap();
    let own = PAPER
        .replacen(
            "quick = { jobs = 2 }",
            "quick = { jobs = 2 }\nphases = 3\nprofile = \"k3-class\"\nhardware = { \"dtlb.entries\" = 64 }",
            1,
        )
        .replacen(
            "vary = \"wait\"",
            "vary = \"wait\"\nhardware = { wrs_nto_limit = 1 }",
            1,
        );
    std::fs::write(tree.path().join("published.toml"), own).unwrap();
    let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n\
              command-line = \"exercise=work duration-ms=24000 jobs=4\"\n";
    let system = format!("harts = 1\nmemory = \"1 GiB\"\n[vm.a]\n{vm}");
    std::fs::write(tree.path().join("kernel"), "").unwrap();
    std::fs::write(tree.path().join("system.toml"), system).unwrap();
    let paper = Published::read(&tree.path().join("published.toml")).unwrap();
    let plan = |profile: &str| {
        let wanted = Wanted {
            table: None,
            quick: false,
            seeds: 1,
            computer: Computer::Machine {
                profile: Some(String::from(profile)),
            },
            hertz: Some(45_000_000),
        };
        let plan = Plan::new(&paper, tree.path(), &wanted).unwrap();
        (plan.points(), plan.computers(), plan.phases())
    };
    let (points, computers, phases) = plan(PROFILE);
    assert_eq!(phases, (1, 3));
    let (first, negative) = (&points[0], points.last().unwrap());
    let is_on = |point: &Point, name: &str| {
        point.computer
            == Computer::Machine {
                profile: Some(String::from(name)),
            }
    };
    assert!(is_on(first, "k3-class") && is_on(negative, PROFILE));
    let names = computers.iter().map(ToString::to_string);
    assert!(names.eq([first, negative].map(|point| point.computer.to_string())));
    let has = |point: &Point, change: &str| point.changes.iter().any(|one| one.contains(change));
    // 24 s at 45 MHz are 0.45 s at 2.4 GHz. The paper's own hardware is not that computer's; what the case is about is.
    assert!(has(first, "duration-ms=450 ") && has(first, "profile.dtlb.entries=64"));
    assert!(!has(first, "wrs_nto_limit") && has(negative, "wrs_nto_limit"));
    // Who names another computer gets that one.
    assert!(
        plan("rocket-h")
            .0
            .iter()
            .all(|point| is_on(point, "rocket-h"))
    );
}

#[test]
fn missing_figure_shifts_no_other_phase() {
    let paper = PAPER.replace(
        "{ measure = \"relative-throughput\", values = { host-interrupt = 50, self-wait = 60 } }",
        "{ measure = \"elapsed-time-expansion\", values = { host-interrupt = 10, self-wait = 5 } }",
    );
    let judgement = judged(&paper, |point| {
        let waits = point.changes.contains(&String::from("wait=self-wait"));
        // Phase by phase another expansion, and under self-wait half of it.
        let expansion = 0.02 * (point.seed + 1) as f64;
        let etr = match (point.native, waits) {
            (true, _) => 1.0,
            (false, false) => 1.0 / (1.0 + expansion),
            (false, true) => 1.0 / (1.0 + expansion / 2.0),
        };
        let lacks = waits && !point.native && point.seed == 0;
        Figures::from_iter((!lacks).then(|| (Measure::Throughput.into(), etr)))
    });
    let effects = judgement.cases[0].effects.iter();
    let mut of_er =
        effects.filter(|one| one.measure == "elapsed-time-expansion" && one.method == "self-wait");
    let ratios = &of_er.next().unwrap().ratios;
    assert_eq!(ratios.len(), 7);
    assert!(
        ratios.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9),
        "{ratios:?}"
    );
}
