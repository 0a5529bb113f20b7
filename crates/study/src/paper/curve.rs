//! Figures of a paper: a measure over another from case to case, and a whole that is divided into parts.

use super::figures::{Bars, Curve, Shown};
use super::result::{BarsResult, CaseResult, CurveResult, Drawn, EffectResult};
use crate::drawing::Line;
use runner::measures::Measure;
use runner::table::Table;
use runner::table::number;

/// Finds a curve's points.
pub(super) fn of_cases(curve: &Curve, cases: &[CaseResult]) -> CurveResult {
    let with_unit = |name: &str| match Measure::unit_of(name) {
        "" => String::from(name),
        unit => format!("{name} ({unit})"),
    };
    let up = match curve.shown {
        Shown::Value => with_unit(&curve.up),
        Shown::Reduction => format!("reduction of {} (%)", curve.up),
        Shown::Relative => format!("{}, relative", curve.up),
    };
    let mut lines = Vec::new();
    for paper in [true, false] {
        for method in &curve.methods {
            let points = points(curve, method, paper, cases);
            if !points.is_empty() {
                let whose = if paper { "paper" } else { "ours" };
                let name = format!("{whose}, {method}");
                lines.push(Drawn { name, points });
            }
        }
    }
    CurveResult {
        title: curve.title.clone(),
        across: with_unit(&curve.across),
        up,
        lines,
    }
}

fn points(
    curve: &Curve,
    method: &str,
    paper: bool,
    cases: &[CaseResult],
) -> Vec<(String, f64, f64, f64, f64)> {
    let case = |name: &String| cases.iter().find(|case| case.name == *name);
    let unit = match curve.shown {
        Shown::Relative => {
            let first = curve
                .cases
                .first()
                .and_then(case)
                .zip(curve.methods.first());
            let effect = first.and_then(|(case, method)| effect(case, &curve.up, method));
            effect.and_then(|effect| value(effect, paper))
        }
        Shown::Value | Shown::Reduction => Some(1.0),
    };
    let Some(unit) = unit.filter(|unit| *unit != 0.0) else {
        return Vec::new();
    };
    let of = |case: &CaseResult| {
        let across = value(effect(case, &curve.across, method)?, paper)?;
        let found = effect(case, &curve.up, method)?;
        let [up, low, high] = if curve.shown == Shown::Reduction {
            let less = |ratio: f64| 100.0 * (1.0 - ratio);
            match paper {
                true => [less(found.paper_ratio?); 3],
                false => {
                    let ratio = found.ratio?;
                    [less(ratio.median), less(ratio.high), less(ratio.low)]
                }
            }
        } else {
            match paper {
                true => [found.paper? / unit; 3],
                false => {
                    let ours = found.ours?;
                    [ours.median / unit, ours.low / unit, ours.high / unit]
                }
            }
        };
        Some((case.name.clone(), across, up, low, high))
    };
    curve.cases.iter().filter_map(case).filter_map(of).collect()
}

fn effect<'a>(case: &'a CaseResult, measure: &str, method: &str) -> Option<&'a EffectResult> {
    let mut effects = case.effects.iter();
    effects.find(|effect| effect.measure == measure && effect.method == method)
}

fn value(effect: &EffectResult, paper: bool) -> Option<f64> {
    match paper {
        true => effect.paper,
        false => effect.ours.map(|ours| ours.median),
    }
}

impl CurveResult {
    /// Its points as a table.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["line", "case", &self.across, &self.up, "interval"]);
        for line in &self.lines {
            for (index, (case, across, up, low, high)) in line.points.iter().enumerate() {
                let name = if index == 0 { line.name.as_str() } else { "" };
                let interval = if low == high {
                    String::new()
                } else {
                    format!("{} .. {}", number(*low), number(*high))
                };
                table.row([
                    String::from(name),
                    case.clone(),
                    number(*across),
                    number(*up),
                    interval,
                ]);
            }
        }
        table
    }

    /// Its lines, from left to right.
    pub fn drawn(&self) -> Vec<Line> {
        let line = |line: &Drawn| {
            let points = line.points.iter();
            let mut points: Vec<(f64, f64, f64, f64)> = points
                .map(|(_, across, up, low, high)| (*across, *up, *low, *high))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line {
                name: line.name.clone(),
                points,
            }
        };
        self.lines.iter().map(line).collect()
    }
}

