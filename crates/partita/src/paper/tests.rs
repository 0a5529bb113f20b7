//! What the papers' files say, and the verdicts.

use super::*;
use crate::laboratory::statistics::Summary;
use crate::laboratory::verdict::{Answer, Verdict};
use crate::laboratory::{Computer, Entry, Figures, Fingerprint, MadeBy, Outcome, Point};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
fn the_transcription_agrees_with_what_the_papers_say_elsewhere() {
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
        let busy = of("etr") / of("itr") * 100.0;
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
        let of = |method| value(&waits, 1, case, "etr", method);
        let (a, b, c) = (of("active-wait-all"), of("self-wait-all"), of("native"));
        assert!(((b - a) / a * 100.0 - gain).abs() < 0.15, "case {case}");
        assert!((b / c * 100.0 - part).abs() < 0.05, "case {case}");
        let said = value(&waits, 1, case, "native-etr", "self-wait-all");
        assert_eq!(said, part);
    }
}

#[test]
fn the_ratios_of_paper_003_are_those_of_its_frequencies() {
    let paper = published("paper-003");
    let of = |measure, method| value(&paper, 1, "as published", measure, method);
    for (method, said) in [("fixed", 0.6), ("last-host", 2.2)] {
        let nitr = 100.0 * of("guest-walks", method) / of("guest-instructions", method);
        assert!((of("guest-tlb-miss-ratio", method) - nitr).abs() < 1e-4);
        assert!((nitr - said).abs() < 0.05, "{nitr}");
    }
    let ratio = of("guest-tlb-miss-ratio", "last-host") / of("guest-tlb-miss-ratio", "fixed");
    // Printed as 3.78.
    assert!((ratio - 3.78).abs() < 0.03, "{ratio}");
}

#[test]
fn systems_do_the_work_that_they_say() {
    for paper in ["paper-000", "paper-002", "paper-003"] {
        for case in published(paper).cases {
            let path = folder(paper).join(&case.system);
            let text = std::fs::read_to_string(&path).unwrap();
            let mut words = text.split_whitespace();
            let named = words.find(|word| word.trim_end_matches('.').ends_with(".args"));
            let named = named.unwrap_or_else(|| panic!("{} names no work", path.display()));
            let file = path.with_file_name(named.trim_end_matches('.'));
            let work = std::fs::read_to_string(&file).unwrap();
            let work: Vec<&str> = work.lines().filter(|line| !line.starts_with('#')).collect();
            let line = format!("command-line = \"{}\"", work.join(" "));
            let lines = text.lines().filter(|line| line.starts_with("command-line"));
            for found in lines {
                assert_eq!(found, line, "{}", path.display());
            }
        }
    }
}

#[test]
fn the_papers_hardware_is_that_of_their_own_profile_alone() {
    let paper = published("paper-002");
    let test = |on| format!("profile.extensions.pending_test={on}");
    let changes = |name, own| paper.method(name, own).unwrap().1;
    assert!(changes("self-wait-all", true).contains(&test(true)));
    let local = changes("self-wait-local", true);
    assert_eq!(local.last(), Some(&test(false)));
    assert_eq!(paper.method("self-wait-local", false), None);
    // Nor do its scheduler's costs belong to another computer; its rules do.
    assert_eq!(changes("self-wait-all", false), ["relaxed-terms=0"]);
    let own = changes("self-wait-all", true);
    assert!(
        own.contains(&String::from("mode-change-cost=100")),
        "{own:?}"
    );
    // Ours has its own rules, and the same costs.
    let ours = changes("self-wait", true);
    assert_eq!(ours[..2], ["relaxed-terms=0", "relaxed-terms=1"]);
    assert_eq!(ours[2..], own[1..]);
}

