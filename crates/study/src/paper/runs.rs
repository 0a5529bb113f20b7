//! The runs of a case by method, and the values of measures in them, start phase by start phase.

use super::published::NATIVE;
use crate::laboratory::{Entry, Outcome, is_one_run};
use runner::measures::{Measure, relative};

pub(super) type Methods<'a> = [(String, &'a [Entry])];

pub(super) fn entries<'a>(methods: &'a Methods<'_>, method: &str) -> &'a [Entry] {
    let found = methods.iter().find(|(name, _)| name == method);
    found.map_or(&[], |(_, entries)| entries)
}

/// Returns whether the phases of one of these methods are one run made often, so that they decide nothing.
pub(super) fn one_run(methods: &Methods<'_>, of: &[&str]) -> bool {
    of.iter().any(|method| is_one_run(entries(methods, method)))
}

pub(super) fn value(entry: &Entry, measure: &str) -> Option<f64> {
    entry.outcome.figures()?.named(measure)
}

/// The sum of these measures of a method, phase by phase; nothing for a phase that has not all of them.
pub(super) fn phases(methods: &Methods<'_>, method: &str, measures: &[String]) -> Vec<Option<f64>> {
    let sum = |entry: &Entry| measures.iter().map(|name| value(entry, name)).sum();
    entries(methods, method).iter().map(sum).collect()
}

/// Returns whether the phases of a method are one run made often.
pub(super) fn is_one(methods: &Methods<'_>, method: &str) -> bool {
    is_one_run(entries(methods, method))
}

/// Returns whether a measure compares with the native run.
fn is_relative(measure: &str) -> bool {
    Measure::RELATIVE.iter().any(|one| one.name() == measure)
}

/// One of these measures of a method, phase by phase; nothing for a phase in which a run has failed.
pub(super) fn beside_native(
    methods: &Methods<'_>,
    method: &str,
    measure: &str,
) -> Vec<Option<f64>> {
    let both = entries(methods, method)
        .iter()
        .zip(entries(methods, NATIVE));
    both.map(|(entry, native)| {
        let (ours, native) = (entry.outcome.figures()?, native.outcome.figures()?);
        relative(ours, native).named(measure)
    })
    .collect()
}

pub(super) fn values(methods: &Methods<'_>, method: &str, measure: &str) -> Vec<f64> {
    // What is relative to native is computed phase by phase.
    if is_relative(measure) {
        let values = beside_native(methods, method, measure);
        return values.into_iter().flatten().collect();
    }
    let entries = entries(methods, method).iter();
    entries.filter_map(|entry| value(entry, measure)).collect()
}

pub(super) fn pairs(
    methods: &Methods<'_>,
    method: &str,
    base: &str,
    measure: &str,
) -> Vec<(f64, f64)> {
    // The ratios of relative throughput are those of throughput.
    if measure == Measure::RelativeThroughput.name() {
        return Vec::new();
    }
    if is_relative(measure) {
        let of = |method| beside_native(methods, method, measure);
        let both = of(method).into_iter().zip(of(base));
        return both.filter_map(|(ours, base)| ours.zip(base)).collect();
    }
    let both = entries(methods, method).iter().zip(entries(methods, base));
    both.filter_map(|(entry, base)| Some((value(entry, measure)?, value(base, measure)?)))
        .collect()
}

pub(super) fn failures(place: &str, methods: &Methods<'_>) -> Vec<String> {
    let all = methods
        .iter()
        .flat_map(|(method, entries)| entries.iter().map(move |entry| (method, entry)));
    all.filter_map(|(method, entry)| match &entry.outcome {
        Outcome::Failed(why) => Some(format!(
            "{place}, {method}, seed {}: {why}",
            entry.point.seed
        )),
        Outcome::Finished { .. } => None,
    })
    .collect()
}
