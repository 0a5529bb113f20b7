//! Tests of verdicts: decided together, refused, fitted, or wrong in a paper's file.

use super::*;

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
        text.contains("1 seed is too few") && !text.contains("AN EFFECT"),
        "{text}"
    );
}

#[test]
fn table_is_decided_as_one_family() {
    // Two effects (native and self-wait of throughput) and a claim: 2 * 2^-6 = 0.031 is above 0.05 / 3.
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
fn fitted_values_are_never_judged() {
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
         figure = [{ measure = \"throughput\", values = { host-interrupt = 1.0, self-wait = 1.1 } }]\n\
         [[order]]\ntext = \"falls\"\nmeasure = \"throughput\"\nmethod = \"self-wait\"\ncases = [\"1\", \"2\"]\n\
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
fn runs_do_planned_work() {
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
        (
            "\"throughput\", values",
            "\"ert\", values",
            "no measure \"ert\"",
        ),
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

#[test]
fn gain_is_drawn_over_loss() {
    let with = |over: &str, base: &str| {
        format!(
            "{PAPER}\n[[gain]]\ntitle = \"gain over loss\"\ntable = 1\nmeasure = \"throughput\"\n\
             method = \"self-wait\"\nbase = \"{base}\"\nover = [{over}]\n"
        )
    };
    let good = with("\"throughput\", \"relative-throughput\"", "host-interrupt");
    let judgement = judged(&good, |point| gain(point, 0.1));
    let [gain] = &judgement.gains[..] else {
        panic!("{judgement:?}")
    };
    let [point] = &gain.points[..] else {
        panic!("{gain:?}")
    };
    // The paper: 1.2 for 1.0, over 1.0 + 50. Here every phase has 1.1 for 1.0, over the median of throughput and half
    // of the native run.
    let etr = judgement.cases[0].effects[0].ours.unwrap().median;
    let (across, up) = point.paper.unwrap();
    assert!((across - 51.0).abs() < 1e-9 && (up - 20.0).abs() < 1e-9);
    assert!((point.across.unwrap() - 50.0 - etr).abs() < 1e-9);
    let (median, low, high) = point.gain.unwrap();
    assert!(low <= median && median <= high);
    assert!(
        [median, low, high]
            .iter()
            .all(|one| (one - 10.0).abs() < 1e-9)
    );
    let text = show(&judgement);
    assert!(
        text.contains("gain over loss") && text.contains("51"),
        "{text}"
    );
    let page = page(&judgement, &[], "", &[]);
    assert!(page.contains("throughput + relative-throughput of host-interrupt, %"));
    for (over, base, told) in [
        ("\"etrs\"", "host-interrupt", "no measure \"etrs\""),
        (
            "\"throughput\"",
            "self-wait",
            "compares self-wait with self-wait",
        ),
        ("\"throughput\"", "native", "compares self-wait with native"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("published.toml");
        std::fs::write(&path, with(over, base)).unwrap();
        let error = Published::read(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// A system of one machine.
const SYSTEM: &str = "harts = 1\nmemory = \"1 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n";

/// How many start phases of each method the plan has.
fn planned(paper: &str, quick: bool) -> (Vec<(String, usize)>, Vec<String>) {
    let paper: Published = toml::from_str(paper).unwrap();
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("kernel"), "").unwrap();
    std::fs::write(tree.path().join("system.toml"), SYSTEM).unwrap();
    let wanted = Wanted {
        table: None,
        quick,
        seeds: 12,
        computer: Computer::Machine { profile: None },
        hertz: None,
    };
    let plan = Plan::new(&paper, tree.path(), &wanted).unwrap();
    let methods = plan.cases.iter().flat_map(|(_, group)| &group.methods);
    let phases = methods.map(|(method, points)| (method.clone(), points.len()));
    (phases.collect(), plan.left_out)
}

#[test]
fn case_run_by_name_is_extra() {
    let paper = PAPER.replacen(
        "system = \"system.toml\"",
        "system = \"system.toml\"\nby-name = true",
        1,
    );
    for quick in [false, true] {
        assert_eq!(planned(&paper, quick), (Vec::new(), Vec::new()));
    }
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("kernel"), "").unwrap();
    std::fs::write(tree.path().join("system.toml"), SYSTEM).unwrap();
    let whole: Published = toml::from_str(&paper).unwrap();
    let case = whole.cases.first().unwrap().clone();
    let wanted = |table| Wanted {
        table,
        quick: false,
        seeds: 12,
        computer: Computer::Machine { profile: None },
        hertz: None,
    };
    let plan = Plan::new(&whole, tree.path(), &wanted(None)).unwrap();
    assert_eq!(
        (plan.cases.len(), plan.by_name),
        (0, vec![case.name.clone()])
    );
    // By its table, and by its own name.
    let plan = Plan::new(&whole, tree.path(), &wanted(Some(case.table))).unwrap();
    assert_eq!((plan.cases.len(), plan.by_name.len()), (1, 0));
    let named = whole.narrowed(&Selection {
        cases: vec![case.name],
        methods: Vec::new(),
    });
    let plan = Plan::new(&named.unwrap(), tree.path(), &wanted(None)).unwrap();
    assert_eq!((plan.cases.len(), plan.by_name.len()), (1, 0));
}

#[test]
fn short_runs_have_own_phases_and_cases() {
    let with = |keys: &str| {
        let keys =
            format!("system = \"system.toml\"\nphases = 40\nkvm = true\nbeside-phases = 2\n{keys}");
        PAPER.replacen("system = \"system.toml\"", &keys, 1)
    };
    let phases = |methods: &[usize]| -> Vec<(String, usize)> {
        let names = ["host-interrupt", "self-wait", "kvm", "native"];
        let all = names.iter().map(|name| String::from(*name));
        all.zip(methods.iter().copied()).collect()
    };
    let (full, none) = planned(&with("quick-phases = 0"), false);
    assert_eq!((full, none), (phases(&[40, 40, 2, 2]), Vec::new()));
    let (quick, left_out) = planned(&with("quick-phases = 0"), true);
    assert_eq!((quick, left_out), (Vec::new(), vec![String::from("1")]));
    let (full, _) = planned(&with("kvm-phases = 1"), false);
    assert_eq!(full, phases(&[40, 40, 1, 2]));
    let (quick, _) = planned(&with("quick-phases = 30"), true);
    assert_eq!(quick, phases(&[30, 30, 2, 2]));
    let (quick, _) = planned(&with(""), true);
    assert_eq!(quick, phases(&[40, 40, 2, 2]));
    // Short runs may have fewer methods, natively and under KVM too, and full ones have all.
    let all = phases(&[40, 40, 2, 2]);
    for (named, wanted) in [
        ("[\"self-wait\"]", &all[1..2]),
        ("[\"self-wait\", \"kvm\"]", &all[1..3]),
        ("[\"self-wait\", \"kvm\", \"native\"]", &all[1..]),
    ] {
        let fewer = with(&format!("quick-methods = {named}"));
        assert_eq!(planned(&fewer, true).0, wanted);
        assert_eq!(planned(&fewer, false).0, all);
    }
}

#[test]
fn claim_may_bound_measure_by_number() {
    let with = |less: &str| PAPER.replacen("less = \"host-interrupt\"", less, 1);
    // The phases of self-wait go from 1.2 on, a tenth of it more in each.
    let answer = |than: &str| {
        let judgement = judged(&with(&format!("than = {than}")), |point| gain(point, 0.2));
        let claim = judgement.cases[0].claims[0].clone();
        (claim.question.answer, claim.found)
    };
    let (holds, found) = answer("1.1");
    assert_eq!(holds, Answer::Above);
    assert!(found.contains("wanted above 1.1"), "{found}");
    assert_eq!(answer("100").0, Answer::Below);
    let holds = |most: &str| {
        let sides = "more = \"self-wait\", less = \"host-interrupt\"";
        let bound = format!("less = \"self-wait\", at-most = {most}");
        let text = PAPER.replacen(sides, &bound, 1);
        let judgement = judged(&text, |point| gain(point, 0.2));
        let claim = judgement.cases[0].claims[0].clone();
        assert!(
            claim.found.contains(&format!("wanted at most {most}")),
            "{}",
            claim.found
        );
        claim.question.answer
    };
    assert_eq!((holds("100"), holds("1.1")), (Answer::Above, Answer::Below));
    for both in [
        "less = \"host-interrupt\", than = 1",
        "less = \"host-interrupt\", at-most = 1",
        "times = 2",
    ] {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("published.toml");
        std::fs::write(&path, with(both)).unwrap();
        let error = Published::read(&path).unwrap_err().to_string();
        assert!(error.contains("either `more` and `less`"), "{error}");
    }
}

#[test]
fn too_few_phases_are_known_beforehand() {
    let told_with = |seeds| {
        let (paper, plan) = paper_and_plan(seeds, PAPER);
        too_few(&paper, &plan, Agreement::All)
    };
    // As below: 2 * 2^-6 is above 0.05 / 3, and 2 * 2^-7 is not. The claim has one direction alone: 2^-6 is below it, and the effects are refused.
    let few = told_with(6);
    let effects = [
        "table 1, case 1: throughput of self-wait: no verdict: 6 seeds are too few; use --seeds 7",
        "table 1, case 1: throughput of native: no verdict: 6 seeds are too few; use --seeds 7",
    ];
    for effect in effects {
        assert!(few.iter().any(|line| line == effect), "{few:#?}");
    }
    assert_eq!(told_with(7), Vec::<String>::new());
    // One phase of seven that differs: 2 * 8 / 2^7 is above 0.05 / 3. Of eleven, two: 2 * 67 / 2^11 is, too; of ten, one: 2 * 11 / 2^10 is
    // above it, and of twelve, two: 2 * 79 / 2^12; of fourteen, two: 2 * 106 / 2^14 is not.
    let in_spite = |seeds| {
        let (paper, plan) = paper_and_plan(seeds, PAPER);
        too_few(&paper, &plan, Agreement::NineInTen)
    };
    let open = in_spite(7);
    let effect =
        "table 1, case 1: throughput of self-wait: one phase in ten that differs leaves it open";
    assert!(
        open.iter().any(|line| line.starts_with(effect)),
        "{open:#?}"
    );
    assert_eq!(in_spite(14), Vec::<String>::new());
    // The claim and the negative cannot be decided by two, either.
    let few = told_with(2);
    for place in [
        "table 1, case 1: more: no verdict: 2",
        "nothing: no verdict: 2",
    ] {
        assert!(few.iter().any(|line| line.starts_with(place)), "{few:#?}");
    }
}
