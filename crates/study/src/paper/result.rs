//! Result of a comparison with a paper: its figures beside ours, and the verdicts.

use super::exit_distribution::Spread;
use super::registration::State;
use super::relation::Relation;
use crate::laboratory::statistics::Summary;
use crate::laboratory::verdict::{Answer, Evidence, Said, Verdict, decide};
use serde::{Deserialize, Serialize};

/// Something that start phases decide, together with the rest of its table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Evidence of the phases.
    pub evidence: Evidence,
    /// Their verdict.
    pub answer: Answer,
}

impl Question {
    /// Before the table is decided.
    pub(super) fn new(evidence: Evidence) -> Self {
        Self {
            evidence,
            answer: Answer::Open,
        }
    }

    /// Decides a table's questions together, and returns how many they are.
    pub(super) fn settle(mut table: Vec<&mut Self>) -> usize {
        let evidence: Vec<Evidence> = table.iter().map(|question| question.evidence).collect();
        for (question, answer) in table.iter_mut().zip(decide(&evidence)) {
            question.answer = answer;
        }
        table.len()
    }
}

/// How large our effect is beside the paper's, where its interval tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Between half and twice.
    Alike,
    /// Below half.
    Smaller,
    /// Above twice.
    Larger,
}

impl Size {
    /// Of our ratio beside the paper's, both as logarithms so that halving and doubling are alike; `None` where the interval
    /// reaches over a limit.
    pub(super) fn of(paper: f64, ours: &Summary) -> Option<Self> {
        let part = |ratio: f64| ratio.ln() / paper.ln();
        let (one, other) = (part(ours.low), part(ours.high));
        let (low, high) = (one.min(other), one.max(other));
        if low >= 0.5 && high <= 2.0 {
            Some(Self::Alike)
        } else if high < 0.5 {
            Some(Self::Smaller)
        } else if low > 2.0 {
            Some(Self::Larger)
        } else {
            None
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Alike => "size alike",
            Self::Smaller => "smaller",
            Self::Larger => "larger",
        }
    }
}

/// One published value beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectResult {
    /// The measure.
    pub measure: String,
    /// The method.
    pub method: String,
    /// The paper's value.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Option<Summary>,
    /// The paper's ratio to the first method.
    pub paper_ratio: Option<f64>,
    /// Ours, start phase by start phase.
    pub ratios: Vec<f64>,
    /// Median and interval of the ratios.
    pub ratio: Option<Summary>,
    /// The paper's statement, if it has both figures.
    pub said: Option<Said>,
    /// Verdict of our phases, if the figure is judged.
    pub question: Option<Question>,
    /// Conclusion about the ratio, or that the value was fitted.
    pub verdict: Option<Verdict>,
    /// How large ours is, where the direction is the paper's.
    pub size: Option<Size>,
    /// Remark on the paper's figure.
    pub note: Option<String>,
}

/// A value that is held to the paper's own, and not only in its ratio to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbsoluteResult {
    /// The measure.
    pub measure: String,
    /// The method.
    pub method: String,
    /// The paper's value.
    pub paper: f64,
    /// Ours.
    pub ours: Option<Summary>,
    /// How far from the paper's it may be, in per cent of it.
    pub within: f64,
    /// Verdict of our phases.
    pub question: Question,
}

/// A claim beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim.
    pub text: String,
    /// Our finding, in words.
    pub found: String,
    /// Question whether it holds.
    pub question: Question,
}

/// A point of paper 003's figure 6: by how much the mean instruction time of a guest is shorter under a method than under another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelPoint {
    /// The method.
    pub method: String,
    /// The one that it is compared with.
    pub base: String,
    /// r: the NITR of that one beside the method's.
    pub r: Summary,
    /// T0 of the other one, in cycles.
    pub instruction: f64,
    /// AT of the other one, in cycles.
    pub walk: f64,
    /// NITR of the other one, as a part.
    pub nitr: f64,
    /// D by the model, in per cent.
    pub modelled: f64,
    /// D as measured, in per cent.
    pub measured: Summary,
}