/// Finds the bars' parts. A part that no run has is nothing.
pub(super) fn of_bars(bars: &Bars, cases: &[CaseResult]) -> BarsResult {
    let bar = |(name, method): &(String, String)| {
        let case = cases.iter().find(|case| case.name == *name)?;
        let parts = bars.parts.iter().map(|(_, measure)| {
            let found = effect(case, measure, method);
            found.and_then(|effect| value(effect, false)).unwrap_or(0.0)
        });
        Some((format!("{name}, {method}"), parts.collect()))
    };
    BarsResult {
        title: bars.title.clone(),
        parts: bars.parts.iter().map(|(name, _)| name.clone()).collect(),
        bars: bars.bars.iter().filter_map(bar).collect(),
    }
}

impl BarsResult {
    /// The parts of each bar, their sum, and what it is of the first bar's.
    pub fn table(&self) -> Table {
        let sum = |parts: &[f64]| parts.iter().sum::<f64>();
        let first = self.bars.first().map_or(f64::NAN, |(_, parts)| sum(parts));
        let mut head = vec![String::from("cycles")];
        head.extend(self.parts.iter().cloned());
        head.extend(["together", "of the first, %"].map(String::from));
        let mut table = Table::new(head);
        for (name, parts) in &self.bars {
            let whole = sum(parts);
            let mut row = vec![name.clone()];
            row.extend(parts.iter().map(|part| number(*part)));
            row.extend([number(whole), number(100.0 * whole / first)]);
            table.row(row);
        }
        table
    }

    /// The bars as a picture's.
    pub fn drawn(&self) -> (Vec<&str>, Vec<(String, Vec<f64>)>) {
        let parts = self.parts.iter().map(String::as_str).collect();
        (parts, self.bars.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::statistics::summarise;

    fn effect(measure: &str, method: &str, paper: Option<f64>, ours: f64) -> EffectResult {
        EffectResult {
            measure: String::from(measure),
            method: String::from(method),
            paper,
            ours: summarise(&[ours]),
            paper_ratio: paper.map(|paper| paper / 2.0),
            ratios: Vec::new(),
            ratio: summarise(&[0.25]),
            said: None,
            question: None,
            verdict: None,
            size: None,
            note: None,
        }
    }

    fn case(name: &str, effects: Vec<EffectResult>) -> CaseResult {
        CaseResult {
            table: 3,
            name: String::from(name),
            title: String::new(),
            effects,
            absolutes: Vec::new(),
            claims: Vec::new(),
            model: Vec::new(),
            relations: Vec::new(),
            spreads: Vec::new(),
            failures: Vec::new(),
        }
    }

    fn curve(shown: Shown) -> Curve {
        Curve {
            title: String::new(),
            across: String::from("busy"),
            up: String::from("cpu-time-expansion"),
            shown,
            methods: vec![String::from("fast")],
            cases: vec![String::from("b"), String::from("a"), String::from("none")],
        }
    }

    fn cases() -> [CaseResult; 2] {
        [
            case(
                "a",
                vec![
                    effect("busy", "fast", Some(10.0), 12.0),
                    effect("cpu-time-expansion", "fast", Some(1.0), 4.0),
                ],
            ),
            case(
                "b",
                vec![
                    effect("busy", "fast", None, 30.0),
                    effect("cpu-time-expansion", "fast", Some(0.5), 2.0),
                ],
            ),
        ]
    }

    #[test]
    fn a_point_needs_both_measures() {
        let found = of_cases(&curve(Shown::Value), &cases());
        let names: Vec<&str> = found.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["paper, fast", "ours, fast"]);
        assert_eq!(
            found.lines[0].points,
            [(String::from("a"), 10.0, 1.0, 1.0, 1.0)]
        );
        let drawn = found.drawn();
        assert_eq!(
            drawn[1].points,
            [(12.0, 4.0, 4.0, 4.0), (30.0, 2.0, 2.0, 2.0)]
        );
    }

    #[test]
    fn relative_values_use_first_case() {
        let found = of_cases(&curve(Shown::Relative), &cases());
        let ours = found.lines.last().unwrap();
        let ups: Vec<f64> = ours.points.iter().map(|point| point.2).collect();
        assert_eq!(ups, [1.0, 2.0]);
    }

    #[test]
    fn a_reduction_is_what_the_ratio_leaves() {
        let found = of_cases(&curve(Shown::Reduction), &cases());
        assert_eq!(found.lines[0].points[0].2, 50.0);
        assert_eq!(found.lines[1].points[0].2, 75.0);
    }

    #[test]
    fn bars_are_parts_of_their_sum() {
        let bars = Bars {
            title: String::new(),
            parts: [("load", "busy"), ("overhead", "cpu-time-expansion")]
                .map(|(name, measure)| (String::from(name), String::from(measure)))
                .to_vec(),
            bars: vec![(String::from("a"), String::from("fast"))],
        };
        let found = of_bars(&bars, &cases());
        assert_eq!(found.bars[0].1, [12.0, 4.0]);
    }
}
