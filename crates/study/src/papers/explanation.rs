//! Reasons beside claims. A figure in a reason is taken from the paper's result, so that it is never older than the result.
//!
//! `{ours | 2/1 | throughput | wopd}` in a reason stands for our median of that measure and method in case 1 of table 2, `ratio` in
//! place of `ours` for the method's ratio to its base, and `paper` for the paper's own value.

use crate::paper::{CaseResult, EffectResult, Judgement};
use runner::table::number;

/// The reason with its figures.
///
/// # Errors
/// The first place that the result does not have, as the reason writes it.
pub fn fill(text: &str, judgement: &Judgement) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after
            .split_once('}')
            .ok_or_else(|| format!("{{{after}: a closing brace is missing"))?;
        let value = value(place, judgement);
        filled += before;
        filled += &value.ok_or_else(|| format!("{{{place}}}"))?;
        rest = after;
    }
    Ok(filled + rest)
}

fn value(place: &str, judgement: &Judgement) -> Option<String> {
    let words: Vec<&str> = place.split('|').map(str::trim).collect();
    let [kind, case, measure, method] = words.as_slice() else {
        return None;
    };
    let (table, name) = case.split_once('/')?;
    let table: u32 = table.parse().ok()?;
    let is_case = |one: &&CaseResult| one.table == table && one.name == name;
    let case = judgement.cases.iter().find(is_case)?;
    let is_effect = |one: &&EffectResult| one.measure == *measure && one.method == *method;
    let effect = case.effects.iter().find(is_effect)?;
    let value = match *kind {
        "ours" => effect.ours.as_ref()?.median,
        "ratio" => effect.ratio.as_ref()?.median,
        "paper" => effect.paper?,
        _ => return None,
    };
    Some(number(value))
}
