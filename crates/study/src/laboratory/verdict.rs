//! Verdicts: what start phases decide about a comparison, and what they leave open.
//!
//! Every decision is a sign test: it counts on which side of a bound the start phases lie, and asks how probable so many would be
//! if the true median lay on the other side. Nothing is assumed about the distribution, and nothing is random. The tests are those
//! whose inversion gives the intervals of [`super::statistics`].
//!
//! Three conclusions exclude each other: an effect upwards, an effect downwards, and equivalence (two one-sided tests). All
//! comparisons of a table are decided together by Holm's step-down procedure (S. Holm, A Simple Sequentially Rejective Multiple
//! Test Procedure, 1979), so that a whole table draws a wrong conclusion with at most [`LEVEL`]. Where a comparison has too few
//! phases to reach the level that it is tested at, it is refused, and the answer says how many phases it needs.

#[cfg(test)]
mod tests;

use super::statistics::CONFIDENCE;
use serde::{Deserialize, Serialize};

/// The probability with which a table may draw a wrong conclusion.
pub const LEVEL: f64 = 1.0 - CONFIDENCE;

/// Bound of the papers' word comparable: the largest difference, as a part, that counts as none between figures that are compared with
/// theirs (paper 000, table 3, case 2: 1.85 %).
pub const COMPARABLE: f64 = 0.0185;

/// The probability that at least `hits` of `count` fair coins show heads: the p-value of the sign test that rejects a bound because
/// `hits` of `count` independent phases lie beyond it. Phases that lie on the bound count against the rejection.
pub fn sign_test(hits: usize, count: usize) -> f64 {
    if hits == 0 {
        return 1.0;
    }
    let each = 0.5_f64.ln() * count as f64;
    // ln of the binomial coefficient, from `count` over `count` downwards.
    let mut coefficient = 0.0_f64;
    let mut sum = 0.0;
    for heads in (hits..=count).rev() {
        sum += (coefficient + each).exp();
        coefficient += (heads as f64).ln() - ((count - heads + 1) as f64).ln();
    }
    sum.min(1.0)
}

/// Evidence of some start phases for one comparison, as the p-values of its three conclusions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Start phases that take part.
    pub phases: usize,
    /// Against "not above the band".
    pub above: f64,
    /// Against "not below the band".
    pub below: f64,
    /// Against "outside of the band".
    pub within: f64,
    /// By how much the smallest p-value of so many phases exceeds that of one sign test: 2 where both directions are asked.
    factor: f64,
}

impl Evidence {
    /// Of a value that lies below, within or above the band from `low` to `high`; each phase gives one value.
    ///
    /// The p-values of the two directions are doubled, as either would be concluded. So an effect is concluded by itself where the
    /// interval of [`super::statistics::summarise`] lies beyond the band.
    pub fn of_band(values: &[f64], low: f64, high: f64) -> Self {
        let p = |beyond: &dyn Fn(f64) -> bool| {
            let hits = values.iter().filter(|value| beyond(**value)).count();
            sign_test(hits, values.len())
        };
        Self {
            phases: values.len(),
            above: (2.0 * p(&|value| value > high)).min(1.0),
            below: (2.0 * p(&|value| value < low)).min(1.0),
            within: f64::max(p(&|value| value < high), p(&|value| value > low)),
            factor: 2.0,
        }
    }

    /// Of the ratio of pairs, which has no effect from `1 - smallest` to `1 + smallest`.
    pub fn of_ratio(ratios: &[f64], smallest: f64) -> Self {
        Self::of_band(ratios, 1.0 - smallest, 1.0 + smallest)
    }

    /// Of a relation that holds for a phase or does not: "above" is that it holds in the median phase, "below" that it does not.
    pub fn of_relation(holds: impl IntoIterator<Item = bool>) -> Self {
        let holds: Vec<bool> = holds.into_iter().collect();
        let hits = holds.iter().filter(|holds| **holds).count();
        Self {
            phases: holds.len(),
            above: sign_test(hits, holds.len()),
            below: sign_test(holds.len() - hits, holds.len()),
            within: 1.0,
            factor: 1.0,
        }
    }

    /// Of nothing: no run has the figure.
    pub fn none() -> Self {
        Self::of_relation([])
    }

    /// Of runs that are one run made often, or of a single one.
    pub fn of_one_run() -> Self {
        Self::of_relation([false])
    }