#[test]
fn the_papers_are_registered_before_they_are_run() {
    let experiments = folder("");
    for paper in ["paper-000", "paper-002", "paper-003"] {
        let state = registration::state(&experiments, paper, &published(paper)).unwrap();
        let registration::State::Registered { commit, files, .. } = state else {
            panic!("partita paper NAME --register has not been said of {paper}")
        };
        assert!(commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit()));
        assert!(files > 5, "{paper}");
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
    assert!(changes.contains(&String::from("affinity=0")));
    let (value, changes) = paper.method("wapd-ours", false).unwrap();
    assert_eq!(
        (value.as_str(), &changes[..]),
        (
            "wapd",
            &[String::from("affinity=0"), String::from("affinity=3")][..]
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

/// The same with so many start phases.
fn judged_with(seeds: u32, paper: &str, figure: impl Fn(&Point) -> Figures) -> Judgement {
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
            outcome: Outcome::Finished {
                figures: figure(&point),
                report: serde_json::Value::Null,
            },
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
  { measure = "etr", values = { host-interrupt = 1.0, self-wait = 1.2, native = 2.0 } },
  { measure = "native-etr", values = { host-interrupt = 50, self-wait = 60 } },
]
claim = [{ text = "more", measure = "etr", more = "self-wait", less = "host-interrupt" }]
[[negative]]
title = "nothing"
system = "system.toml"
methods = ["host-interrupt", "self-wait"]
measure = "etr"
tolerance = 1.0
"#;

/// What a run with this much more throughput under self-wait shows.
fn gain(point: &Point, gain: f64) -> Figures {
    let method = match point.native {
        true => 2.0,
        false if point.changes.contains(&String::from("wait=self-wait")) => 1.0 + gain,
        false => 1.0,
    };
    let phase = 1.0 + point.seed as f64 / 10.0;
    Figures::from([(String::from("etr"), phase * method)])
}

#[test]
fn a_gain_is_seen_and_fails_where_there_can_be_none() {
    let judgement = judged(PAPER, |point| gain(point, 0.2));
    let [case] = &judgement.cases[..] else {
        panic!("{judgement:?}")
    };
    let effect = case
        .effects
        .iter()
        .find(|effect| effect.measure == "etr" && effect.method == "self-wait")
        .unwrap();
    assert_eq!(effect.verdict, Some(Verdict::AsInThePaper));
    assert_eq!(effect.size, Some(Size::Alike));
    let of_native = case
        .effects
        .iter()
        .find(|effect| effect.measure == "native-etr" && effect.method == "self-wait");
    let of_native = of_native.unwrap().ours.unwrap();
    assert!((of_native.median - 60.0).abs() < 1e-9);
    // Phases differ by more than the gain, but not within a phase.
    assert_eq!(case.claims[0].question.answer, Answer::Above);
    let failures = judgement.failures();
    assert!(failures[0].contains("can be none"), "{failures:?}");
    assert!(show(&judgement).contains("AN EFFECT"));
    let page = page(&judgement, "below");
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
fn a_claim_may_say_how_often_the_one_goes_into_the_other() {
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
        [
            ("guest-tlb-miss-ratio", nitr),
            ("guest-instruction-time", time),
            ("guest-basic-time", 3.0),
            ("guest-walk-time", 25.0),
        ]
        .map(|(name, value)| (String::from(name), value))
        .into()
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
fn a_case_may_belong_to_another_computer() {
    let tree = tempfile::tempdir().unwrap();
    let own = PAPER
        .replacen(
            "quick = { jobs = 2 }",
            "quick = { jobs = 2 }\nprofile = \"k3-class\"\nhardware = { \"dtlb.entries\" = 64 }",
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
        Plan::new(&paper, tree.path(), &wanted).unwrap().points()
    };
    let points = plan(PROFILE);
    let (first, negative) = (&points[0], points.last().unwrap());
    let is_on = |point: &Point, name: &str| {
        point.computer
            == Computer::Machine {
                profile: Some(String::from(name)),
            }
    };
    assert!(is_on(first, "k3-class") && is_on(negative, PROFILE));
    let has = |point: &Point, change: &str| point.changes.iter().any(|one| one.contains(change));
    // 24 s at 45 MHz are 0.45 s at 2.4 GHz. The paper's own hardware is not that computer's; what the case is about is.
    assert!(has(first, "duration-ms=450 ") && has(first, "profile.dtlb.entries=64"));
    assert!(!has(first, "wrs_nto_limit") && has(negative, "wrs_nto_limit"));
    // Who names another computer gets that one.
    assert!(
        plan("rocket-h")
            .iter()
            .all(|point| is_on(point, "rocket-h"))
    );
}

#[test]
fn one_start_phase_is_no_verdict() {
    let judgement = judged_with(1, PAPER, |point| gain(point, 0.2));
    let [case] = &judgement.cases[..] else {
        panic!("{judgement:?}")
    };
    let verdicts: Vec<Verdict> = case.effects.iter().filter_map(|one| one.verdict).collect();
    let is_refused = |verdict: &Verdict| matches!(verdict, Verdict::Refused { phases: 1, .. });
    assert!(!verdicts.is_empty() && verdicts.iter().all(is_refused));
    let refused = |answer| matches!(answer, Answer::Refused { phases: 1, .. });
    assert!(refused(case.claims[0].question.answer));
    assert!(refused(judgement.negatives[0].question.answer));
    let text = show(&judgement);
    assert!(
        text.contains("1 phase cannot tell") && !text.contains("AN EFFECT"),
        "{text}"
    );
}

#[test]
fn a_table_is_decided_together_and_says_how_many_comparisons_it_has() {
    // Two effects (native and self-wait of etr) and a claim: 2 * 2^-6 = 0.031 is above 0.05 / 3.
    let judgement = judged_with(6, PAPER, |point| gain(point, 0.2));
    assert_eq!(judgement.families[0].comparisons, 3);
    let effects = judgement.cases[0].effects.iter();
    let verdicts: Vec<Verdict> = effects.filter_map(|effect| effect.verdict).collect();
    let refused = Verdict::Refused {
        phases: 6,
        needed: 7,
    };
    assert!(
        verdicts.iter().all(|verdict| *verdict == refused),
        "{verdicts:?}"
    );
    let text = show(&judgement);
    for told in [
        "Table 1: 3 comparisons",
        "Negatives: 1 comparison",
        "1.850 %",
    ] {
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn what_is_fitted_is_shown_and_never_judged() {
    let fitted = PAPER.replacen(
        "native = 2.0 } }",
        "native = 2.0 }, fitted = [\"native\"], absolute = 10 }",
        1,
    );
    let twice = |figures: Figures| {
        let each = figures.into_iter();
        each.map(|(name, value)| (name, 2.0 * value)).collect()
    };
    let judgement = judged(&fitted, |point| twice(gain(point, 0.2)));
    let [case] = &judgement.cases[..] else {
        panic!("{judgement:?}")
    };
    let native = case.effects.iter().find(|effect| effect.method == "native");
    let native = native.unwrap();
    assert_eq!(
        (native.verdict, native.question),
        (Some(Verdict::Fitted), None)
    );
    // The values of the others are predictions, and twice as much is more.
    let absolutes: Vec<_> = case
        .absolutes
        .iter()
        .map(|one| (one.method.as_str(), one.paper, one.question.answer))
        .collect();
    assert_eq!(
        absolutes,
        [
            ("host-interrupt", 1.0, Answer::Above),
            ("self-wait", 1.2, Answer::Above)
        ]
    );
    let text = show(&judgement);
    assert!(
        text.contains("MORE THAN IN THE PAPER") && text.contains("1 fitted"),
        "{text}"
    );
    // Near enough to the paper's value.
    let near = judged(&fitted, |point| {
        let figures = gain(point, 0.2);
        let scaled = figures.into_iter();
        let phase = 1.0 + point.seed as f64 / 10.0;
        let small = 1.0 + point.seed as f64 / 1000.0;
        scaled
            .map(|(name, value)| (name, value / phase * small))
            .collect()
    });
    let answers = near.cases[0]
        .absolutes
        .iter()
        .map(|one| one.question.answer);
    assert!(answers.into_iter().all(|answer| answer == Answer::Within));
}

#[test]
fn orders_are_told_phase_by_phase() {
    let two = PAPER.replacen(
        "[[negative]]",
        "[[case]]\ntable = 1\nname = \"2\"\ntitle = \"d\"\nsystem = \"system.toml\"\n\
         methods = [\"host-interrupt\", \"self-wait\"]\nparameters = { jobs = 3 }\nquick = { jobs = 3 }\n\
         figure = [{ measure = \"etr\", values = { host-interrupt = 1.0, self-wait = 1.1 } }]\n\
         [[order]]\ntext = \"falls\"\nmeasure = \"etr\"\nmethod = \"self-wait\"\ncases = [\"1\", \"2\"]\n\
         [[negative]]",
        1,
    );
    let answer = |first: f64, second: f64| {
        let judgement = judged(&two, |point| {
            let is_second = point.changes.iter().any(|change| change.contains("jobs=3"));
            gain(point, if is_second { second } else { first })
        });
        judgement.orders[0].question.answer
    };
    assert_eq!(answer(0.3, 0.1), Answer::Above);
    assert_eq!(answer(0.1, 0.3), Answer::Below);
    // Equal medians are no order, though they are sorted.
    assert_eq!(answer(0.2, 0.2), Answer::Below);
}

#[test]
fn the_work_of_a_run_is_what_was_planned() {
    let lines = std::cell::RefCell::new(Vec::new());
    judged(PAPER, |point| {
        lines
            .borrow_mut()
            .push((point.native, point.changes.clone()));
        gain(point, 0.0)
    });
    let lines = lines.into_inner();
    // A computer ten times as fast: a tenth of the time.
    let first = &lines[0].1;
    assert!(
        first.contains(&String::from(
            "vm.a.command-line=\"exercise=work duration-ms=1000 jobs=2\""
        )),
        "{first:?}"
    );
    let native: Vec<_> = lines.iter().filter(|(native, _)| *native).collect();
    assert_eq!(native.len(), 8);
    assert!(
        native[0]
            .1
            .iter()
            .any(|change| change.contains("jobs=8 seed=1\"")),
        "{native:?}"
    );
}

#[test]
fn mistakes_in_a_papers_file_are_named() {
    let cases = [
        ("title", "tittle", "tittle"),
        ("\"etr\", values", "\"ert\", values", "no measure ert"),
        (
            "self-wait = 1.2",
            "self-weight = 1.2",
            "none of its methods",
        ),
        (
            "more = \"self-wait\"",
            "more = \"x\"",
            "none of its methods",
        ),
    ];
    for (old, new, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("published.toml");
        std::fs::write(&path, PAPER.replacen(old, new, 1)).unwrap();
        let error = Published::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let paper = published("paper-002");
    let wanted = Wanted {
        table: Some(9),
        quick: true,
        seeds: 1,
        computer: Computer::Qemu,
        hertz: None,
    };
    let error = Plan::new(&paper, &folder("paper-002"), &wanted).unwrap_err();
    assert!(error.to_string().contains("no table 9"), "{error}");
}
