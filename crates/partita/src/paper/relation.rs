//! What a method gains, over what the method that it replaces loses: case by case, the paper's points and ours.

use super::published::Relation;
use super::result::{CaseResult, EffectResult, RelationPoint, RelationResult};

/// The relation among these cases. A case without the measures has no point.
pub(super) fn of_cases(relation: &Relation, cases: &[CaseResult]) -> RelationResult {
    let cases = cases.iter().filter(|case| case.table == relation.table);
    RelationResult {
        title: relation.title.clone(),
        across: format!("{} of {}, %", relation.over.join(" + "), relation.base),
        up: format!("gain in {} of {}, %", relation.measure, relation.method),
        points: cases.filter_map(|case| point(relation, case)).collect(),
    }
}

fn point(relation: &Relation, case: &CaseResult) -> Option<RelationPoint> {
    let effect = |measure: &str, method: &str| {
        let mut effects = case.effects.iter();
        effects.find(|effect| effect.measure == measure && effect.method == method)
    };
    let over: Option<Vec<&EffectResult>> = relation
        .over
        .iter()
        .map(|measure| effect(measure, &relation.base))
        .collect();
    let over = over?;
    let gain = effect(&relation.measure, &relation.method)?;
    let paper_across: Option<f64> = over.iter().map(|one| one.paper).sum();
    let across = over.iter().map(|one| Some(one.ours.as_ref()?.median)).sum();
    let per_cent = |ratio: f64| 100.0 * (ratio - 1.0);
    Some(RelationPoint {
        case: case.name.clone(),
        paper: paper_across.zip(gain.paper_ratio.map(per_cent)),
        across,
        gain: gain.ratio.map(|ratio| {
            let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(per_cent);
            (median, low, high)
        }),
    })
}
