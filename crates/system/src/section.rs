//! One table of a system file while it is read: keys by their kinds, every mistake kept.

use super::document::{Document, Node, Origin, Table, Value};
use super::{Bytes, Duration, FileName, Located, Problem, Settings};
use crate::cache::BUILT_FILES;
use crate::installed::{self, EXERCISER, SHUFFLED};
use crate::keys::built_files;
use abi::keys::{self, Key, NOTES, RENAMED, RENAMED_WORDS, ROWS, Row, Scope, Takes, Without, of};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Keys whose values are no settings.
const READ_ALONE: [usize; 3] = [
    keys::HARTS.place(),
    keys::VCPUS.place(),
    keys::SHARE.place(),
];

/// Returns true if bytes can be read at any offset, unlike from a pipe.
fn is_storage(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return false;
    };
    metadata.is_file() || metadata.file_type().is_block_device()
}

/// One table while it is read.
pub(super) struct Section<'a> {
    pub(super) document: &'a Document,
    pub(super) table: &'a Table,
    /// The table's dotted path with a point at its end, empty for the root.
    pub(super) path: String,
    /// Where the table begins.
    pub(super) origin: Origin,
    /// Keys that may stand here.
    scope: Scope,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        document: &'a Document,
        table: &'a Table,
        path: String,
        origin: Origin,
        scope: Scope,
    ) -> Self {
        Self {
            document,
            table,
            path,
            origin,
            scope,
            problems: Vec::new(),
        }
    }

    pub(super) fn report(&mut self, node: &Node, key: &str, message: String, remedy: String) {
        let key = format!("{}{key}", self.path);
        let value = self.document.source(&node.origin);
        self.problems.push(
            Problem::new(self.document, &node.origin, key, message, remedy).with_value(value),
        );
    }

    /// The node of a key. A mistake if there is none of a key that must be given.
    pub(super) fn node<T>(&mut self, key: Key<T>) -> Option<&'a Node> {
        let node = self.table.get(key.name());
        if node.is_none() && key.row().without == Without::Required {
            let (name, example) = (key.name(), key.note().example);
            let remedy = format!("add {name} = {example}");
            let path = format!("{}{name}", self.path);
            self.problems.push(Problem::new(
                self.document,
                &self.origin,
                path,
                "it must be given",
                remedy,
            ));
        }
        node
    }

    /// The values of all keys of this table that are numbers, times, words and flags.
    pub(super) fn settings(&mut self) -> Settings {
        let mut settings = Settings::default();
        for (place, row) in ROWS.iter().enumerate() {
            // A key that must be given, or one of two, is read by itself.
            if !row.is_in(self.scope) || READ_ALONE.contains(&place) {
                continue;
            }
            let node = self.table.get(row.name);
            let example = NOTES.get(place).map_or("", |note| note.example);
            if let Some(node) = node
                && let Some(value) = self.value(node, row, example)
            {
                settings.set(place, value, node.origin.clone());
            }
        }
        settings
    }

    /// The value of one key, if its row is one of numbers, times, words and flags.
    fn value(&mut self, node: &'a Node, row: &Row, example: &str) -> Option<u64> {
        match row.takes {
            Takes::Number { min, max, .. } => {
                let number = self.integer(node, row.name, min..=max, example)?;
                Some(number.into())
            }
            Takes::Time { min, max } => {
                let time = self.duration(node, row.name, min..=max, example)?;
                Some(time.0)
            }
            Takes::Word(words) => self.word(node, row.name, words, example),
            Takes::Flag => match node.value {
                Value::Boolean(value) => Some(value.into()),
                _ => {
                    self.wrong_kind(node, row.name, "true or false", "true");
                    None
                }
            },
            _ => None,
        }
    }

    /// The value of a key that takes a number.
    pub(super) fn number<T>(&mut self, node: &Node, key: Key<T>) -> Option<u32> {
        let Takes::Number { min, max, .. } = key.row().takes else {
            return None;
        };
        self.integer(node, key.name(), min..=max, key.note().example)
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, key: &str, wanted: &str, example: &str) {
        let message = format!("this is {}, and {wanted} is wanted", node.value.kind());
        let remedy = format!("write a value such as {key} = {example}");
        self.report(node, key, message, remedy);
    }

    /// A whole number within limits.
    pub(super) fn integer(
        &mut self,
        node: &Node,
        key: &str,
        range: RangeInclusive<u32>,
        example: &str,
    ) -> Option<u32> {
        let bounds = format!("{} to {}", range.start(), range.end());
        let number = match node.value {
            Value::Integer(number) => u32::try_from(number).ok(),
            Value::Huge => None,
            _ => {
                let wanted = format!("a whole number, {bounds},");
                self.wrong_kind(node, key, &wanted, example);
                return None;
            }
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let remedy = format!("use {bounds}");
            self.report(node, key, String::from("out of range"), remedy);
        }
        number
    }

    pub(super) fn text(&mut self, node: &'a Node, key: &str, example: &str) -> Option<&'a str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.wrong_kind(node, key, "a text", example);
                None
            }
        }
    }

    /// The text of a key that takes one.
    pub(super) fn text_of<T>(&mut self, key: Key<T>) -> Option<(&'a Node, &'a str)> {
        let node = self.node(key)?;
        let text = self.text(node, key.name(), key.note().example)?;
        Some((node, text))
    }

    /// The items of a key that takes a list; none where the key is not given.
    pub(super) fn list<T>(&mut self, key: Key<T>) -> &'a [Node] {
        match self.node(key) {
            None => &[],
            Some(Node {
                value: Value::Array(items),
                ..
            }) => items,
            Some(node) => {
                self.wrong_kind(node, key.name(), "a list", key.note().example);
                &[]
            }
        }
    }

    /// The table of a key that takes one, as a section of its own.
    pub(super) fn table_of<T>(&mut self, key: Key<T>) -> Option<Self> {
        let node = self.node(key)?;
        let Value::Table(table) = &node.value else {
            self.wrong_kind(node, key.name(), "a table", key.note().example);
            return None;
        };
        let Takes::Table(scope) = key.row().takes else {
            return None;
        };
        let path = format!("{}{}.", self.path, key.name());
        let origin = node.origin.clone();
        Some(Self::new(self.document, table, path, origin, scope))
    }

    /// The tables of a key that takes named ones: each with its name, and a section of its own. `scope` chooses among the key's.
    pub(super) fn named_tables<T>(
        &mut self,
        key: Key<T>,
        scope: impl Fn(&Table) -> Scope,
    ) -> Vec<(&'a str, Self)> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        let example = key.note().example;
        let (Value::Table(table), Takes::Named(_)) = (&node.value, key.row().takes) else {
            self.wrong_kind(node, key.name(), "a table", example);
            return Vec::new();
        };
        let mut all = Vec::new();
        for (name, origin, node) in table.iter() {
            let path = format!("{}.{name}", key.name());
            let Value::Table(table) = &node.value else {
                self.wrong_kind(node, &path, "a table", example);
                continue;
            };
            let origin = match &node.origin {
                Origin::File(range) if range.start < origin.position() => origin.clone(),
                _ => node.origin.clone(),
            };
            let path = format!("{path}.");
            let scope = scope(table);
            all.push((name, Self::new(self.document, table, path, origin, scope)));
        }
        all
    }

    /// The place of a word among those that a key takes.
    fn word(&mut self, node: &'a Node, key: &str, words: &[&str], example: &str) -> Option<u64> {
        let text = self.text(node, key, example)?;
        let found = words.iter().position(|word| *word == text);
        if found.is_none() {
            let mut renamed = RENAMED_WORDS.iter();
            let renamed = renamed.find(|(of, old, _)| *of == key && *old == text);
            let (message, remedy) = match renamed {
                Some((_, old, new)) => (
                    format!("{old} has another name now"),
                    format!("write it as {key} = {new:?}"),
                ),
                None => (
                    String::from("no such word is known"),
                    format!("use one of {}", words.join(", ")),
                ),
            };
            self.report(node, key, message, remedy);
        }
        found.and_then(|place| u64::try_from(place).ok())
    }

    /// An amount of bytes within a key's limits.
    pub(super) fn size<T>(&mut self, key: Key<T>) -> Option<Located<Bytes>> {
        let node = self.node(key)?;
        let (name, example) = (key.name(), key.note().example);
        let text = self.text(node, name, example)?;
        let Takes::Size { min, granule } = key.row().takes else {
            return None;
        };
        let Some(size) = Bytes::parse(text) else {
            let units = Bytes::units();
            let remedy = format!("write a whole number and a unit ({units}), such as {example}");
            self.report(node, name, format!("{text:?} is no size"), remedy);
            return None;
        };
        if size.0 < min || !size.0.is_multiple_of(granule) {
            let message = format!("a multiple of {} is wanted", Bytes(granule));
            let next = Bytes(size.0.max(min.max(1)).next_multiple_of(granule));
            self.report(node, name, message, format!("use {next}"));
            return None;
        }
        Some(Located {
            value: size,
            origin: node.origin.clone(),
        })
    }

    fn duration(
        &mut self,
        node: &'a Node,
        key: &str,
        range: RangeInclusive<u64>,
        example: &str,
    ) -> Option<Duration> {
        let text = self.text(node, key, example)?;
        let Some(duration) = Duration::parse(text) else {
            let remedy = format!(
                "write a whole number and a unit ({}), such as {example}",
                Duration::units()
            );
            self.report(node, key, format!("{text:?} is no time"), remedy);
            return None;
        };
        if !range.contains(&duration.0) {
            let (low, high) = (Duration(*range.start()), Duration(*range.end()));
            self.report(
                node,
                key,
                String::from("out of range"),
                format!("use {low} to {high}"),
            );
            return None;
        }
        Some(duration)
    }

    pub(super) fn file(&mut self, node: &'a Node, key: &str) -> Option<Located<FileName>> {
        let text = self.text(node, key, "\"image:debian/kernel\"")?;
        if text.is_empty() {
            self.report(
                node,
                key,
                String::from("the name is empty"),
                String::from("name a file, or image:NAME for one that `partita images` builds"),
            );
            return None;
        }
        if text.contains('\0') {
            let message = String::from("a name with a zero byte in it names no file");
            self.report(node, key, message, String::from("take \\u0000 out of it"));
            return None;
        }
        let value = match text.strip_prefix(FileName::BUILT) {
            Some(name @ (EXERCISER | SHUFFLED)) => {
                FileName::Path(installed::program(&installed::command(), name))
            }
            Some(name) => FileName::Built(String::from(name)),
            None => {
                let folder = self.document.path().parent();
                FileName::Path(folder.map_or_else(|| text.into(), |folder| folder.join(text)))
            }
        };
        match &value {
            FileName::Built(name) if !BUILT_FILES.contains(&name.as_str()) => {
                let message = String::from("`partita images` builds no such file");
                self.report(
                    node,
                    key,
                    message,
                    format!("use one of {}", built_files().join(", ")),
                );
            }
            FileName::Path(path) if path.is_dir() => {
                let message = format!("{} is a folder", path.display());
                self.report(node, key, message, String::from("name a file in it"));
            }
            FileName::Path(path) if path.exists() && !is_storage(path) => {
                let message = format!("{} is neither a file nor a disk", path.display());
                self.report(node, key, message, String::from("name a file"));
            }
            FileName::Path(path) if !path.exists() && text.starts_with(FileName::BUILT) => {
                let message = format!("there is no exerciser at {}", path.display());
                self.report(node, key, message, String::from("build it by `make build`"));
            }
            FileName::Path(path) if !path.exists() => {
                let remedy = "put it there, or name one that `partita images` builds, such as \
                              image:debian/kernel";
                let message = format!("there is no file {}", path.display());
                self.report(node, key, message, String::from(remedy));
            }
            _ => {}
        }
        Some(Located {
            value,
            origin: node.origin.clone(),
        })
    }

    /// Reports the keys that have no row for this table, and hands over all mistakes.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        for (name, origin, node) in self.table.iter() {
            let known = || of(self.scope).map(|(row, _)| row.name);
            if known().any(|known| known == name) {
                continue;
            }
            let mut renamed = RENAMED.iter();
            let renamed =
                renamed.find(|renamed| renamed.scope == self.scope && renamed.old == name);
            let (message, remedy) = match renamed {
                Some(renamed) => {
                    let path = format!("{}{}", self.path, renamed.new);
                    let value = match renamed.value {
                        "" => String::new(),
                        value => format!(" ({value})"),
                    };
                    let message = format!("this key is called {path} now");
                    (message, format!("{}{value}", place_of(&path)))
                }
                None => (String::from("no such key is known"), remedy(name, known())),
            };
            let key = format!("{}{name}", self.path);
            let problem = Problem::new(self.document, origin, key, message, remedy);
            let value = self.document.source(&node.origin);
            self.problems.push(problem.with_value(value));
        }
        self.problems
    }
}

/// How to write a key that is called `path` now.
fn place_of(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((table, key)) if table.ends_with("experiment") => {
            format!("write {key} = ... below [{table}], or --set {path}=...")
        }
        Some((_, key)) => format!("write it as {key} = ..."),
        None => format!("write it as {path} = ..."),
    }
}

/// Remedy for an unknown key: the most similar known key, or all of them.
fn remedy<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    let near = known
        .clone()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match near.filter(|known| likeness(known) > 0.8) {
        Some(known) => format!("did you mean {known}?"),
        None => {
            let known: Vec<&str> = known.collect();
            format!("the keys here are {}", known.join(", "))
        }
    }
}