/// One case beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The table.
    pub table: u32,
    /// The case.
    pub name: String,
    /// Its description.
    pub title: String,
    /// Figure by figure.
    pub effects: Vec<EffectResult>,
    /// Values that are held to the paper's own.
    pub absolutes: Vec<AbsoluteResult>,
    /// Claim by claim.
    pub claims: Vec<ClaimResult>,
    /// Paper 003's model beside each method that it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<ModelPoint>,
    /// A measure over another for each method, where it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
    /// Pictures of its pause-loop exits, method by method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
}

/// Gain in a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GainPoint {
    /// The case.
    pub case: String,
    /// The paper's: across, and the gain, in per cent.
    pub paper: Option<(f64, f64)>,
    /// Ours across, in per cent.
    pub across: Option<f64>,
    /// Our gain in per cent, and the ends of its interval.
    pub gain: Option<(f64, f64, f64)>,
}

/// Gain of a method over the loss of another, from case to case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GainResult {
    /// Its description.
    pub title: String,
    /// Quantity across.
    pub across: String,
    /// Quantity upwards.
    pub up: String,
    /// Case by case.
    pub points: Vec<GainPoint>,
}

/// A negative beside what we found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NegativeResult {
    /// Its description.
    pub title: String,
    /// The largest effect that was found, as method and ratio.
    pub found: String,
    /// The largest effect that counts as none, in per cent.
    pub tolerance: f64,
    /// Question whether there was none.
    pub question: Question,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
}

/// How many comparisons were decided together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Their table.
    pub name: String,
    /// How many.
    pub comparisons: usize,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The paper.
    pub title: String,
    /// Where it appeared.
    pub source: String,
    /// The smallest effect of interest, as a part, and why it is that.
    pub smallest_effect: (f64, String),
    /// The cases.
    pub cases: Vec<CaseResult>,
    /// The orders of effects.
    pub orders: Vec<ClaimResult>,
    /// Curves of gain over loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<GainResult>,
    /// Costs of events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCostResult>,
    /// A measure over another, from case to case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<CurveResult>,
    /// Wholes that are divided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<BarsResult>,
    /// The negatives.
    pub negatives: Vec<NegativeResult>,
    /// Families of questions that were decided together.
    pub families: Vec<Family>,
    /// State of the registration when it was run.
    pub registration: State,
}

impl Judgement {
    /// Failures of the whole run: an effect where there can be none, or a run that failed.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for negative in &self.negatives {
            failures.extend(negative.failures.iter().cloned());
            if matches!(negative.question.answer, Answer::Above | Answer::Below) {
                let (title, found) = (&negative.title, &negative.found);
                failures.push(format!(
                    "an effect where there can be none: {title}: {found}"
                ));
            }
        }
        let cases = self.cases.iter();
        failures.extend(cases.flat_map(|case| case.failures.iter().cloned()));
        failures
    }
}

/// A line of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Its owner: the paper or we, and the method.
    pub name: String,
    /// Case by case: the case, across, up, and the ends of the interval of the latter.
    pub points: Vec<(String, f64, f64, f64, f64)>,
}

/// A curve as we found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveResult {
    /// Its title.
    pub title: String,
    /// Quantity across, with its unit.
    pub across: String,
    /// Quantity upwards, with its unit.
    pub up: String,
    /// Its lines.
    pub lines: Vec<Drawn>,
}

/// Bars as we found them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarsResult {
    /// Their title.
    pub title: String,
    /// The parts, with the unit.
    pub parts: Vec<String>,
    /// Each bar's name and the parts' medians.
    pub bars: Vec<(String, Vec<f64>)>,
}

/// An event's cost as we found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventCostResult {
    /// The event.
    pub event: String,
    /// Under which condition.
    pub condition: String,
    /// Its cost in cycles.
    pub cost: Option<Summary>,
    /// Cost in instructions.
    pub instructions: Option<Summary>,
    /// Its divisor, in cycles.
    pub beside: Option<Summary>,
    /// Their ratio, start phase by start phase.
    pub ratio: Option<Summary>,
    /// The paper's, from and to.
    pub paper: Option<[f64; 2]>,
    /// Question whether ours lies there.
    pub question: Option<Question>,
}
