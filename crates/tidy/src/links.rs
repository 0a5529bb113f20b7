//! Links of the pages: relative ones lead to files and headings that exist.

use std::fs;
use std::path::Path;

use crate::rules::Finding;
use crate::sources::{Source, root};

/// Links of a Markdown page that lead nowhere.
pub fn broken(source: &Source) -> Vec<Finding> {
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (number, line) in outside_code(&source.text) {
        for target in targets(line) {
            if let Some(problem) = problem(source, folder, target) {
                found.push(Finding {
                    owner: source.owner(),
                    place: format!("{}:{number}", source.path.display()),
                    text: format!("{target}: {problem}"),
                });
            }
        }
    }
    found
}

fn problem(source: &Source, folder: &Path, target: &str) -> Option<&'static str> {
    // Pages that are included in documentation of code name items.
    if target.contains("::") || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let text = if path.is_empty() {
        source.text.clone()
    } else {
        let file = root().join(folder).join(path);
        if !file.exists() {
            return Some("no such file");
        }
        if anchor.is_empty() || !path.ends_with(".md") {
            return None;
        }
        fs::read_to_string(file).ok()?
    };
    let there = anchor.is_empty() || anchors(&text).iter().any(|own| own == anchor);
    (!there).then_some("no such heading")
}

/// Lines outside code blocks with their numbers.
fn outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            return None;
        }
        (!inside).then_some((number + 1, line))
    })
}

/// Targets of a line's `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?;
        let target = target.split_whitespace().next()?;
        Some(target)
    })
}

/// Anchors of a page's headings, as GitHub and mdBook form them.
fn anchors(text: &str) -> Vec<String> {
    let headings = outside_code(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading
                .chars()
                .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
            kept.map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        let page = Source {
            path: "crates/tidy/page.md".into(),
            text: "# One `two`, three\n[a](Cargo.toml) [b](#one-two-three) [c](none.md) [d](#four)\n```\n[e](none.md)\n```\n".into(),
        };
        let found: Vec<_> = broken(&page)
            .into_iter()
            .map(|finding| finding.text)
            .collect();
        assert_eq!(found, ["none.md: no such file", "#four: no such heading"]);
    }
}
