//! Paper 003's model (§4.3): what fewer translations outside of the TLBs are worth.
//!
//! The mean time of an instruction is MIET = T0 + NITR x AT: T0 without walks, AT for a walk. With r = NITR1 / NITR2, the
//! second method's is shorter by D = (1 - 1/r) / (1 + T0 / (NITR1 x AT)). T0, AT and NITR1 are measured: the machine counts the
//! cycles of walks. What is left between D of the model and D as measured is what the model leaves out: T0 and AT that differ
//! from method to method, as caches do.

use super::Case;
use super::result::ModelPoint;
use crate::laboratory::statistics::{Summary, paired_ratio, summarise};
use runner::measures::Measure;

/// D of the model, as a part, for r and for T0 and AT in the same unit.
pub(super) fn reduction(r: f64, instruction: f64, nitr: f64, walk: f64) -> f64 {
    (1.0 - 1.0 / r) / (1.0 + instruction / (nitr * walk))
}

/// The points of a case that asks for the model; those whose measures are not known are left out.
pub(super) fn of_case(case: &Case, values: impl Fn(&str, &str) -> Vec<f64>) -> Vec<ModelPoint> {
    let Some(base) = &case.model else {
        return Vec::new();
    };
    let others = case.methods.iter().filter(|method| *method != base);
    others
        .filter_map(|method| point(base, method, &values))
        .collect()
}

fn point(base: &str, method: &str, values: &impl Fn(&str, &str) -> Vec<f64>) -> Option<ModelPoint> {
    let median =
        |measure: Measure| summarise(&values(base, measure.name())).map(|summary| summary.median);
    let pairs = |first: &str, second: &str, measure: Measure| -> Vec<(f64, f64)> {
        let both = values(first, measure.name()).into_iter();
        both.zip(values(second, measure.name())).collect()
    };
    let r = paired_ratio(&pairs(base, method, Measure::GuestTlbMissRatio))?;
    let part = paired_ratio(&pairs(method, base, Measure::GuestCpi))?;
    let per_cent = |ratio: f64| 100.0 * (1.0 - ratio);
    let (instruction, walk) = (
        median(Measure::GuestBaseCpi)?,
        median(Measure::GuestCyclesPerWalk)?,
    );
    let nitr = median(Measure::GuestTlbMissRatio)? / 100.0;
    Some(ModelPoint {
        method: String::from(method),
        base: String::from(base),
        modelled: 100.0 * reduction(r.median, instruction, nitr, walk),
        // What is the most of one is the least of the other.
        measured: Summary {
            median: per_cent(part.median),
            low: per_cent(part.high),
            high: per_cent(part.low),
            ..part
        },
        r,
        instruction,
        walk,
        nitr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_curve_is_the_papers() {
        // Figure 6, its text: 9 to 12 % for r of 2 to 3, with T0 of 2 to 4 cycles, AT of 20 to 30 and NITR of 1 to 3 %.
        let middle = |r| reduction(r, 3.0, 0.02, 25.0);
        assert!((middle(2.0) - 0.0714).abs() < 1e-4, "{}", middle(2.0));
        let (low, high) = (
            reduction(2.0, 2.0, 0.01, 20.0),
            reduction(3.0, 2.0, 0.03, 30.0),
        );
        assert!(low < 0.09 && high > 0.12, "{low} {high}");
        // Nothing is gained where nothing is missed less, and never more than all walks.
        assert_eq!(reduction(1.0, 3.0, 0.02, 25.0), 0.0);
        let all = 0.02 * 25.0 / (3.0 + 0.02 * 25.0);
        assert!((reduction(1e12, 3.0, 0.02, 25.0) - all).abs() < 1e-9);
    }
}
