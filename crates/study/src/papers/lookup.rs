//! Where our results have a claim, and what came of it.

use super::explanation::fill;
use super::{Beside, ClaimBasis, Judged, PaperClaim, Place};
use crate::laboratory::verdict::{Answer, Verdict};
use crate::paper::{CaseResult, EffectResult, Judgement, KVM, Size};
use runner::table::number;
use serde::Serialize;

/// Result of ours for a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Which place.
    pub place: String,
    /// The result there.
    pub ours: String,
    /// The paper's ratio, ours, and the ends of our interval, where the place has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<(f64, f64, f64, f64)>,
    /// Results of KVM and of its spin policy there, where they were run: as ours, and not judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Other>,
    /// The verdict.
    pub verdict: String,
    /// Its verdict on the claim.
    #[serde(skip)]
    pub says: Says,
}

/// Result of another method in a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Other {
    /// Which.
    pub method: &'static str,
    /// Its result.
    pub ours: String,
}

/// The methods that stand beside ours where they were run: KVM under the same guest, and its way to spin on Partita's own devices.
pub(super) const OTHERS: [&str; 2] = [KVM, "directed"];

/// Verdict of one place on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Our result is as the paper has it, in size too where the paper has one.
    Yes,
    /// Our result has the paper's direction, and its size is not the paper's or is not decided.
    Direction,
    /// Our result is not as the paper has it.
    No,
    /// The runs do not tell.
    Open,
    /// Our result is shown beside the paper's, or was fitted, and decides nothing.
    Shown,
    /// There is nothing.
    Nothing,
}

/// Outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every place that decides says so, in size too.
    ComesOut,
    /// Every place that decides has the paper's direction, and at least one has not its size.
    InDirection,
    /// Some places say so, others do not or leave it open.
    InPart,
    /// No place says so, and one says that it is not so.
    DoesNotComeOut,
    /// No place decides it.
    Undecided,
    /// Our figure is beside the paper's, and nothing was to be decided.
    Shown,
    /// Nothing was measured for it.
    NotMeasured,
}

impl Outcome {
    /// All, in the order of the page.
    pub const ALL: [Self; 7] = [
        Self::ComesOut,
        Self::InDirection,
        Self::InPart,
        Self::DoesNotComeOut,
        Self::Undecided,
        Self::Shown,
        Self::NotMeasured,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ComesOut => "comes out",
            Self::InDirection => "comes out in direction, not in size",
            Self::InPart => "comes out in part",
            Self::DoesNotComeOut => "does not come out",
            Self::Undecided => "undecided",
            Self::Shown => "shown, not judged",
            Self::NotMeasured => "not measured",
        }
    }

    /// Words for the outcome of several claims.
    pub fn counted(self) -> &'static str {
        match self {
            Self::ComesOut => "come out",
            Self::InDirection => "come out in direction, not in size",
            Self::InPart => "come out in part",
            Self::DoesNotComeOut => "do not come out",
            other => other.words(),
        }
    }

    /// Of what the places say.
    pub fn of(places: &[Says]) -> Self {
        let has = |says| places.contains(&says);
        let is_there = has(Says::Yes) || has(Says::Direction);
        match (is_there, has(Says::No), has(Says::Open)) {
            (true, false, false) if has(Says::Direction) => Self::InDirection,
            (true, false, false) => Self::ComesOut,
            (true, ..) => Self::InPart,
            (false, true, _) => Self::DoesNotComeOut,
            (false, false, true) => Self::Undecided,
            (false, false, false) if has(Says::Shown) => Self::Shown,
            (false, false, false) => Self::NotMeasured,
        }
    }
}