    /// Of several relations that must all hold: "above" is that all do, "below" that at least one does not.
    pub fn of_all(parts: &[Self]) -> Self {
        let (most, least) = (
            worst(parts, |part| part.above),
            best(parts, |part| part.below),
        );
        Self {
            phases: phases(parts),
            above: most,
            below: least,
            within: 1.0,
            factor: parts.iter().map(|part| part.factor).fold(1.0, f64::max),
        }
    }

    /// Of several ratios that must all be without an effect: "within" is that all are, "above" and "below" that one is not.
    pub fn of_no_effects(parts: &[Self]) -> Self {
        Self {
            phases: phases(parts),
            above: best(parts, |part| part.above),
            below: best(parts, |part| part.below),
            within: worst(parts, |part| part.within),
            factor: 1.0,
        }
    }

    /// How many phases can decide so many relations together.
    pub fn phases_for(relations: usize) -> usize {
        Self::none().needed(LEVEL / relations.max(1) as f64)
    }

    /// How many phases can tell the directions of so many ratios together.
    pub fn phases_for_ratios(ratios: usize) -> usize {
        Self::of_ratio(&[], 0.0).needed(LEVEL / ratios.max(1) as f64)
    }

    /// The conclusion with the smallest p-value, and that value.
    fn strongest(&self) -> (Answer, f64) {
        let all = [
            (Answer::Above, self.above),
            (Answer::Below, self.below),
            (Answer::Within, self.within),
        ];
        let [first, rest @ ..] = all;
        rest.into_iter()
            .fold(first, |best, one| if one.1 < best.1 { one } else { best })
    }

    /// The smallest p-value that so many phases can have, where they all agree.
    fn smallest(&self, phases: usize) -> f64 {
        self.factor * sign_test(phases, phases)
    }

    /// How many phases can reach a level.
    fn needed(&self, level: f64) -> usize {
        (1..)
            .find(|phases| self.smallest(*phases) <= level)
            .unwrap_or(usize::MAX)
    }
}

/// A conjunction is as sure as its least sure part.
fn worst(parts: &[Evidence], p: impl Fn(&Evidence) -> f64) -> f64 {
    if parts.is_empty() {
        return 1.0;
    }
    parts.iter().map(p).fold(0.0, f64::max)
}

/// One of several: the smallest p-value, times how many had the chance (Bonferroni).
fn best(parts: &[Evidence], p: impl Fn(&Evidence) -> f64) -> f64 {
    let least = parts.iter().map(p).fold(1.0, f64::min);
    (least * parts.len().max(1) as f64).min(1.0)
}

fn phases(parts: &[Evidence]) -> usize {
    parts.iter().map(|part| part.phases).min().unwrap_or(0)
}

/// Verdict of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Above the band: an effect upwards; of a relation, that it holds.
    Above,
    /// Below the band: an effect downwards; of a relation, that it does not hold.
    Below,
    /// Within the band: equivalence is shown.
    Within,
    /// Enough phases were run to decide it, and they do not.
    Open,
    /// So few phases cannot decide it, whatever they show.
    Refused {
        /// How many were run.
        phases: usize,
        /// How many it needs at least.
        needed: usize,
    },
}

/// The level at which the first of so many comparisons is tested.
fn level(left: usize) -> f64 {
    LEVEL / left.max(1) as f64
}

/// Which of several hypotheses fall together, by Holm's procedure at [`LEVEL`]: their places among these p-values, the smallest first.
pub fn holm(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = p.len();
    let steps = order.into_iter().enumerate();
    steps
        .take_while(|(place, (_, p))| *p <= level(count - place))
        .map(|(_, (index, _))| index)
        .collect()
}

/// Decides the comparisons of a table together: [`holm`] over the strongest conclusion of each.
pub fn decide(table: &[Evidence]) -> Vec<Answer> {
    let strongest: Vec<(Answer, f64)> = table.iter().map(Evidence::strongest).collect();
    let p: Vec<f64> = strongest.iter().map(|(_, p)| *p).collect();
    let decided = holm(&p);
    let tested_at = level(table.len() - decided.len());
    let first = level(table.len());
    let mut answers: Vec<Answer> = table
        .iter()
        .map(|evidence| {
            if evidence.smallest(evidence.phases.max(1)) > tested_at || evidence.phases == 0 {
                Answer::Refused {
                    phases: evidence.phases,
                    needed: evidence.needed(first),
                }
            } else {
                Answer::Open
            }
        })
        .collect();
    for index in decided {
        if let (Some(answer), Some((conclusion, _))) =
            (answers.get_mut(index), strongest.get(index))
        {
            *answer = *conclusion;
        }
    }
    answers
}

