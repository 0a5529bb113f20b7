//! Runs that were recorded, to be repeated.

use super::{Entry, MadeBy, Outcome, Point};
use runner::document::RunDocument;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Report of `partita run --json`: the run's document with all that it follows from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run's document.
    #[serde(flatten)]
    pub document: RunDocument,
    /// The point that was run; a child of a series leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// Makers of the result; a child of a series leaves them out.
    #[serde(default, rename = "made-by", skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
}

/// A run as a file recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The point that was run.
    pub point: Point,
    /// Makers of the result.
    pub made_by: MadeBy,
    /// The run's document.
    pub report: RunDocument,
}

/// Runs of a comparison, as its JSON has them.
#[derive(Debug, Deserialize)]
struct Runs {
    runs: Vec<Entry>,
}

/// Parts by which the kinds of file are told apart.
#[derive(Debug, Deserialize)]
struct Parts {
    runs: Option<IgnoredAny>,
    partita_results: Option<IgnoredAny>,
}

/// Most differences that are told of one run.
const MAX_DIFFERENCES: usize = 12;

impl Recorded {
    /// Reads what `run --json` or `compare --json` wrote, or a file of results. Former names of measures and parts are read as the
    /// present ones.
    ///
    /// # Errors
    /// Why it is none of these.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        match serde_json::from_str::<Parts>(text) {
            Ok(Parts { runs: Some(_), .. }) => {
                let Runs { runs } = parse(text)?;
                runs.into_iter().map(Self::of_entry).collect()
            }
            Ok(Parts {
                partita_results: None,
                ..
            }) => Ok(vec![Self::of_report(text)?]),
            _ => Self::of_lines(text),
        }
    }

    fn of_report(text: &str) -> Result<Self, String> {
        let report: RunReport = parse(text)?;
        let (Some(point), Some(made_by)) = (report.point, report.made_by) else {
            return Err(String::from(
                "this does not say what made it; take a file that `partita run --json` or `partita compare --json` wrote",
            ));
        };
        Ok(Self {
            point,
            made_by,
            report: report.document,
        })
    }

    /// Reads the lines of a file of results, after its first.
    fn of_lines(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().enumerate().skip(1);
        let runs: Result<Vec<Self>, String> = lines
            .map(|(index, line)| {
                let run = parse(line).and_then(Self::of_entry);
                run.map_err(|error| format!("line {}: {error}", index + 1))
            })
            .collect();
        match runs {
            Ok(runs) if runs.is_empty() => Err(String::from("there is no run in this file")),
            other => other,
        }
    }

    fn of_entry(entry: Entry) -> Result<Self, String> {
        match entry.outcome {
            Outcome::Finished { report } => Ok(Self {
                point: entry.point,
                made_by: entry.made_by,
                report: *report,
            }),
            Outcome::Failed(why) => Err(format!(
                "the run with seed {} failed, so there is nothing to compare with: {why}",
                entry.point.seed
            )),
        }
    }
}

/// Reads a part of a file.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        format!(
            "not a run of this version: {error}; make it anew, or read it by the version that wrote it"
        )
    })
}

impl MadeBy {
    /// Differences, by name.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut names = Vec::new();
        if self.partita != other.partita {
            names.push(format!("version {} and {}", self.partita, other.partita));
        }
        if self.system != other.system {
            names.push(String::from("the system file"));
        }
        if self.profile != other.profile {
            names.push(String::from("the profile"));
        }
        let all = self.files.keys().chain(other.files.keys());
        let mut files: Vec<&String> = all
            .filter(|name| self.files.get(*name) != other.files.get(*name))
            .collect();
        files.sort();
        files.dedup();
        names.extend(files.into_iter().cloned());
        names
    }
}

