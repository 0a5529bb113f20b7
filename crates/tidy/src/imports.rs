//! Modules of a crate, and the imports between them.
//!
//! An import is a path that code names, followed through `use` and `pub use` to the module that defines the thing. Code for tests does not
//! count; neither does the declaration of a child or the re-export of its names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, Item, UseTree, Visibility};

/// Path of a module from the crate's root; the root's is empty.
pub type Name = String;

/// Import: the first module names something of the second.
pub type Edge = (Name, Name);

type Segments = Vec<String>;

#[derive(Debug, Default)]
struct Module {
    /// Paths that `use` brings in, by their names here.
    names: BTreeMap<String, Segments>,
    /// Names re-exported by `pub use`.
    handed_on: BTreeSet<String>,
    /// Modules that a glob brings in.
    globs: Vec<Segments>,
    /// Paths in the code.
    paths: BTreeSet<Segments>,
}

/// Modules of a crate without its tests.
#[derive(Debug)]
pub struct Tree {
    modules: BTreeMap<Name, Module>,
}

impl Tree {
    /// Reads the crate whose root is this file.
    pub fn read(root: &Path) -> Self {
        let mut tree = Self {
            modules: BTreeMap::new(),
        };
        let folder = root.parent().unwrap();
        tree.read_file(Name::new(), root, folder);
        tree
    }

    /// The file of a module, whose children lie in `folder`.
    fn read_file(&mut self, name: Name, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(name, parsed.items, folder);
    }

    fn read_items(&mut self, name: Name, items: Vec<Item>, folder: &Path) {
        self.modules.entry(name.clone()).or_default();
        for item in items {
            match item {
                Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    let own = module.ident.to_string();
                    let child = join(&name, &own);
                    if let Some((_, items)) = module.content {
                        self.read_items(child, items, &folder.join(own));
                        continue;
                    }
                    for (file, below) in files(&own, &module.attrs, folder) {
                        self.read_file(child.clone(), &file, &below);
                    }
                }
                Item::Use(item) if !is_for_tests(&item.attrs) => {
                    let public = !matches!(item.vis, Visibility::Inherited);
                    let module = self.modules.entry(name.clone()).or_default();
                    module.bring_in(&item.tree, &mut Vec::new(), public);
                }
                Item::Mod(_) | Item::Use(_) => {}
                other if is_test(&other) => {}
                other => {
                    let module = self.modules.entry(name.clone()).or_default();
                    collect(other.to_token_stream(), &mut module.paths);
                }
            }
        }
    }

    /// Reads a crate of the workspace by its name.
    pub fn of_crate(name: &str) -> Self {
        let source = crate::sources::root().join("crates").join(name).join("src");
        let library = source.join("lib.rs");
        let root = if library.exists() {
            library
        } else {
            source.join("main.rs")
        };
        Self::read(&root)
    }

    /// Groups of modules that import each other, directly or by way of others; a module and its own children do not count.
    pub fn circles(&self) -> Vec<Vec<Name>> {
        let edges = self.edges();
        let mut imports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, to) in edges.iter().filter(|(from, _)| !from.is_empty()) {
            imports.entry(from).or_default().push(to);
        }
        let reached: BTreeMap<&str, BTreeSet<&str>> = imports
            .keys()
            .map(|from| (*from, reachable(from, &imports)))
            .collect();
        let mut circles = BTreeSet::new();
        for (from, reached_from) in &reached {
            let back = |to: &&&str| reached.get(**to).is_some_and(|back| back.contains(from));
            let circle: BTreeSet<&str> = reached_from.iter().filter(back).copied().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let names = |circle: BTreeSet<&str>| circle.into_iter().map(Name::from).collect();
        circles.into_iter().map(names).collect()
    }

    /// Imports between modules.
    pub fn edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (name, module) in &self.modules {
            let used = module.names.iter();
            let used = used.map(|(local, path)| (module.handed_on.contains(local), path));
            let named = module.paths.iter().map(|path| (false, path));
            for (handed_on, path) in used.chain(named) {
                let Some((found, true)) = self.resolve(name, path, 0) else {
                    continue;
                };
                // A parent's names for what its children define.
                let own = handed_on && found.strip_prefix(name.as_str()).is_some();
                if !own {
                    edges.insert((name.clone(), found));
                }
            }
            for path in &module.globs {
                if let Some((found, _)) = self.resolve(name, path, 0) {
                    edges.insert((name.clone(), found));
                }
            }
        }
        edges.retain(|(from, to)| from != to);
        edges
    }

    /// The module that a path of `from` leads to, and whether it names something in it rather than the module itself.
    fn resolve(&self, from: &str, path: &[String], depth: u32) -> Option<(Name, bool)> {
        assert!(depth < 16, "{from}: {path:?} leads nowhere");
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Name::new(),
            "self" => from.into(),
            "super" => {
                let mut parent = parent(from);
                while rest.first().is_some_and(|next| next == "super") {
                    parent = self::parent(&parent);
                    rest = &rest[1..];
                }
                parent
            }
            local => {
                let module = &self.modules[from];
                let child = join(from, local);
                // A function may have its module's name: what is followed by `::` is the module.
                let is_child = !rest.is_empty() && self.modules.contains_key(&child);
                let meant = module.names.get(local).filter(|meant| *meant != path);
                if let Some(meant) = meant.filter(|_| !is_child) {
                    let whole: Segments = meant.iter().chain(rest).cloned().collect();
                    return self.resolve(from, &whole, depth + 1);
                }
                self.modules.contains_key(&child).then_some(child)?
            }
        };
        while let Some((next, behind)) = rest.split_first() {
            let child = join(&at, next);
            if self.modules.contains_key(&child) {
                at = child;
                rest = behind;
                continue;
            }
            let module = &self.modules[&at];
            // A macro is handed on under its own name.
            let itself = |meant: &&Segments| meant.len() == 1 && meant[0] == *next;
            let meant = module.names.get(next).filter(|meant| !itself(meant));
            if let Some(meant) = meant.filter(|_| module.handed_on.contains(next)) {
                let whole: Segments = meant.iter().chain(behind).cloned().collect();
                return self.resolve(&at, &whole, depth + 1);
            }
            return Some((at, true));
        }
        Some((at, false))
    }
}

