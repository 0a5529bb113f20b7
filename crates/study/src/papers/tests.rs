//! The claims of the tree, and what is told of places that have or have not been measured.

use super::*;

fn tree() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn list() -> Papers {
    Papers::read(&tree().join("experiments").join(FILE)).unwrap()
}

#[test]
fn page_matches_list_and_results() {
    let results = tree().join("docs/results");
    let page = std::fs::read_to_string(results.join(PAGE)).unwrap();
    assert!(
        page == list().beside(&results).unwrap().page(),
        "partita results render makes {PAGE} anew"
    );
}

#[test]
fn claims_places_exist_in_papers_files() {
    let papers = list();
    for claim in papers.claim.iter().filter(|claim| !claim.ours.is_empty()) {
        let folder = tree().join(format!("experiments/paper-{}", claim.paper));
        let published = crate::paper::Published::read(&folder.join("published.toml")).unwrap();
        for place in &claim.ours {
            let case = published
                .cases
                .iter()
                .find(|case| case.table == place.table && Some(&case.name) == place.case.as_ref());
            if let Some(text) = &place.negative {
                let mut all = published.negatives.iter();
                assert!(
                    all.any(|negative| negative.title.starts_with(text)),
                    "{place:?}"
                );
                continue;
            }
            let event = |[event, condition]: &[String; 2]| {
                let mut events = published.events.iter();
                events.any(|one| one.event == *event && one.condition == *condition)
            };
            let is_there = match (&place.claim, case) {
                (None, None) => place.event.as_ref().is_some_and(event),
                (Some(text), Some(case)) => {
                    case.claims.iter().any(|claim| claim.text.starts_with(text))
                }
                (Some(text), None) => published
                    .orders
                    .iter()
                    .any(|order| order.text.starts_with(text)),
                (None, Some(case)) => {
                    let known = |figure: &crate::paper::Figure| {
                        Some(&figure.measure) == place.measure.as_ref()
                    };
                    let method = place.method.as_ref();
                    case.figures.iter().any(known)
                        && method.is_some_and(|method| {
                            let native = method == "native" && case.native.is_some();
                            native || case.methods.contains(method)
                        })
                }
            };
            assert!(is_there, "{}: {place:?}", claim.text);
        }
    }
}

#[test]
fn what_does_not_come_out_says_why() {
    let list = list();
    let judged = list.beside(&tree().join("docs/results")).unwrap();
    let silent: Vec<&str> = [ClaimBasis::Hard, ClaimBasis::Soft]
        .into_iter()
        .flat_map(|kind| judged.claims(kind))
        .filter(|claim| {
            let fails = !matches!(claim.outcome, Outcome::ComesOut | Outcome::Undecided);
            fails && claim.explanation.is_none()
        })
        .map(|claim| claim.text)
        .collect();
    assert!(silent.is_empty(), "no reason is given for: {silent:?}");
}