/// Every figure of a report that is not the same to the last digit, with both values.
pub fn differences(then: &Recorded, now: &Entry) -> Vec<String> {
    let mut found = Vec::new();
    match &now.outcome {
        Outcome::Failed(why) => found.push(format!("it failed: {why}")),
        Outcome::Finished { report } => {
            compare("", &figures(&then.report), &figures(report), &mut found);
        }
    }
    let more = found.len().saturating_sub(MAX_DIFFERENCES);
    found.truncate(MAX_DIFFERENCES);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

/// A document as it is written, so that no part of it is forgotten in a comparison. What another run, the native one, makes of
/// it is left out.
fn figures(document: &RunDocument) -> Value {
    let own = RunDocument {
        against_native: None,
        ..document.clone()
    };
    // Text keys and plain values alone: this cannot fail.
    serde_json::to_value(own).unwrap_or_default()
}

fn compare(path: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            let mut keys: Vec<&String> = then.keys().chain(now.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let at =
                    |object: &Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
                compare(&format!("{path}.{key}"), &at(then), &at(now), found);
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                compare(&format!("{path}[{index}]"), then, now, found);
            }
        }
        _ if then == now => {}
        _ => {
            let path = path.trim_start_matches('.');
            found.push(format!("{path}: {then} then, {now} now"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::Computer;
    use runner::measures::{Figures, Measure};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use system::fingerprint::Fingerprint;

    fn recorded(report: RunDocument) -> Recorded {
        Recorded {
            point: Point {
                system: PathBuf::from("a.toml"),
                changes: Vec::new(),
                computer: Computer::Machine { profile: None },
                seed: 3,
                ..Point::default()
            },
            made_by: MadeBy {
                partita: String::from("1"),
                system: String::new(),
                profile: None,
                files: BTreeMap::from([(String::from("hypervisor"), Fingerprint::of(b"a"))]),
            },
            report,
        }
    }

    fn entry(report: RunDocument) -> Entry {
        let Recorded {
            point,
            made_by,
            report,
        } = recorded(report);
        Entry {
            id: point.identity(&made_by),
            point,
            made_by,
            outcome: Outcome::Finished {
                report: Box::new(report),
            },
        }
    }

    fn document(throughput: f64) -> RunDocument {
        RunDocument::of_figures(Figures::from([(Measure::Throughput, throughput)]))
    }

    #[test]
    fn digits_count_and_makers_do_not() {
        let then = recorded(document(2.5));
        assert!(differences(&then, &entry(document(2.5))).is_empty());
        let mut now = document(2.500000000000001);
        now.from_host.push(String::from("a disk"));
        now.against_native = Some(Figures::new());
        let found = differences(&then, &entry(now));
        assert_eq!(
            found,
            [
                "from-host: [] then, [\"a disk\"] now",
                "measures.throughput: 2.5 then, 2.500000000000001 now"
            ]
        );
    }

    #[test]
    fn all_three_kinds_of_file_are_read() {
        let run = serde_json::to_value(entry(document(0.1))).unwrap();
        let comparison = json!({ "comparison": {}, "runs": [run] }).to_string();
        let results = format!("{{\"partita_results\":2}}\n{run}\n{run}\n");
        assert_eq!(
            Recorded::read(&comparison).unwrap(),
            [recorded(document(0.1))]
        );
        assert_eq!(Recorded::read(&results).unwrap().len(), 2);
        let Recorded {
            point,
            made_by,
            report,
        } = recorded(document(0.1));
        let single = RunReport {
            document: report,
            point: Some(point),
            made_by: Some(made_by),
        };
        let single = serde_json::to_string(&single).unwrap();
        assert_eq!(Recorded::read(&single).unwrap(), [recorded(document(0.1))]);
        for nothing in ["{}", "", "a diary", "{\"partita_results\":1}\n"] {
            assert!(Recorded::read(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn renamed_measures_match() {
        let then = recorded(document(2.5));
        let now = entry(document(2.5));
        let point = serde_json::to_value(&then.point).unwrap();
        let made_by = serde_json::to_value(&then.made_by).unwrap();
        let former = json!({ "measures": { "etr": 2.5 }, "point": point, "made-by": made_by });
        let former = Recorded::read(&former.to_string()).unwrap();
        assert_eq!(differences(&former[0], &now), Vec::<String>::new());
        let unknown = former_text(&point, &made_by);
        let error = Recorded::read(&unknown).unwrap_err();
        assert!(
            error.contains("no measure \"fame\"") && error.contains("anew"),
            "{error}"
        );
    }

    fn former_text(point: &Value, made_by: &Value) -> String {
        json!({ "measures": { "fame": 2.5 }, "point": point, "made-by": made_by }).to_string()
    }

    #[test]
    fn kvm_runs_are_recorded_as_such() {
        let mut under_kvm = entry(document(1.0));
        under_kvm.point.kvm = true;
        let text = serde_json::to_string(&under_kvm).unwrap();
        let read: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(read.point, under_kvm.point);
        let other = entry(document(1.0));
        assert_ne!(
            under_kvm.point.identity(&under_kvm.made_by),
            other.point.identity(&other.made_by)
        );
        let mut older = serde_json::to_value(&under_kvm.point).unwrap();
        older.as_object_mut().unwrap().remove("kvm");
        let older: Point = serde_json::from_value(older).unwrap();
        assert_eq!(older, other.point);
        // The hypervisor takes no part.
        let (command, hypervisor) = (PathBuf::from("c"), PathBuf::from("h"));
        let programs = under_kvm.point.programs(&command, &hypervisor);
        assert_eq!(programs, [("partita", command.as_path())]);
    }

    #[test]
    fn changed_makers_are_named() {
        let then = recorded(document(1.0)).made_by;
        let mut now = then.clone();
        assert!(then.differences(&now).is_empty());
        now.files
            .insert(String::from("hypervisor"), Fingerprint::of(b"b"));
        now.system.push(' ');
        assert_eq!(then.differences(&now), ["the system file", "hypervisor"]);
    }
}
