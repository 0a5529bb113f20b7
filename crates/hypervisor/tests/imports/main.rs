//! The hypervisor's modules import in one direction: the folders in the order of [`LAYERS`], and no two modules each other.
//!
//! What counts is what code names: every path in every file but its tests, followed through `use` and `pub use` to the module that
//! defines the thing. That a module declares its children, or hands on their names, is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use tidy::imports::{Edge, Name, Tree};

/// The folders of `src`, from the lowest. Each may import from those before it.
const LAYERS: [&str; 13] = [
    "sort",
    "lock",
    "hart",
    "heap",
    "memory",
    "interrupts",
    "devices",
    "console",
    "vm",
    "system",
    "operator",
    "run",
    "boot",
];

fn edges() -> BTreeSet<Edge> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let tree = Tree::read(&root);
    let edges = tree.edges();
    // What is found at all: a well-known import, by three ways of writing it.
    for (from, to) in [
        ("hart::csr", "hart::isa::csr"),
        ("run", "system"),
        ("memory::tables", "memory::frames"),
    ] {
        let edge = (Name::from(from), Name::from(to));
        assert!(edges.contains(&edge), "{from} imports {to}, I thought");
    }
    edges
}

fn folder(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// Folders that each folder imports from.
fn folders(edges: &BTreeSet<Edge>) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        let (from, to) = (folder(from), folder(to));
        let imported = folders.entry(from).or_default();
        if from != to {
            imported.insert(to);
        }
    }
    folders
}

#[test]
fn folders_import_from_lower_ones_alone() {
    let edges = edges();
    let place = |module: &str| LAYERS.iter().position(|layer| *layer == folder(module));
    for (from, to) in &edges {
        // The root only says what the program may use.
        if from.is_empty() || folder(from) == folder(to) {
            continue;
        }
        let (Some(upper), Some(lower)) = (place(from), place(to)) else {
            panic!("{from} imports {to}: one of them is in no layer");
        };
        assert!(upper > lower, "{from} imports {to}, which lies above it");
    }
}

#[test]
fn no_two_modules_import_each_other() {
    let edges = edges();
    let mut imports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in &edges {
        imports.entry(from).or_default().push(to);
    }
    if let Some(circle) = circle(&imports) {
        panic!("these modules import each other: {}", circle.join(" -> "));
    }
}

/// A circle among the imports, if there is one.
fn circle<'a>(imports: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<Vec<&'a str>> {
    fn visit<'a>(
        module: &'a str,
        imports: &BTreeMap<&'a str, Vec<&'a str>>,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = path.iter().position(|on_path| *on_path == module) {
            let mut circle = path[start..].to_vec();
            circle.push(module);
            return Some(circle);
        }
        if !done.insert(module) {
            return None;
        }
        path.push(module);
        let below = imports.get(module).into_iter().flatten();
        let found = below
            .copied()
            .find_map(|next| visit(next, imports, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|module| visit(module, imports, &mut Vec::new(), &mut done))
}

#[test]
fn a_circle_is_named() {
    let imports = [
        ("a", vec!["b"]),
        ("b", vec!["c", "d"]),
        ("c", vec![]),
        ("d", vec!["b"]),
    ];
    let found = circle(&imports.into_iter().collect());
    assert_eq!(found, Some(vec!["b", "d", "b"]));
    let imports = [("a", vec!["b", "c"]), ("b", vec!["c"]), ("c", vec![])];
    assert_eq!(circle(&imports.into_iter().collect()), None);
}

/// The document's picture of the house is drawn from the code.
#[test]
fn document_shows_the_present_imports() {
    let edges = edges();
    let folders = folders(&edges);
    let mut picture = String::new();
    for layer in LAYERS.iter().rev() {
        let imported = folders.get(layer);
        let imported: Vec<&str> = (LAYERS.iter().copied())
            .filter(|other| imported.is_some_and(|imported| imported.contains(other)))
            .collect();
        let line = format!("{:<12}{}", format!("{layer}/"), imported.join(" "));
        writeln!(picture, "   {}", line.trim_end()).unwrap();
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/why/architecture.md");
    let document = std::fs::read_to_string(document).unwrap();
    assert!(
        document.contains(&picture),
        "docs/why/architecture.md should show:\n{picture}"
    );
}