impl Module {
    fn bring_in(&mut self, tree: &UseTree, before: &mut Segments, public: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.bring_in(&path.tree, before, public);
                before.pop();
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let mut whole = before.clone();
                if name != "self" {
                    whole.push(name);
                }
                if let Some(local) = whole.last().cloned() {
                    self.bring_in_as(local, whole, public);
                }
            }
            UseTree::Rename(rename) => {
                let mut whole = before.clone();
                if rename.ident != "self" {
                    whole.push(rename.ident.to_string());
                }
                self.bring_in_as(rename.rename.to_string(), whole, public);
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.bring_in(tree, before, public);
                }
            }
        }
    }

    fn bring_in_as(&mut self, local: String, whole: Segments, public: bool) {
        if public {
            self.handed_on.insert(local.clone());
        }
        self.names.insert(local, whole);
    }
}

fn reachable<'a>(from: &'a str, imports: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in imports.get(next).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// All `a::b::c` among these tokens, also those in the arguments of macros.
fn collect(tokens: TokenStream, paths: &mut BTreeSet<Segments>) {
    let mut path = Segments::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    end(&mut path, paths);
                }
                path.push(ident.to_string());
                colons = 0;
            }
            other => {
                end(&mut path, paths);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    collect(group.stream(), paths);
                }
            }
        }
    }
    end(&mut path, paths);
}

fn end(path: &mut Segments, paths: &mut BTreeSet<Segments>) {
    if path.len() > 1 {
        paths.insert(path.clone());
    }
    path.clear();
}

/// The files that a module may be in, with the folders of their children: one, or one for each kind of computer.
fn files(own: &str, attributes: &[Attribute], folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let chosen = attributes.iter().filter_map(|attribute| {
        let text = attribute.to_token_stream().to_string();
        let file = text.split_once("path = \"")?.1.split_once('"')?.0;
        let file = folder.join(file);
        let below = file.parent()?.into();
        Some((file, below))
    });
    let chosen: Vec<_> = chosen.collect();
    if !chosen.is_empty() {
        return chosen;
    }
    let below = folder.join(own);
    let inside = below.join("mod.rs");
    let file = if inside.exists() {
        inside
    } else {
        folder.join(format!("{own}.rs"))
    };
    vec![(file, below)]
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        text.replace(' ', "") == "#[cfg(test)]"
    })
}

fn is_test(item: &Item) -> bool {
    match item {
        Item::Fn(item) => is_for_tests(&item.attrs),
        Item::Impl(item) => is_for_tests(&item.attrs),
        Item::Struct(item) => is_for_tests(&item.attrs),
        Item::Const(item) => is_for_tests(&item.attrs),
        _ => false,
    }
}

fn join(parent: &str, child: &str) -> Name {
    if parent.is_empty() {
        child.into()
    } else {
        format!("{parent}::{child}")
    }
}

fn parent(name: &str) -> Name {
    name.rsplit_once("::")
        .map(|(parent, _)| parent.into())
        .unwrap_or_default()
}