impl<'a> Judged<'a> {
    /// The claims of one kind beside our results.
    pub fn claims(&self, kind: ClaimBasis) -> Vec<Beside<'a>> {
        let claims = self.papers.claim.iter();
        let of_kind = claims.filter(|claim| claim.kind == kind);
        of_kind.map(|claim| self.of(claim)).collect()
    }

    fn of(&self, claim: &'a PaperClaim) -> Beside<'a> {
        let judgement = self.results.get(claim.paper.as_str());
        let found: Vec<Found> = match judgement {
            Some((_, judgement)) => {
                let places = claim.ours.iter();
                places.map(|place| place.find(judgement)).collect()
            }
            None => Vec::new(),
        };
        let says: Vec<Says> = found.iter().map(|found| found.says).collect();
        Beside {
            paper: &claim.paper,
            kind: claim.kind,
            text: &claim.text,
            figure: &claim.figure,
            outcome: Outcome::of(&says),
            found,
            explanation: claim.explanation.as_deref().map(|text| match judgement {
                Some((_, judgement)) => fill(text, judgement)
                    .unwrap_or_else(|place| format!("{text} (the result does not have {place})")),
                None => String::from(text),
            }),
        }
    }
}

/// Sentence about a value that is to lie within bounds.
fn of_band(answer: Answer) -> Says {
    match answer {
        Answer::Within => Says::Yes,
        Answer::Above | Answer::Below => Says::No,
        Answer::Open | Answer::Refused { .. } => Says::Open,
    }
}

/// A method's ratio to its base, or its value where it has none.
fn came_to(effect: &EffectResult) -> String {
    match (&effect.ratio, &effect.ours) {
        (Some(ratio), _) => format!(
            "x {:.4} [{:.4} .. {:.4}]",
            ratio.median, ratio.low, ratio.high
        ),
        (None, Some(ours)) => number(ours.median),
        (None, None) => String::from("-"),
    }
}

impl Place {
    fn find(&self, judgement: &Judgement) -> Found {
        let named = |case: &&CaseResult| {
            case.table == self.table && self.case.as_ref().is_some_and(|name| *name == case.name)
        };
        let case = judgement.cases.iter().find(named);
        let place = self.name();
        let decided = |ours: &String, answer: Answer, verdict: String| Found {
            place: place.clone(),
            ours: ours.clone(),
            ratios: None,
            beside: Vec::new(),
            verdict,
            says: match answer {
                Answer::Above => Says::Yes,
                Answer::Below | Answer::Within => Says::No,
                Answer::Open | Answer::Refused { .. } => Says::Open,
            },
        };
        let found = match (&self.negative, &self.claim, case) {
            (Some(text), ..) => {
                let mut all = judgement.negatives.iter();
                let negative = all.find(|negative| negative.title.starts_with(text.as_str()));
                negative.map(|negative| {
                    let question = &negative.question;
                    // Here "within the bounds" is what is claimed.
                    let answer = match question.answer {
                        Answer::Within => Answer::Above,
                        Answer::Above | Answer::Below => Answer::Within,
                        other => other,
                    };
                    decided(&negative.found, answer, question.as_negative())
                })
            }
            (None, Some(text), case) => {
                let own = case.into_iter().flat_map(|case| &case.claims);
                let mut all = own.chain(&judgement.orders);
                let claim = all.find(|claim| claim.text.starts_with(text.as_str()));
                claim.map(|claim| {
                    let question = &claim.question;
                    decided(&claim.found, question.answer, question.as_claim())
                })
            }
            (None, None, Some(case)) => self.effect(case, &place),
            (None, None, None) => self.cost(judgement, &place),
        };
        found.unwrap_or_else(|| Found {
            place,
            ours: String::from("-"),
            ratios: None,
            beside: Vec::new(),
            verdict: String::from("not in the result"),
            says: Says::Nothing,
        })
    }

