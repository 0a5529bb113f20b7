//! Makers of a result: the command, its inputs, and the time.

use crate::drawing::Page;
use crate::laboratory::Entry;
use runner::table::Table;
use std::collections::BTreeSet;
use system::Date;

/// Says at a page's end what made it: the command, the date, the seeds, the settings that all runs share, and what was run.
pub fn made_by(page: &mut Page, entries: &[Entry]) {
    if let Some(entry) = entries.first() {
        page.heading("What made this");
        page.table(&makers(entry, entries));
    }
}

/// Adds what made a page about one run by this very command.
pub fn made_by_this(page: &mut Page) {
    page.heading("What made this");
    let mut table = Table::new(["what", "which"]);
    this_command(&mut table);
    table.row(["version", env!("CARGO_PKG_VERSION")]);
    page.table(&table);
}

fn this_command(table: &mut Table) {
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    table.row(["command", &words.join(" ")]);
    table.row(["drawn", &now()]);
}

/// A word of a command as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_./=,:+@%-".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        String::from(word)
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The date and the time in UTC.
fn now() -> String {
    system::calendar(Date::Host.seconds()).replace('T', " ") + " UTC"
}

fn makers(entry: &Entry, entries: &[Entry]) -> Table {
    let mut table = Table::new(["what", "which"]);
    this_command(&mut table);
    let systems: BTreeSet<String> = entries
        .iter()
        .map(|entry| entry.point.system.display().to_string())
        .collect();
    table.row(["system", &Vec::from_iter(systems).join(" ")]);
    let mut shared = entry.point.changes.clone();
    shared.retain(|change| {
        entries
            .iter()
            .all(|entry| entry.point.changes.contains(change))
    });
    table.row(["settings of all runs", &shared.join(" ")]);
    let mut seeds: Vec<u64> = entries.iter().map(|entry| entry.point.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    table.row(["seeds", &seeds.join(" ")]);
    table.row(["version", &entry.made_by.partita]);
    table.row(["computer", &entry.point.computer.to_string()]);
    let files: BTreeSet<(&str, &str)> = entries
        .iter()
        .flat_map(|entry| &entry.made_by.files)
        .map(|(what, fingerprint)| (what.as_str(), fingerprint.short()))
        .collect();
    for (what, fingerprint) in files {
        table.row([what, fingerprint]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_survives_shell_quoting() {
        for (word, shown) in [
            ("partita", "partita"),
            ("spin=wapd,rslp", "spin=wapd,rslp"),
            ("exercise=work lock=ticket", "'exercise=work lock=ticket'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }
}
