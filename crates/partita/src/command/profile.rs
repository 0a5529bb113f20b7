//! `partita profile`.

use super::failure::Failure;
use super::output;
use machine::timing::{Field, Measurements, NAMES, Profile, ProfileError, fields};
use runner::table::Table;
use serde::Serialize;

/// Subcommands for profiles.
#[derive(Debug, clap::Subcommand)]
pub enum What {
    /// Shows everything that a profile says, with units
    Show {
        /// The name of a profile that ships, or a TOML file; without it, the names
        #[arg(value_name = "NAME|FILE")]
        profile: Option<String>,
        /// Shows it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Finds every mistake in profiles, with file, line, key, value and remedy
    Check {
        /// Names of profiles that ship, or TOML files
        #[arg(value_name = "NAME|FILE", required = true)]
        profiles: Vec<String>,
        /// Shows the mistakes as JSON
        #[arg(long)]
        json: bool,
    },
    /// Makes a profile of what a board has measured (docs/guide/profile-a-board.md), as TOML
    Measure {
        /// The output of the program `measure`
        #[arg(value_name = "FILE")]
        output: std::path::PathBuf,
        /// The profile that says what was not measured
        #[arg(long, value_name = "NAME|FILE", default_value = "k3-class")]
        base: String,
    },
    /// Shows where profiles differ
    Diff {
        /// Names of profiles that ship, or TOML files
        #[arg(value_name = "NAME|FILE", num_args = 2.., required = true)]
        profiles: Vec<String>,
        /// Shows the differences as JSON
        #[arg(long)]
        json: bool,
    },
}

/// One key with its value in each profile; `None` where a profile does not have it.
#[derive(Debug, Serialize)]
struct Entry {
    key: String,
    values: Vec<Option<toml::Value>>,
    unit: &'static str,
    about: &'static str,
}

pub(super) fn execute(what: &What) -> Result<(), Failure> {
    match what {
        What::Show {
            profile: None,
            json,
        } => {
            let names: Vec<String> = NAMES.iter().map(ToString::to_string).collect();
            print(*json, &names, &names.join("\n"));
        }
        What::Show {
            profile: Some(name),
            json,
        } => {
            let entries = entries(std::slice::from_ref(name))?;
            print(*json, &entries, table(&["value"], &entries).trim_end());
        }
        What::Check { profiles, json } => check(profiles, *json)?,
        What::Measure { output, base } => measure(output, base)?,
        What::Diff { profiles, json } => {
            let mut entries = entries(profiles)?;
            entries.retain(|entry| entry.values.windows(2).any(|pair| pair[0] != pair[1]));
            let headings: Vec<&str> = profiles.iter().map(String::as_str).collect();
            let text = if entries.is_empty() {
                String::from("they are the same")
            } else {
                table(&headings, &entries)
            };
            print(*json, &entries, text.trim_end());
        }
    }
    Ok(())
}

fn measure(output: &std::path::Path, base: &str) -> Result<(), Failure> {
    let base = Profile::find(base)?;
    let text = std::fs::read_to_string(output).map_err(|error| ProfileError::Read {
        path: output.to_owned(),
        reason: error.to_string(),
    })?;
    let profile = Measurements::parse(&text)
        .and_then(|measured| measured.apply(&base))
        .map_err(|reason| ProfileError::Measured {
            path: output.to_owned(),
            reason,
        })?;
    profile.check()?;
    // A profile is made of tables and numbers.
    let text = toml::to_string(&profile).unwrap_or_default();
    output::say_unfolded(&(text.trim_end().to_owned() + "\n"));
    Ok(())
}

fn check(profiles: &[String], json: bool) -> Result<(), Failure> {
    let mut mistakes = Vec::new();
    let (mut text, mut bad) = (String::new(), 0);
    for name in profiles {
        match Profile::find(name) {
            Ok(_) => text += &format!("{name}: no mistakes\n"),
            Err(ProfileError::Mistakes(found)) => {
                text += &format!("{found}\n");
                mistakes.extend(found.0);
                bad += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    print(json, &mistakes, text.trim_end());
    match bad {
        0 => Ok(()),
        bad => Err(Failure::Profiles(bad)),
    }
}

/// Everything that profiles say, in the order in which it is documented.
fn entries(names: &[String]) -> Result<Vec<Entry>, Failure> {
    let mut values = Vec::new();
    for name in names {
        let profile = Profile::find(name)?;
        // A profile is made of tables and numbers.
        values.push(toml::Value::try_from(profile).unwrap_or(toml::Value::Boolean(false)));
    }
    let entry = |field: Field| {
        let key = field.key();
        let path = || key.split('.');
        Entry {
            values: values
                .iter()
                .map(|value| {
                    path()
                        .try_fold(value, |value, part| value.get(part))
                        .cloned()
                })
                .collect(),
            key,
            unit: field.unit,
            about: field.about,
        }
    };
    Ok(fields().map(entry).collect())
}

fn table(headings: &[&str], entries: &[Entry]) -> String {
    let mut rows = Table::new([&["key"], headings, &["unit"]].concat());
    for Entry {
        key, values, unit, ..
    } in entries
    {
        let mut row = vec![key.clone()];
        row.extend(values.iter().map(|value| match value {
            Some(value) => value.to_string(),
            None => String::from("-"),
        }));
        row.push(String::from(*unit));
        rows.row(row);
    }
    rows.to_string()
}

fn print(json: bool, value: &impl Serialize, text: &str) {
    match json {
        true => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            output::say_unfolded(&(text + "\n"));
        }
        false => output::say_line(format_args!("{text}")),
    }
}
