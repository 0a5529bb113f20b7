//! The machine's modules import each other one way: no two of them meet in a circle.
//!
//! [`ORDER`] is the order, from the bottom. A module may import those before it. [`NARROW`] says of some that they may import
//! less. Sources are read as tokens, so comments do not count; what is compiled for tests alone does not either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The modules from the bottom to the top.
const ORDER: [&str; 26] = [
    // What every part speaks of.
    "base",
    "count",
    "trace",
    // Instruction set and arithmetic.
    "float",
    "instruction",
    "vector",
    "extension",
    // What a computer is made of.
    "ram",
    "board",
    "profile",
    // What accesses and events cost.
    "timing",
    "device",
    // A hart, and what it keeps.
    "csr",
    "translation",
    "hart",
    // What is decoded, and where accesses go.
    "native",
    "code",
    "memory",
    // What harts share, and what they do to it.
    "system",
    "zicsr",
    "execute",
    // The whole: schedule, figures, checkpoints, debugger, command.
    "machine",
    "monitor",
    "checkpoint",
    "gdb",
    "front",
];

/// Modules that import no others than these.
const NARROW: [(&str, &[&str]); 10] = [
    ("base", &[]),
    ("instruction", &[]),
    // Vector instructions know neither a hart nor memory.
    ("vector", &["base", "float"]),
    ("trace", &["base"]),
    // Models are told of events and addresses, and know of no hart, memory or device.
    ("timing", &["base", "count", "profile"]),
    // Devices reach memory by a trait and harts by interrupt levels.
    ("device", &["base", "board", "profile", "trace"]),
    ("csr", &["base"]),
    ("translation", &["base", "csr", "instruction", "ram"]),
    // A hart's state knows neither memory nor devices nor time models.
    (
        "hart",
        &[
            "base",
            "count",
            "csr",
            "extension",
            "trace",
            "translation",
            "vector",
        ],
    ),
    // Harts see devices through `system` alone.
    (
        "zicsr",
        &["base", "csr", "extension", "hart", "instruction", "system"],
    ),
];

/// Which module imports which, and in which files.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn idents(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

