//! Rules that the whole workspace keeps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidy::imports::Tree;
use tidy::numbers::Numbers;
use tidy::rules::{self, Check, Finding};
use tidy::sources;
use tidy::{links, rules::MAX_FILE_LINES};

/// Findings that a crate may still have, by rule. A figure here is only ever lowered.
const ALLOWED: [(&str, &str, usize); 0] = [];

/// Crates with the other crates that they may know, from the bottom. Each knows those before it alone.
const KNOWS: [(&str, &[&str]); 19] = [
    ("tidy", &[]),
    ("riscv", &[]),
    ("splitmix", &[]),
    ("abi", &[]),
    ("board", &["riscv"]),
    ("quantity", &[]),
    ("spinwait", &["riscv"]),
    ("scheduler", &[]),
    (
        "hypervisor",
        &["abi", "board", "riscv", "scheduler", "spinwait"],
    ),
    ("exerciser", &["abi", "riscv", "splitmix"]),
    ("serve", &["abi"]),
    ("machine", &["quantity", "riscv", "splitmix"]),
    ("lockstep", &["machine", "riscv", "splitmix"]),
    ("system", &["abi", "quantity"]),
    ("guest-images", &["system"]),
    (
        "runner",
        &["abi", "guest-images", "machine", "riscv", "system"],
    ),
    (
        "study",
        &["abi", "exerciser", "machine", "runner", "system"],
    ),
    ("fuzz", &["abi", "exerciser", "machine", "runner", "system"]),
    (
        "partita",
        &[
            "abi",
            "board",
            "exerciser",
            "fuzz",
            "guest-images",
            "machine",
            "riscv",
            "runner",
            "scheduler",
            "study",
            "system",
        ],
    ),
];

/// Crates of the workspace that a crate's `[dependencies]` name.
fn dependencies(name: &str) -> Vec<String> {
    let file = sources::root().join("crates").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(file).expect("a crate has a manifest");
    let manifest: toml::Table = text.parse().expect("a manifest is TOML");
    let Some(toml::Value::Table(named)) = manifest.get("dependencies") else {
        return Vec::new();
    };
    let own = named
        .iter()
        .filter(|(_, value)| value.get("path").is_some());
    own.map(|(name, _)| name.clone()).collect()
}

#[test]
fn crates_depend_one_way() {
    let mut below: Vec<&str> = Vec::new();
    for (name, may) in KNOWS {
        for other in may {
            assert!(below.contains(other), "{name} may know {other}, above it");
        }
        for other in dependencies(name) {
            let known = may.contains(&other.as_str());
            assert!(known, "{name} depends on {other}, and must not know it");
        }
        below.push(name);
    }
    for name in sources::crates() {
        assert!(
            below.contains(&name.as_str()),
            "{name} has no place in KNOWS"
        );
    }
}

fn check(rule: &str, found: Vec<Finding>) {
    let mut by_owner: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in found {
        by_owner
            .entry(finding.owner.clone())
            .or_default()
            .push(finding);
    }
    let mut complaint = String::new();
    for (owner, found) in by_owner {
        let allowed = ALLOWED
            .iter()
            .find(|(named, of, _)| *named == rule && *of == owner);
        if found.len() > allowed.map_or(0, |allowed| allowed.2) {
            for finding in found {
                writeln!(complaint, "{}: {}", finding.place, finding.text)
                    .expect("a string takes all");
            }
        }
    }
    assert!(complaint.is_empty(), "{rule}:\n{complaint}");
}

fn check_code(rule: &str, of: Check) {
    check(
        rule,
        sources::with_extension("rs").iter().flat_map(of).collect(),
    );
}

#[test]
fn files_are_short() {
    assert_eq!(MAX_FILE_LINES, 500);
    check_code("file length", rules::long_files);
}

#[test]
fn functions_are_short() {
    check_code("function length", rules::long_functions);
}

#[test]
fn test_names_have_seven_words() {
    check_code("test name", rules::long_test_names);
}

#[test]
fn comments_begin_with_the_thing() {
    check_code("first word", rules::first_words);
}

#[test]
fn public_names_are_the_fields() {
    check_code("public name", rules::names);
}

#[test]
fn links_lead_somewhere() {
    let pages = sources::with_extension("md");
    check("link", pages.iter().flat_map(links::broken).collect());
}

#[test]
fn numbers_of_specifications_stand_once() {
    let numbers = Numbers::of_workspace();
    assert!(numbers.csrs() > 100, "{} CSRs", numbers.csrs());
    let sources = sources::with_extension("rs");
    let copies = sources.iter().flat_map(|source| numbers.copies(source));
    check("number", copies.collect());
}

#[test]
fn modules_import_one_way() {
    let crates = sources::crates();
    let circles = crates.iter().flat_map(|name| {
        let circles = Tree::of_crate(name).circles();
        circles.into_iter().map(move |circle| Finding {
            owner: name.clone(),
            place: format!("crates/{name}"),
            text: circle.join(" "),
        })
    });
    check("circle", circles.collect());
}