    /// Its name on a page, in words: "table 3, case 7: throughput of wapd".
    fn name(&self) -> String {
        let case = self.case.as_ref().map(|case| {
            let case = match case.starts_with(|first: char| first.is_ascii_digit()) {
                true => format!("case {case}"),
                false => case.clone(),
            };
            match self.table {
                0 => case,
                table => format!("table {table}, {case}"),
            }
        });
        let figure = match (&self.measure, &self.method) {
            (Some(measure), Some(method)) => Some(format!("{measure} of {method}")),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        let event = self.event.as_ref().map(|words| words.join(", "));
        let words: Vec<String> = case.into_iter().chain(figure).chain(event).collect();
        match (words.is_empty(), &self.negative) {
            (true, Some(_)) => String::from("negative case"),
            (true, None) => String::from("all cases"),
            (false, _) => words.join(": "),
        }
    }

    /// Cost of an event beside another, where the paper has a range for that.
    fn cost(&self, judgement: &Judgement, place: &str) -> Option<Found> {
        let [event, condition] = self.event.as_ref()?;
        let mut events = judgement.events.iter();
        let found = events.find(|one| one.event == *event && one.condition == *condition)?;
        let ratio = found.ratio.as_ref()?;
        let ours = format!(
            "x {} [{} .. {}]",
            number(ratio.median),
            number(ratio.low),
            number(ratio.high)
        );
        let answer = found.question.map(|question| question.answer);
        Some(Found {
            place: String::from(place),
            ours,
            ratios: None,
            beside: Vec::new(),
            verdict: (found.words()).unwrap_or_else(|| String::from(Outcome::Shown.words())),
            says: answer.map_or(Says::Shown, of_band),
        })
    }

    fn effect(&self, case: &CaseResult, place: &str) -> Option<Found> {
        let (measure, method) = (self.measure.as_ref()?, self.method.as_ref()?);
        let mut effects = case.effects.iter();
        let effect =
            effects.find(|effect| effect.measure == *measure && effect.method == *method)?;
        let others = OTHERS.into_iter().filter(|other| other != method);
        let beside = others.filter_map(|other| {
            let mut effects = case.effects.iter();
            let found = effects.find(|one| one.measure == *measure && one.method == other)?;
            // A value says nothing beside a ratio: its own base was not run.
            let comparable = found.ratio.is_some() || effect.ratio.is_none();
            comparable.then(|| Other {
                method: other,
                ours: came_to(found),
            })
        });
        // A value that is held to the paper's own decides where its ratio does not.
        let mut absolutes = case.absolutes.iter();
        let absolute = absolutes.find(|one| one.measure == *measure && one.method == *method);
        let absolute = absolute.filter(|_| effect.verdict.is_none());
        let says = match effect.verdict {
            None if absolute.is_some() => {
                absolute.map_or(Says::Shown, |one| of_band(one.question.answer))
            }
            // That there is no effect has no other size.
            Some(Verdict::NoneAsInThePaper) => Says::Yes,
            Some(Verdict::AsInThePaper) if effect.size == Some(Size::Alike) => Says::Yes,
            Some(Verdict::AsInThePaper) => Says::Direction,
            Some(
                Verdict::Opposite
                | Verdict::NoneWhereThePaperHasOne
                | Verdict::EffectWhereThePaperHasNone,
            ) => Says::No,
            Some(Verdict::Undecided | Verdict::Refused { .. }) => Says::Open,
            Some(Verdict::Fitted) | None => Says::Shown,
        };
        let verdict = effect.verdict.map(|verdict| match (verdict, effect.size) {
            (_, Some(size)) => format!("{}, {}", verdict.words(), size.words()),
            (Verdict::AsInThePaper, None) => format!("{}, size undecided", verdict.words()),
            (_, None) => verdict.words(),
        });
        let verdict = verdict.or_else(|| absolute.map(|one| one.question.as_absolute()));
        let both = effect.paper_ratio.zip(effect.ratio);
        Some(Found {
            place: String::from(place),
            ours: came_to(effect),
            beside: beside.collect(),
            ratios: both.map(|(paper, ours)| (paper, ours.median, ours.low, ours.high)),
            verdict: verdict.unwrap_or_else(|| String::from(Outcome::Shown.words())),
            says,
        })
    }
}