/// The names that follow a `::` directly: one, or those of a group.
fn heads(token: Option<&TokenTree>) -> Vec<String> {
    match token {
        Some(TokenTree::Ident(ident)) => vec![ident.to_string()],
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner = idents(group.stream());
            inner
                .split(|token| is_punct(Some(token), ','))
                .flat_map(|item| heads(item.first()))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Tests whether the attribute's group is `cfg(test)`.
fn is_for_tests(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Adds the names that tokens take from the root of the crate: after `crate::`, or after as many `super::` as
/// the module is deep.
fn collect(tokens: TokenStream, depth: usize, found: &mut BTreeSet<String>) {
    let tokens = idents(tokens);
    let mut at = 0;
    while at < tokens.len() {
        if is_punct(tokens.get(at), '#') && is_for_tests(tokens.get(at + 1)) {
            // The item ends with its body or a semicolon.
            at += 2;
            while at < tokens.len()
                && !is_punct(tokens.get(at), ';')
                && !matches!(&tokens[at], TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
            {
                at += 1;
            }
            at += 1;
            continue;
        }
        if is_ident(tokens.get(at), "crate") && is_punct(tokens.get(at + 1), ':') {
            found.extend(heads(tokens.get(at + 3)));
        } else if is_ident(tokens.get(at), "super")
            && (at < 3 || !is_ident(tokens.get(at - 3), "super"))
        {
            let mut ups = 0;
            let mut next = at;
            while is_ident(tokens.get(next), "super") {
                ups += 1;
                next += 3;
            }
            if ups == depth {
                found.extend(heads(tokens.get(next)));
            }
        }
        if let Some(TokenTree::Group(group)) = tokens.get(at) {
            collect(group.stream(), depth, found);
        }
        at += 1;
    }
}

/// Names that the root of the crate gives: `pub use machine::{Machine, ...}`.
fn root_names(source: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(source.join("lib.rs")).expect("lib.rs can be read");
    let tokens = idents(text.parse().expect("lib.rs is Rust"));
    let mut names = BTreeMap::new();
    for at in 0..tokens.len() {
        if is_ident(tokens.get(at), "use")
            && let Some(TokenTree::Ident(module)) = tokens.get(at + 1)
        {
            for name in heads(tokens.get(at + 4)) {
                names.insert(name, module.to_string());
            }
        }
    }
    names
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Imports of the sources.
fn imports(source: &Path) -> Imports {
    let names = root_names(source);
    let mut files = Vec::new();
    sources(source, &mut files);
    let mut imports = Imports::new();
    for file in files {
        let inside = file.strip_prefix(source).expect("inside");
        let parts: Vec<String> = inside
            .with_extension("")
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .filter(|part| part != "mod")
            .collect();
        let Some(module) = parts
            .first()
            .filter(|part| *part != "lib" && *part != "bin")
        else {
            continue;
        };
        if parts.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source can be read");
        let mut found = BTreeSet::new();
        collect(
            text.parse().expect("a source is Rust"),
            parts.len(),
            &mut found,
        );
        let of = imports.entry(module.clone()).or_default();
        for name in found {
            let target = names.get(&name).unwrap_or(&name);
            if target != module {
                let files = of.entry(target.clone()).or_default();
                files.insert(inside.display().to_string());
            }
        }
    }
    imports
}

/// The way from one module to another along imports, the shortest.
fn way(imports: &Imports, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::from([from.to_owned()]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().expect("no way is empty");
            if last == to {
                return Some(way);
            }
            for next in imports.get(last).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    longer.push([way.clone(), vec![next.clone()]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

/// Complaints about imports, a line each.
fn complaints(imports: &Imports, order: &[&str], narrow: &[(&str, &[&str])]) -> Vec<String> {
    let place = |module: &str| order.iter().position(|other| *other == module);
    let mut found = Vec::new();
    for (module, targets) in imports {
        let Some(own) = place(module) else {
            found.push(format!("{module} has no place in the order"));
            continue;
        };
        let allowed = narrow.iter().find(|(name, _)| name == module);
        for (target, files) in targets {
            let files = Vec::from_iter(files.iter().map(String::as_str)).join(", ");
            if place(target).is_none_or(|other| other > own) {
                found.push(match way(imports, target, module) {
                    Some(way) => format!("a circle: {module} -> {} ({files})", way.join(" -> ")),
                    None => format!("{module} imports {target}, which is above it ({files})"),
                });
            } else if let Some((_, allowed)) = allowed
                && !allowed.contains(&target.as_str())
            {
                found.push(format!("{module} must not know {target} ({files})"));
            }
        }
    }
    found
}

#[test]
fn modules_import_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let imports = imports(&source);
    let unknown: Vec<_> = ORDER
        .iter()
        .filter(|m| !imports.contains_key(**m))
        .collect();
    assert!(unknown.is_empty(), "no such modules: {unknown:?}");
    let found = complaints(&imports, &ORDER, &NARROW);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// Imports as `FILE: TEXT`, each file a module.
fn made_up(files: &[(&str, &str)]) -> Imports {
    let mut imports = Imports::new();
    for (module, text) in files {
        let mut found = BTreeSet::new();
        collect(text.parse().expect("Rust"), 1, &mut found);
        found.remove(*module);
        let targets = found
            .into_iter()
            .map(|name| (name, BTreeSet::from([(*module).to_owned()])));
        imports.insert((*module).to_owned(), targets.collect());
    }
    imports
}

#[test]
fn circles_are_found_and_named() {
    let imports = made_up(&[
        ("low", "// crate::high\nfn f() { g(super::middle::X) }"),
        ("middle", "use crate::{low::{A, B}, high as other};"),
        ("high", "macro_rules! m { () => { $crate::low::C } }"),
        (
            "alone",
            "#[cfg(test)] mod tests { use crate::high::D; } use crate::low::E;",
        ),
    ]);
    assert!(!imports["alone"].contains_key("high"));
    let found = complaints(
        &imports,
        &["low", "middle", "alone", "high"],
        &[("alone", &[])],
    );
    assert_eq!(
        found,
        [
            "alone must not know low (alone)",
            "a circle: low -> middle -> low (low)",
            "a circle: middle -> high -> low -> middle (middle)",
        ]
    );
}
