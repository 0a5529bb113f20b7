//! Runs that were recorded, to be repeated.

use super::{Entry, MadeBy, Outcome, Point};
use serde_json::Value;

/// A run as a file recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The point that was run.
    pub point: Point,
    /// Makers of the result.
    pub made_by: MadeBy,
    /// The report, with its measures.
    pub report: Value,
}

/// Most differences that are told of one run.
const MAX_DIFFERENCES: usize = 12;

impl Recorded {
    /// Reads what `run --json` or `compare --json` wrote, or a file of results.
    ///
    /// # Errors
    /// Why it is none of these.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        if let Ok(whole) = serde_json::from_str::<Value>(text) {
            if let Some(runs) = whole.get("runs").and_then(Value::as_array) {
                return runs.iter().map(Self::of_entry).collect();
            }
            let part = |name: &str| whole.get(name).cloned();
            let (Some(point), Some(made_by)) = (part("point"), part("made-by")) else {
                return Err(String::from(
                    "this does not say what made it; take a file that `partita run --json` or `partita compare --json` wrote",
                ));
            };
            return Ok(vec![Self {
                point: serde_json::from_value(point).map_err(|error| format!("point: {error}"))?,
                made_by: serde_json::from_value(made_by)
                    .map_err(|error| format!("made-by: {error}"))?,
                report: whole,
            }]);
        }
        let lines = text.lines().enumerate().skip(1);
        let runs: Result<Vec<Self>, String> = lines
            .map(|(index, line)| {
                let entry = serde_json::from_str(line).map_err(|error| error.to_string());
                entry
                    .and_then(|entry| Self::of_entry(&entry))
                    .map_err(|error| format!("line {}: {error}", index + 1))
            })
            .collect();
        match runs {
            Ok(runs) if runs.is_empty() => Err(String::from("there is no run in this file")),
            other => other,
        }
    }

    fn of_entry(value: &Value) -> Result<Self, String> {
        let entry: Entry =
            serde_json::from_value(value.clone()).map_err(|error| format!("not a run: {error}"))?;
        match entry.outcome {
            Outcome::Finished { report, .. } => Ok(Self {
                point: entry.point,
                made_by: entry.made_by,
                report,
            }),
            Outcome::Failed(why) => Err(format!(
                "the run with seed {} failed, so there is nothing to compare with: {why}",
                entry.point.seed
            )),
        }
    }
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
        Outcome::Finished { report, .. } => compare("", &then.report, report, &mut found),
    }
    let more = found.len().saturating_sub(MAX_DIFFERENCES);
    found.truncate(MAX_DIFFERENCES);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

/// Parts of a report that are no figures of the run: where its report comes from, and what another run, the native one, makes of it.
const NO_FIGURES: [&str; 3] = [".point", ".made-by", ".against-native"];

fn compare(path: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    if NO_FIGURES.contains(&path) {
        return;
    }
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            let mut keys: Vec<&String> = then.keys().chain(now.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let at = |object: &serde_json::Map<String, Value>| {
                    object.get(key).cloned().unwrap_or(Value::Null)
                };
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
    use runner::measures::Figures;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use system::fingerprint::Fingerprint;

    fn recorded(report: Value) -> Recorded {
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

    fn entry(report: Value) -> Entry {
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
                figures: Figures::new(),
                report,
            },
        }
    }

    #[test]
    fn digits_count_and_makers_do_not() {
        let then = recorded(json!({ "a": [1, 2.5], "point": 1 }));
        assert!(differences(&then, &entry(json!({ "a": [1, 2.5] }))).is_empty());
        let now = entry(json!({ "a": [1, 2.500000000000001], "b": {} }));
        let found = differences(&then, &now);
        assert_eq!(
            found,
            [
                "a[1]: 2.5 then, 2.500000000000001 now",
                "b: null then, {} now"
            ]
        );
    }

    #[test]
    fn all_three_kinds_of_file_are_read() {
        let report = json!({ "measures": { "throughput": 0.1 } });
        let run = serde_json::to_value(entry(report.clone())).unwrap();
        let comparison = json!({ "comparison": {}, "runs": [run] }).to_string();
        let results = format!("{{\"partita_results\":1}}\n{run}\n{run}\n");
        assert_eq!(Recorded::read(&comparison).unwrap(), [recorded(report)]);
        assert_eq!(Recorded::read(&results).unwrap().len(), 2);
        let single = json!({ "point": run["point"], "made-by": run["made_by"], "seconds": 1 });
        assert_eq!(Recorded::read(&single.to_string()).unwrap().len(), 1);
        for nothing in ["{}", "", "a diary", "{\"partita_results\":1}\n"] {
            assert!(Recorded::read(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn kvm_runs_are_recorded_as_such() {
        let mut under_kvm = entry(json!({}));
        under_kvm.point.kvm = true;
        let text = serde_json::to_string(&under_kvm).unwrap();
        let read: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(read.point, under_kvm.point);
        let other = entry(json!({}));
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
        let then = recorded(Value::Null).made_by;
        let mut now = then.clone();
        assert!(then.differences(&now).is_empty());
        now.files
            .insert(String::from("hypervisor"), Fingerprint::of(b"b"));
        now.system.push(' ');
        assert_eq!(then.differences(&now), ["the system file", "hypervisor"]);
    }
}
