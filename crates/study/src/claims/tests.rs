use super::*;
use crate::laboratory::{Entry, MadeBy, Outcome};
use runner::measures::{FigureName, Figures};
use system::fingerprint::Fingerprint;

const FILE: &str = r#"
title = "Two"
[[claim]]
name = "faster"
text = "b is twice as fast as a, and nothing is lost"
system = "one.toml"
vary = "spin"
methods = ["a", "b"]
set = ["harts=2"]
on-qemu = { set = ["harts=3"], once = true }
test = [
  { measure = ["throughput"], of = ["b"], to = "a", at-least = 2.0 },
  { measure = ["events.migration", "offline-cpus"], of = ["a", "b"], at-most = 0 },
]
"#;

fn claim() -> Claim {
    let claims = Claims::parse(Path::new("claims.toml"), FILE).unwrap();
    claims.claims.into_iter().next().unwrap()
}

fn entry(point: Point, figures: &[(&str, f64)]) -> Entry {
    let figures = figures
        .iter()
        .map(|(name, value)| (FigureName::find(name).unwrap(), *value));
    Entry {
        id: Fingerprint::of(format!("{point:?}").as_bytes()),
        made_by: MadeBy::default(),
        outcome: Outcome::of_figures(figures.collect::<Figures>()),
        point,
    }
}

#[test]
fn every_method_runs_with_every_seed() {
    let computer = Computer::Machine { profile: None };
    let points = plan(&claim(), Path::new("folder"), &computer, 3);
    let changes: Vec<_> = points
        .iter()
        .map(|point| (point.changes.clone(), point.seed))
        .collect();
    let change = |method: &str| vec![String::from("harts=2"), format!("spin={method}")];
    let expected: Vec<_> = ["a", "b"]
        .into_iter()
        .flat_map(|method| (0..3).map(move |seed| (change(method), seed)))
        .collect();
    assert_eq!(changes, expected);
    assert!(
        points
            .iter()
            .all(|point| point.system == Path::new("folder/one.toml"))
    );

    let on_qemu = plan(&claim(), Path::new("folder"), &Computer::Qemu, 3);
    assert_eq!(on_qemu.len(), 2);
    assert_eq!(on_qemu[1].changes, ["harts=2", "harts=3", "spin=b"]);
}

/// Verdict on start phases with these throughputs, a's and b's, decided by itself.
fn judged_by(etr: &[(f64, f64)]) -> Judged {
    let claim = claim();
    let computer = Computer::Machine { profile: None };
    let points = plan(&claim, Path::new("."), &computer, etr.len() as u32);
    let of_a = etr.iter().map(|(a, _)| *a);
    let of_b = etr.iter().map(|(_, b)| *b);
    let entries: Vec<Entry> = points
        .into_iter()
        .zip(of_a.chain(of_b))
        .map(|(point, etr)| entry(point, &[("throughput", etr), ("offline-cpus", 0.0)]))
        .collect();
    let mut judged = [judge(&claim, &entries)];
    assert_eq!(settle(&mut judged), 1);
    let [judged] = judged;
    judged
}

/// So many start phases, of which each has its own throughput under a, and under b so much more.
fn phases(ratios: &[f64]) -> Vec<(f64, f64)> {
    let numbered = ratios.iter().zip(1..);
    numbered
        .map(|(ratio, a)| (f64::from(a), f64::from(a) * ratio))
        .collect()
}

#[test]
fn start_phases_are_held_to_the_bounds() {
    // All of five are enough: 2^-5 = 0.031.
    let judged = judged_by(&phases(&[2.0, 2.1, 4.0, 2.0, 3.0]));
    assert_eq!(judged.verdict, Verdict::Holds, "{}", show(&judged));
    assert_eq!(judged.findings[0].value.unwrap().median, 2.1);
    assert!(show(&judged).contains("HOLDS"));
    let computer = Computer::Machine { profile: None };
    let points = plan(&claim(), Path::new("."), &computer, 1);
    let made: Vec<Entry> = points.into_iter().map(|point| entry(point, &[])).collect();
    let page = page("Two <b>", &[judged], "below", &made);
    for text in [
        "faster: HOLDS",
        "b / a",
        "2.100",
        "Two &lt;b&gt;",
        "below",
        "What made this",
        "<td>seeds</td><td>0</td>",
    ] {
        assert!(page.contains(text), "{page}");
    }
    // None of six is: either of two figures could have failed, and 2 * 2^-6 = 0.031.
    let judged = judged_by(&phases(&[1.9, 1.0, 1.5, 1.2, 1.1, 1.3]));
    assert_eq!(judged.findings[0].verdict, Verdict::DoesNotHold);
    assert_eq!(judged.findings[1].verdict, Verdict::Holds);
    assert_eq!(judged.verdict, Verdict::DoesNotHold);
    assert!(show(&judged).contains("DOES NOT HOLD"));
}

