//! Gain of a method over the loss of the method that it replaces: case by case, the paper's points and ours.

use super::published::Gain;
use super::result::{CaseResult, EffectResult, GainPoint, GainResult};

/// The gain in the cases of its table, or in all. A case without the measures has no point.
pub(super) fn of_cases(gain: &Gain, cases: &[CaseResult]) -> GainResult {
    let cases = cases.iter().filter(|case| gain.is_of(case.table));
    GainResult {
        title: gain.title.clone(),
        across: format!("{} of {}, %", gain.over.join(" + "), gain.base),
        up: format!("gain in {} of {}, %", gain.measure, gain.method),
        points: cases.filter_map(|case| point(gain, case)).collect(),
    }
}

fn point(gain: &Gain, case: &CaseResult) -> Option<GainPoint> {
    let effect = |measure: &str, method: &str| {
        let mut effects = case.effects.iter();
        effects.find(|effect| effect.measure == measure && effect.method == method)
    };
    let over: Option<Vec<&EffectResult>> = gain
        .over
        .iter()
        .map(|measure| effect(measure, &gain.base))
        .collect();
    let over = over?;
    let gain = effect(&gain.measure, &gain.method)?;
    let paper_across: Option<f64> = over.iter().map(|one| one.paper).sum();
    let across = over.iter().map(|one| Some(one.ours.as_ref()?.median)).sum();
    let per_cent = |ratio: f64| 100.0 * (ratio - 1.0);
    Some(GainPoint {
        case: case.name.clone(),
        paper: paper_across.zip(gain.paper_ratio.map(per_cent)),
        across,
        gain: gain.ratio.map(|ratio| {
            let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(per_cent);
            (median, low, high)
        }),
    })
}
