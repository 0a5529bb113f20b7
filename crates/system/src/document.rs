//! A system's text as a tree whose every value knows where it was written.

use super::{Mistakes, Problem};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// These bytes of the file.
    File(Range<usize>),
    /// A `--set` on the command line, in full.
    Set(String),
}

impl Origin {
    /// Position in the file; what comes from the command line comes last.
    pub(super) fn position(&self) -> usize {
        match self {
            Self::File(range) => range.start,
            Self::Set(_) => usize::MAX,
        }
    }
}

/// A value that was read, and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands, or where its table begins if it is a default.
    pub origin: Origin,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A whole number that has more than 64 bits.
    Huge,
    /// True or false.
    Boolean(bool),
    /// A row of values.
    Array(Vec<Node>),
    /// Keys and values.
    Table(Table),
    /// A kind of TOML value that no key takes: what TOML calls it.
    Other(&'static str),
}

impl Value {
    /// Name of the kind of value in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) | Self::Huge => "a whole number",
            Self::Boolean(_) => "true or false",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// Keys and values, in the order of the text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    entries: Vec<(String, Origin, Node)>,
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|(name, ..)| name == key)
            .map(|(_, _, node)| node)
    }

    /// Keys, where they stand, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Origin, &Node)> {
        self.entries
            .iter()
            .map(|(name, origin, node)| (name.as_str(), origin, node))
    }

    /// The table at `path`, with tables made where there are none.
    fn descend(&mut self, path: &[&str], origin: &Origin) -> Result<&mut Self, String> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(self);
        };
        let index = match self.entries.iter().position(|(name, ..)| name == first) {
            Some(index) => index,
            None => {
                let node = Node {
                    origin: origin.clone(),
                    value: Value::Table(Self::default()),
                };
                self.entries
                    .push((String::from(*first), origin.clone(), node));
                self.entries.len() - 1
            }
        };
        match &mut self.entries[index].2.value {
            Value::Table(table) => table.descend(rest, origin),
            other => Err(format!("{first} is {}, not a table", other.kind())),
        }
    }

    fn insert(&mut self, key: &str, node: Node) {
        match self.entries.iter_mut().find(|(name, ..)| name == key) {
            Some((_, origin, place)) => {
                *origin = node.origin.clone();
                *place = node;
            }
            None => self
                .entries
                .push((String::from(key), node.origin.clone(), node)),
        }
    }
}

/// A system file, read, with the changes of the command line made to it.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    text: String,
    /// Place of the end of each line: a file may have as many mistakes as lines.
    line_ends: Vec<usize>,
    root: Table,
}

