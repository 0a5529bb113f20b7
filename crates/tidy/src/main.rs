//! Figures of the workspace's form: lines by crate, the longest functions, words by page, and what breaks a rule.

use std::collections::BTreeMap;

use tidy::imports::Tree;
use tidy::rules::{self, Check, Finding};
use tidy::{links, sources};

const USAGE: &str = "\
Figures of the workspace's form.

Usage: tidy lines | functions | words | circles | findings [CRATE]

  lines       files and lines of Rust by crate, with tests
  functions   the twenty longest functions
  words       words of the pages
  circles     modules of each crate that import each other
  findings    what breaks a rule of names, comments, lengths and links
";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("lines") => lines(),
        Some("functions") => functions(),
        Some("words") => words(),
        Some("circles") => circles(),
        Some("findings") => findings(arguments.get(1).map(String::as_str)),
        Some("--help" | "-h") => print!("{USAGE}"),
        _ => {
            eprint!("{USAGE}");
            std::process::exit(2);
        }
    }
}

fn lines() {
    let mut by_crate: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for source in sources::with_extension("rs") {
        let entry = by_crate.entry(source.owner()).or_default();
        entry.0 += 1;
        entry.1 += source.text.lines().count();
    }
    for (name, (files, lines)) in by_crate {
        println!("{name:<16}{files:>6} files{lines:>8} lines");
    }
}

fn functions() {
    let mut all: Vec<_> = sources::with_extension("rs")
        .iter()
        .flat_map(rules::functions)
        .collect();
    all.sort_by_key(|function| std::cmp::Reverse(function.lines));
    for function in all.iter().take(20) {
        println!(
            "{:>5}  {}  {}",
            function.lines, function.name, function.place
        );
    }
}

fn words() {
    let mut total = 0;
    for source in sources::with_extension("md") {
        let words = source.text.split_whitespace().count();
        total += words;
        println!("{words:>7}  {}", source.path.display());
    }
    println!("{total:>7}  in all");
}

fn circles() {
    for name in sources::crates() {
        let circles = Tree::of_crate(&name).circles();
        println!("{name}: {}", circles.len());
        for circle in circles {
            println!("  {}", circle.join(" "));
        }
    }
}

fn findings(only: Option<&str>) {
    let of_code: [(&str, Check); 5] = [
        ("file length", rules::long_files),
        ("test name", rules::long_test_names),
        ("first word", rules::first_words),
        ("public name", rules::names),
        ("function length", rules::long_functions),
    ];
    let code = sources::with_extension("rs");
    for (rule, check) in of_code {
        print_findings(rule, only, code.iter().flat_map(check));
    }
    let pages = sources::with_extension("md");
    print_findings("link", only, pages.iter().flat_map(links::broken));
}

fn print_findings(rule: &str, only: Option<&str>, found: impl Iterator<Item = Finding>) {
    let mut by_owner: BTreeMap<String, usize> = BTreeMap::new();
    for finding in found.filter(|finding| only.is_none_or(|only| finding.owner == only)) {
        if only.is_some() {
            println!("{}: {rule}: {}", finding.place, finding.text);
        }
        *by_owner.entry(finding.owner).or_default() += 1;
    }
    let counts: Vec<String> = by_owner
        .iter()
        .map(|(owner, count)| format!("{owner} {count}"))
        .collect();
    println!(
        "{rule}: {} ({})",
        by_owner.values().sum::<usize>(),
        counts.join(", ")
    );
}