/// A figure in a reason is the result's, and a reason names no figure that the result does not have.
#[test]
fn figures_of_reasons_are_in_results() {
    let list = list();
    let judged = list.beside(&tree().join("docs/results")).unwrap();
    let kinds = [ClaimBasis::Hard, ClaimBasis::Soft];
    let claims = kinds.into_iter().flat_map(|kind| judged.claims(kind));
    for claim in claims {
        let reason = claim.explanation.unwrap_or_default();
        assert!(!reason.contains(['{', '}']), "{}: {reason}", claim.text);
    }
    let result = tree().join("docs/results/paper-000.json");
    let Content::Paper(judgement) = Kept::read(&result).unwrap().content else {
        panic!("no result of a paper");
    };
    let fill = |text| super::explanation::fill(text, &judgement);
    let filled = fill("{ours | 2/1 | throughput | wopd} here").unwrap();
    let mut cases = judgement.cases.iter();
    let case = cases
        .find(|case| case.table == 2 && case.name == "1")
        .unwrap();
    let mut effects = case.effects.iter();
    let effect = effects.find(|one| one.measure == "throughput" && one.method == "wopd");
    let median = effect.unwrap().ours.as_ref().unwrap().median;
    assert_eq!(filled, format!("{} here", runner::table::number(median)));
    for wrong in [
        "{ours | 2/1 | throughput | nobody}",
        "{theirs | 2/1 | throughput | wopd}",
        "{ours | 2/1}",
        "{ours",
    ] {
        assert!(fill(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn outcome_combines_deciding_places() {
    use super::lookup::Says::{Direction, No, Nothing, Open, Shown, Yes};
    for (places, outcome) in [
        (&[Yes, Yes, Shown][..], Outcome::ComesOut),
        (&[Yes, Direction, Shown], Outcome::InDirection),
        (&[Direction], Outcome::InDirection),
        (&[Direction, Open], Outcome::InPart),
        (&[Direction, No], Outcome::InPart),
        (&[Yes, Open], Outcome::InPart),
        (&[Yes, No], Outcome::InPart),
        (&[No, Open], Outcome::DoesNotComeOut),
        (&[Open, Shown], Outcome::Undecided),
        (&[Shown, Nothing], Outcome::Shown),
        (&[Nothing], Outcome::NotMeasured),
        (&[], Outcome::NotMeasured),
    ] {
        assert_eq!(Outcome::of(places), outcome, "{places:?}");
    }
}

#[test]
fn missing_commands_and_results_are_named() {
    let text = "[paper.001]\ntitle = \"t\"\n[paper.002]\ntitle = \"u\"\ncommand = \"partita paper 002\"\n\
                [[claim]]\npaper = \"001\"\ntext = \"a\"\nfigure = \"1\"\n\
                [[claim]]\npaper = \"002\"\nkind = \"soft\"\ntext = \"b\"\nfigure = \"<2>\"\nexplanation = \"because\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::write(&path, text).unwrap();
    let papers = Papers::read(&path).unwrap();
    let judged = papers.beside(folder.path()).unwrap();
    let page = judged.page();
    for told in [
        "1 hard claim: 1 not measured",
        "1 soft claim: 1 not measured",
        "001: t: not built",
        "no result is kept yet",
        "why: because",
    ] {
        assert!(page.contains(told), "{page}");
    }
    let html = judged.html();
    for told in ["No result is kept.", "b (soft)", "&lt;2&gt;"] {
        assert!(html.contains(told), "{html}");
    }
    std::fs::write(&path, text.replace("paper = \"001\"", "paper = \"009\"")).unwrap();
    let error = Papers::read(&path).unwrap_err().to_string();
    assert!(error.contains("no paper 009"), "{error}");
}

/// Short runs leave out what no claim is about, and nothing else.
#[test]
fn short_runs_cover_every_claim() {
    for claim in list().claim {
        let folder = tree().join(format!("experiments/paper-{}", claim.paper));
        let published = crate::paper::Published::read(&folder.join("published.toml")).unwrap();
        let is_run = |table: Option<u32>, name: &String, methods: &[&String]| {
            let mut cases = published.cases.iter();
            let case =
                cases.find(|case| table.is_none_or(|one| case.table == one) && case.name == *name);
            let case = case.unwrap();
            let all = case.quick_methods.is_empty();
            let mut named = methods.iter().filter(|method| !method.is_empty());
            let has_all = named.all(|method| all || case.quick_methods.contains(method));
            assert!(
                has_all && case.quick_phases != Some(0) && !case.by_name,
                "{name}: {methods:?}"
            );
        };
        for place in &claim.ours {
            if let (Some(name), Some(method)) = (&place.case, &place.method) {
                is_run(Some(place.table), name, &[method]);
            } else if let (Some(name), Some(text)) = (&place.case, &place.claim) {
                let cases = published.cases.iter();
                let own = cases.filter(|case| case.table == place.table && case.name == *name);
                let mut claims = own.flat_map(|case| &case.claims);
                let told = claims.find(|one| one.text.starts_with(text)).unwrap();
                is_run(Some(place.table), name, &[&told.more, &told.less]);
            } else if let Some(text) = &place.claim {
                let mut orders = published.orders.iter();
                let order = orders.find(|order| order.text.starts_with(text)).unwrap();
                for name in &order.cases {
                    is_run(None, name, &[&order.method]);
                }
            } else if let Some([event, condition]) = &place.event {
                let mut events = published.events.iter();
                let cost = events.find(|one| one.event == *event && one.condition == *condition);
                let cost = cost.unwrap();
                for one in [&cost.cost, &cost.beside] {
                    is_run(None, &one.case, &[&one.method]);
                }
            }
        }
    }
}

#[test]
fn kvm_results_stand_beside_ours() {
    let list = list();
    let judged = list.beside(&tree().join("docs/results")).unwrap();
    let html = judged.html();
    assert!(html.contains("<tr><td></td><td>KVM</td><td>x 0."), "{html}");
    let claims = judged.claims(ClaimBasis::Hard);
    let found = || claims.iter().flat_map(|claim| &claim.found);
    let mut beside = found().flat_map(|found| found.beside.iter().map(move |one| (found, one)));
    // Beside a ratio stands a ratio to the same base, and never a value.
    assert!(
        beside
            .all(|(found, other)| { !found.ours.starts_with('x') || other.ours.starts_with('x') })
    );
    let methods = |name| {
        found()
            .flat_map(|found| &found.beside)
            .any(move |one| one.method == name)
    };
    assert!(methods("directed") && methods(crate::paper::KVM));
    let text = judged.text();
    assert!(
        text.lines()
            .any(|line| line.starts_with("    ") && line.ends_with("  directed"))
    );
}
