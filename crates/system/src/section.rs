//! One table of a system file while it is read: keys by their kinds, every mistake kept.

use super::document::{Document, Node, Origin, Table, Value};
use super::{Bytes, Duration, FileName, Located, Problem};
use crate::cache::BUILT_FILES;
use crate::installed;
use abi::system::MEMORY_GRANULE;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The exercisers' kernel by name.
pub const EXERCISER: &str = "exerciser";
/// The same kernel with its code and data in another order.
pub const SHUFFLED: &str = "exerciser-shuffled";

/// Whether bytes can be read at a place of one's choice, as they cannot from a pipe.
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
    pub(super) known: Vec<&'static str>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        document: &'a Document,
        table: &'a Table,
        path: String,
        origin: Origin,
    ) -> Self {
        Self {
            document,
            table,
            path,
            origin,
            known: Vec::new(),
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

    pub(super) fn optional(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.get(key)
    }

    pub(super) fn required(&mut self, key: &'static str, example: &str) -> Option<&'a Node> {
        let node = self.optional(key);
        if node.is_none() {
            let name = format!("{}{key}", self.path);
            let remedy = format!("add {key} = {example}");
            self.problems.push(Problem::new(
                self.document,
                &self.origin,
                name,
                "it must be given",
                remedy,
            ));
        }
        node
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, key: &str, wanted: &str, example: &str) {
        let message = format!("this is {}, and {wanted} is wanted", node.value.kind());
        self.report(node, key, message, format!("write it as {key} = {example}"));
    }

    pub(super) fn integer(
        &mut self,
        node: &Node,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let example = range.start().to_string();
        let Value::Integer(number) = node.value else {
            self.wrong_kind(node, key, "a whole number", &example);
            return None;
        };
        let number = u32::try_from(number)
            .ok()
            .filter(|number| range.contains(number));
        if number.is_none() {
            let bounds = format!("{} to {}", range.start(), range.end());
            self.report(
                node,
                key,
                String::from("out of range"),
                format!("use {bounds}"),
            );
        }
        number
    }

    pub(super) fn text(&mut self, node: &'a Node, key: &str, example: &str) -> Option<&'a str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.wrong_kind(node, key, "a text", &format!("{example:?}"));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, key: &'static str, default: bool) -> bool {
        match self.optional(key) {
            None => default,
            Some(Node {
                value: Value::Boolean(value),
                ..
            }) => *value,
            Some(node) => {
                self.wrong_kind(node, key, "true or false", "true");
                default
            }
        }
    }

    pub(super) fn list(&mut self, key: &'static str, example: &str) -> &'a [Node] {
        match self.optional(key) {
            None => &[],
            Some(Node {
                value: Value::Array(items),
                ..
            }) => items,
            Some(node) => {
                self.wrong_kind(node, key, "a list", example);
                &[]
            }
        }
    }

    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
        default: T,
    ) -> T {
        let Some(node) = self.optional(key) else {
            return default;
        };
        let example = name(default);
        let Some(text) = self.text(node, key, example) else {
            return default;
        };
        let found = all.iter().copied().find(|value| name(*value) == text);
        if found.is_none() {
            let words: Vec<_> = all.iter().map(|value| name(*value)).collect();
            let remedy = format!("use one of {}", words.join(", "));
            self.report(node, key, String::from("no such word is known"), remedy);
        }
        found.unwrap_or(default)
    }

    pub(super) fn size(&mut self, key: &'static str, example: &str) -> Option<Located<Bytes>> {
        let node = self.required(key, &format!("{example:?}"))?;
        let text = self.text(node, key, example)?;
        let Some(size) = Bytes::parse(text) else {
            let remedy = format!(
                "write a whole number and a unit ({}), such as {example:?}",
                Bytes::units()
            );
            self.report(
                node,
                key,
                format!("{text:?} does not say how much memory"),
                remedy,
            );
            return None;
        };
        if size.0 == 0 || !size.0.is_multiple_of(MEMORY_GRANULE) {
            let granule = Bytes(MEMORY_GRANULE);
            let message = format!("memory is given in multiples of {granule}");
            let next = Bytes(size.0.max(1).next_multiple_of(MEMORY_GRANULE));
            self.report(node, key, message, format!("use {next}"));
            return None;
        }
        Some(Located {
            value: size,
            origin: node.origin.clone(),
        })
    }

    pub(super) fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<Duration> {
        let node = self.optional(key)?;
        let text = self.text(node, key, "5 ms")?;
        let Some(duration) = Duration::parse(text) else {
            let remedy = format!(
                "write a whole number and a unit ({}), such as \"5 ms\"",
                Duration::units()
            );
            self.report(node, key, format!("{text:?} does not say how long"), remedy);
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
        let text = self.text(node, key, "image:debian/kernel")?;
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
                let names = BUILT_FILES.iter().chain(&[EXERCISER, SHUFFLED]);
                let names: Vec<String> = names
                    .map(|name| format!("{}{name}", FileName::BUILT))
                    .collect();
                let message = String::from("`partita images` builds no such file");
                self.report(
                    node,
                    key,
                    message,
                    format!("use one of {}", names.join(", ")),
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

    /// Reports the keys that nobody asked for, and hands over all mistakes.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        for (name, origin, _) in self.table.iter() {
            if self.known.contains(&name) {
                continue;
            }
            let near = self.known.iter().copied().max_by(|one, other| {
                let likeness = |known: &str| strsim::jaro_winkler(name, known);
                likeness(one).total_cmp(&likeness(other))
            });
            let remedy = match near.filter(|known| strsim::jaro_winkler(name, known) > 0.8) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("the keys here are {}", self.known.join(", ")),
            };
            self.problems.push(Problem::new(
                self.document,
                origin,
                format!("{}{name}", self.path),
                "no such key is known",
                remedy,
            ));
        }
        self.problems
    }
}