/// How many of so many phases a plan must be able to do without: one in ten, and at least one.
pub fn dissenting(phases: usize) -> usize {
    phases.div_ceil(10)
}

/// A paper's statement about a figure, by its own single measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// More, by more than what is called comparable.
    More,
    /// Less.
    Less,
    /// No effect that counts.
    None,
}

impl Said {
    /// By a ratio and the smallest effect that counts.
    pub fn by_ratio(ratio: f64, smallest: f64) -> Self {
        if ratio > 1.0 + smallest {
            Self::More
        } else if ratio < 1.0 - smallest {
            Self::Less
        } else {
            Self::None
        }
    }
}

/// A verdict about a figure of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// An effect in the paper's direction.
    AsInThePaper,
    /// An effect in the other direction.
    Opposite,
    /// The paper has an effect, and equivalence is shown.
    NoneWhereThePaperHasOne,
    /// Neither has one, and ours is shown to be none.
    NoneAsInThePaper,
    /// The paper has none, and we have one.
    EffectWhereThePaperHasNone,
    /// The phases do not tell.
    Undecided,
    /// So few phases cannot tell.
    Refused {
        /// How many were run.
        phases: usize,
        /// How many it needs at least.
        needed: usize,
    },
    /// The figure was fitted to the paper's, and says nothing.
    Fitted,
}

impl Verdict {
    /// Of what a paper says beside what the phases decide.
    pub fn of(said: Said, answer: Answer) -> Self {
        match (said, answer) {
            (_, Answer::Refused { phases, needed }) => Self::Refused { phases, needed },
            (_, Answer::Open) => Self::Undecided,
            (Said::More, Answer::Above) | (Said::Less, Answer::Below) => Self::AsInThePaper,
            (Said::More, Answer::Below) | (Said::Less, Answer::Above) => Self::Opposite,
            (Said::More | Said::Less, Answer::Within) => Self::NoneWhereThePaperHasOne,
            (Said::None, Answer::Within) => Self::NoneAsInThePaper,
            (Said::None, Answer::Above | Answer::Below) => Self::EffectWhereThePaperHasNone,
        }
    }

    /// In words.
    pub fn words(self) -> String {
        let words = match self {
            Self::AsInThePaper => "as in the paper",
            Self::Opposite => "OPPOSITE",
            Self::NoneWhereThePaperHasOne => "NONE WHERE THE PAPER HAS ONE",
            Self::NoneAsInThePaper => "none, as in the paper",
            Self::EffectWhereThePaperHasNone => "AN EFFECT WHERE THE PAPER HAS NONE",
            Self::Undecided => "undecided",
            Self::Refused { phases, needed } => return refusal(phases, needed),
            Self::Fitted => "fitted",
        };
        String::from(words)
    }

    /// All verdicts under the heads by which a summary counts them.
    pub fn head(self) -> &'static str {
        match self {
            Self::AsInThePaper => "as in the paper",
            Self::Opposite => "opposite",
            Self::NoneWhereThePaperHasOne => "none where the paper has one",
            Self::NoneAsInThePaper => "none, as in the paper",
            Self::EffectWhereThePaperHasNone => "an effect where the paper has none",
            Self::Undecided => "undecided",
            Self::Refused { .. } => "refused",
            Self::Fitted => "fitted",
        }
    }
}

/// Why no verdict is given.
pub fn refusal(phases: usize, needed: usize) -> String {
    match phases {
        0 => format!(
            "not judged: no start phase here has this figure of both methods, or it is 0; {needed} are needed"
        ),
        1 => format!("no verdict: 1 seed is too few; use --seeds {needed}"),
        _ => format!("no verdict: {phases} seeds are too few; use --seeds {needed}"),
    }
}

/// How many comparisons a table's verdicts were corrected for, in a line.
pub fn correction(comparisons: usize) -> String {
    let what = if comparisons == 1 {
        "comparison"
    } else {
        "comparisons"
    };
    format!(
        "{comparisons} {what}, decided together by Holm at {:.0} %: sign tests on start phases",
        LEVEL * 100.0
    )
}