impl Document {
    /// Reads `text`, which `path` holds, and makes the changes, each a `KEY=VALUE`.
    ///
    /// The value of a change is TOML; what is not is taken as text, so that `vm.web.memory=1GiB`
    /// needs no quotes.
    ///
    /// # Errors
    /// Every place where the text is no TOML, and every change that is none.
    pub fn new(path: &Path, text: String, changes: &[String]) -> Result<Self, Mistakes> {
        let (table, errors) = DeTable::parse_recoverable(&text);
        let root = read_table(table.get_ref());
        let mut document = Self {
            path: path.to_owned(),
            text: String::new(),
            line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            root,
        };
        let mut found: Vec<(Range<usize>, String)> = Vec::new();
        for error in &errors {
            let end = text.len();
            found.push((error.span().unwrap_or(end..end), error.message().to_owned()));
        }
        document.text = text;
        let mut problems: Vec<Problem> = first_of_each(&document.text, found)
            .into_iter()
            .map(|(span, message)| {
                let remedy = "write it as TOML asks; see https://toml.io for the rules";
                Problem::new(&document, &Origin::File(span), "", message, remedy)
            })
            .collect();
        for change in changes {
            if let Err(message) = document.change(change) {
                let remedy = "give --set KEY=VALUE, the key as a dotted path such as vm.web.share";
                problems.push(Problem::new(
                    &document,
                    &Origin::Set(change.clone()),
                    "",
                    message,
                    remedy,
                ));
            }
        }
        Mistakes::check(problems)?;
        Ok(document)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The outermost table.
    pub fn root(&self) -> &Table {
        &self.root
    }

    /// File and line, or the `--set`.
    pub fn place(&self, origin: &Origin) -> String {
        match origin {
            Origin::File(range) => {
                let before = self.line_ends.partition_point(|end| *end < range.start);
                let line = before + 1;
                format!("{}:{line}", self.path.display())
            }
            Origin::Set(change) => format!("--set {change}"),
        }
    }

    /// A value as it was written, on one line and not too long.
    pub fn source(&self, origin: &Origin) -> String {
        const LONGEST: usize = 60;
        let text = match origin {
            Origin::File(range) => self.text.get(range.clone()).unwrap_or_default(),
            Origin::Set(change) => change.split_once('=').map_or("", |(_, value)| value),
        };
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > LONGEST {
            line = line
                .chars()
                .take(LONGEST - 3)
                .chain("...".chars())
                .collect();
        }
        line
    }

    fn change(&mut self, change: &str) -> Result<(), String> {
        let (key, text) = change.split_once('=').ok_or("there is no = in it")?;
        let path: Vec<&str> = key.trim().split('.').collect();
        if path.iter().any(|part| part.is_empty()) {
            return Err(String::from("the key is not a path"));
        }
        let origin = Origin::Set(String::from(change));
        let value = match DeValue::parse(text.trim()) {
            Ok(value) => relocate(read_value(value.get_ref()), &origin),
            Err(_) => Value::Text(String::from(text.trim())),
        };
        let Some((last, tables)) = path.split_last() else {
            return Ok(());
        };
        let node = Node {
            origin: origin.clone(),
            value,
        };
        self.root.descend(tables, &origin)?.insert(last, node);
        Ok(())
    }
}

/// The errors without those that follow from one before: a table that is there twice makes each of its keys an error too.
/// Of the errors of a table, and of those of a line, the first is kept where it says that something is there twice.
fn first_of_each(
    text: &str,
    mut errors: Vec<(Range<usize>, String)>,
) -> Vec<(Range<usize>, String)> {
    errors.sort_by_key(|(span, _)| span.start);
    // A table goes on until the next line that begins with a bracket. The text is gone through once for all errors.
    let mut tables = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end, line.starts_with('[')))
    });
    let (mut line_end, mut table) = (0, 0);
    let mut table_at = |at: usize| {
        while line_end <= at
            && let Some((end, begins)) = tables.next()
        {
            line_end = end;
            table += usize::from(begins);
        }
        table
    };
    let mut kept: Vec<(Range<usize>, String)> = Vec::new();
    let mut twice = std::collections::BTreeSet::new();
    for (span, message) in errors {
        if message.contains("duplicate") && !twice.insert(table_at(span.start)) {
            continue;
        }
        kept.push((span, message));
    }
    kept
}

fn read_table(table: &DeTable<'_>) -> Table {
    let mut entries: Vec<(String, Origin, Node)> = table
        .iter()
        .map(|(key, value)| {
            (
                key.get_ref().to_string(),
                Origin::File(key.span()),
                read_node(value),
            )
        })
        .collect();
    entries.sort_by_key(|(_, origin, _)| origin.position());
    Table { entries }
}

fn read_node(node: &Spanned<DeValue<'_>>) -> Node {
    Node {
        origin: Origin::File(node.span()),
        value: read_value(node.get_ref()),
    }
}

fn read_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            i64::from_str_radix(&digits, number.radix()).map_or(Value::Huge, Value::Integer)
        }
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Array(items) => Value::Array(items.iter().map(read_node).collect()),
        DeValue::Table(table) => Value::Table(read_table(table)),
        DeValue::Float(_) => Value::Other("a number with a point"),
        DeValue::Datetime(_) => Value::Other("a date"),
    }
}

/// The same value with everything inside it written by a `--set`.
fn relocate(value: Value, origin: &Origin) -> Value {
    let node = |node: Node| Node {
        origin: origin.clone(),
        value: relocate(node.value, origin),
    };
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(node).collect()),
        Value::Table(table) => {
            let entries = table.entries.into_iter();
            let entries = entries.map(|(key, _, value)| (key, origin.clone(), node(value)));
            Value::Table(Table {
                entries: entries.collect(),
            })
        }
        value => value,
    }
}

impl Problem {
    /// A mistake at `origin` in `document`.
    pub fn new(
        document: &Document,
        origin: &Origin,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let position = origin.position();
        Self::at(document.place(origin), position, key, message, remedy)
    }
}