#[test]
fn interval_around_bound_decides_nothing() {
    // On both sides, with a median that keeps to the bound and one that does not.
    for ratios in [
        [1.9, 2.0, 4.0, 4.0, 4.0, 4.0],
        [1.0, 1.9, 2.1, 1.9, 1.9, 1.9],
    ] {
        let judged = judged_by(&phases(&ratios));
        assert_eq!(judged.findings[0].verdict, Verdict::Undecided);
        assert_eq!(judged.verdict, Verdict::Undecided);
        let text = show(&judged);
        assert!(
            text.contains("UNDECIDED") && !text.contains("NOT"),
            "{text}"
        );
    }
}

#[test]
fn few_phases_and_repeats_are_refused() {
    for count in 1..5 {
        let judged = judged_by(&phases(&vec![3.0; count]));
        let refused = Verdict::Refused {
            phases: count,
            needed: 5,
        };
        assert_eq!(judged.verdict, refused, "{}", show(&judged));
        assert!(show(&judged).contains("no verdict: "));
    }
    // Nine phases that are the same to the last digit are one.
    let judged = judged_by(&[(1.0, 3.0); 9]);
    let refused = Verdict::Refused {
        phases: 1,
        needed: 5,
    };
    assert_eq!(judged.verdict, refused);
}

#[test]
fn claims_asked_together_are_decided_together() {
    let one = judged_by(&phases(&[3.0; 5]));
    let mut three = [one.clone(), one.clone(), one];
    assert_eq!(settle(&mut three), 3);
    // 0.05 / 3 = 0.0167: 2^-5 is above it and 2^-6 below.
    let refused = Verdict::Refused {
        phases: 5,
        needed: 6,
    };
    assert!(three.iter().all(|claim| claim.verdict == refused));
}

#[test]
fn unmeasured_claims_fail_and_failures_show() {
    let claim = claim();
    let computer = Computer::Machine { profile: None };
    let points = plan(&claim, Path::new("."), &computer, 1);
    let mut entries: Vec<Entry> = points
        .into_iter()
        .map(|point| entry(point, &[("throughput", 1.0)]))
        .collect();
    entries[1].outcome = Outcome::Failed(String::from("it burns"));
    let mut judged = [judge(&claim, &entries)];
    assert_eq!(settle(&mut judged), 0);
    let [judged] = judged;
    let verdicts = judged.findings.iter().map(|finding| finding.verdict);
    assert_eq!(verdicts.clone().next(), Some(Verdict::DoesNotHold));
    assert!(
        verdicts
            .into_iter()
            .all(|verdict| verdict != Verdict::Holds)
    );
    assert_eq!(judged.verdict, Verdict::DoesNotHold);
    // An event without a count is zero, an absent measure is not.
    assert_eq!(judged.findings[1].value, None);
    assert_eq!(judged.failures.len(), 1);
    assert!(show(&judged).contains("it burns"));
}

#[test]
fn mistakes_name_the_claim_and_the_remedy() {
    let path = Path::new("claims.toml");
    for (from, to, told) in [
        (
            r#"to = "a""#,
            r#"to = "c""#,
            "\"c\" is not among its methods",
        ),
        (", at-most = 0", "", "neither at-least nor at-most"),
        (
            r#"measure = ["throughput"]"#,
            "measure = []",
            "needs a measure",
        ),
        ("vary =", "varies =", "varies"),
        (
            "events.migration",
            "events.lost",
            "there is no event \"lost\"",
        ),
        (r#"["throughput"]"#, r#"["ert"]"#, "no measure \"ert\""),
    ] {
        let text = FILE.replace(from, to);
        let error = Claims::parse(path, &text).unwrap_err().to_string();
        assert!(
            error.contains("claims.toml") && error.contains(told),
            "{error}"
        );
    }
    let claims = Claims::parse(path, FILE).unwrap();
    let error = claims.named(&[String::from("slower")]).unwrap_err();
    assert!(error.to_string().contains("there are faster"));
}

#[test]
fn shipped_claims_can_be_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/policies.toml");
    let claims = Claims::read(&file).unwrap();
    let names: Vec<String> = claims.claims.iter().map(|one| one.name.clone()).collect();
    assert_eq!(claims.named(&names).unwrap().len(), names.len());
}
