//! Rules for one file each: what breaks them, a line each.

use syn::spanned::Spanned as _;
use syn::visit::Visit;

use crate::sources::Source;

/// Most lines of a file.
pub const MAX_FILE_LINES: usize = 500;
/// Most words of a test's name.
pub const MAX_TEST_NAME_WORDS: usize = 7;
/// Most lines of a function.
pub const MAX_FUNCTION_LINES: usize = 100;

/// First words that no documentation comment has: a comment begins with the thing or the verb.
const FIRST_WORDS: [&str; 6] = ["What", "Whether", "Who", "Whom", "Whose", "Whoever"];

/// Names that say nothing of what they are for.
const BARE_NAMES: [&str; 24] = [
    "MOST",
    "LEAST",
    "FEW",
    "MANY",
    "look",
    "looks",
    "look_at",
    "reason",
    "told",
    "tell",
    "came",
    "there",
    "hear",
    "Kind",
    "Means",
    "Given",
    "Made",
    "Outside",
    "Reach",
    "Surroundings",
    "NotNow",
    "Books",
    "Chips",
    "Trial",
];

/// Words that the field has others for.
const FOREIGN_WORDS: [&str; 18] = [
    "favour",
    "favoured",
    "hurry",
    "hurried",
    "vain",
    "strays",
    "whoever",
    "somebody",
    "nobody",
    "everybody",
    "chips",
    "simulated",
    "wires",
    "looked",
    "looking",
    "asks",
    "owes",
    "heard",
];

/// Place in a file, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub owner: String,
    pub place: String,
    pub text: String,
}

/// Rule for one file.
pub type Check = fn(&Source) -> Vec<Finding>;

fn finding(source: &Source, line: usize, text: impl Into<String>) -> Finding {
    Finding {
        owner: source.owner(),
        place: format!("{}:{line}", source.path.display()),
        text: text.into(),
    }
}

/// Files longer than [`MAX_FILE_LINES`].
pub fn long_files(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let long = lines > MAX_FILE_LINES;
    Vec::from_iter(long.then(|| finding(source, lines, format!("{lines} lines"))))
}

/// Tests whose names have more than [`MAX_TEST_NAME_WORDS`] words.
pub fn long_test_names(source: &Source) -> Vec<Finding> {
    let mut is_test = false;
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        if line == "#[test]" {
            is_test = true;
        } else if let Some(name) = function_name(line) {
            let words = name.split('_').filter(|word| !word.is_empty()).count();
            if is_test && words > MAX_TEST_NAME_WORDS {
                found.push(finding(
                    source,
                    number + 1,
                    format!("{name}: {words} words"),
                ));
            }
            is_test = false;
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let after = line.strip_prefix("pub ").unwrap_or(line);
    let after = after.strip_prefix("fn ")?;
    after
        .split(|other: char| !other.is_alphanumeric() && other != '_')
        .next()
}

/// Documentation comments that begin with one of [`FIRST_WORDS`].
pub fn first_words(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in source.text.lines().enumerate() {
        let line = line.trim_start();
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        if let Some(text) = comment.filter(|_| !inside) {
            let text = text.trim_start();
            let word = text.split(|other: char| !other.is_alphabetic()).next();
            if word.is_some_and(|word| FIRST_WORDS.contains(&word)) {
                found.push(finding(source, number + 1, text));
            }
        }
        inside = comment.is_some();
    }
    found
}

/// Public names among [`BARE_NAMES`], or with one of [`FOREIGN_WORDS`].
pub fn names(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let Some(name) = public_name(line.trim_start()) else {
            continue;
        };
        let foreign = words(name).any(|word| FOREIGN_WORDS.contains(&word.as_str()));
        if foreign || BARE_NAMES.contains(&name) {
            found.push(finding(source, number + 1, name));
        }
    }
    found
}

/// Name that a line with `pub` declares.
fn public_name(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub")?;
    if let Some(scope) = rest.strip_prefix('(') {
        rest = scope.split_once(')')?.1;
    }
    let mut words = rest.split_whitespace();
    let kinds = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union",
    ];
    let mut word = words.next()?;
    while ["const", "unsafe", "async", "extern", "\"C\""].contains(&word) || kinds.contains(&word) {
        word = words.next()?;
    }
    let name = word
        .split(|other: char| !other.is_alphanumeric() && other != '_')
        .next()?;
    (!name.is_empty() && !["use", "crate", "in"].contains(&name)).then_some(name)
}

/// Words of a name in snake or camel case, in small letters.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut before_is_small = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && before_is_small) {
            words.push(String::new());
        }
        if letter != '_' {
            let last = words.last_mut().expect("there is always a word");
            last.extend(letter.to_lowercase());
        }
        before_is_small = letter.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// Function with its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub place: String,
    pub owner: String,
    pub name: String,
    pub lines: usize,
}

struct Functions<'a> {
    source: &'a Source,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn add(&mut self, name: &syn::Ident, whole: proc_macro2::Span) {
        let (start, end) = (whole.start().line, whole.end().line);
        self.found.push(Function {
            place: format!("{}:{start}", self.source.path.display()),
            owner: self.source.owner(),
            name: name.to_string(),
            lines: end - start + 1,
        });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(
            &item.sig.ident,
            item.sig
                .span()
                .join(item.block.span())
                .unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(
            &item.sig.ident,
            item.sig
                .span()
                .join(item.block.span())
                .unwrap_or_else(|| item.block.span()),
        );
        syn::visit::visit_impl_item_fn(self, item);
    }
}

/// All functions of a file.
pub fn functions(source: &Source) -> Vec<Function> {
    let parsed = syn::parse_file(&source.text);
    let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", source.path.display()));
    let mut functions = Functions {
        source,
        found: Vec::new(),
    };
    functions.visit_file(&parsed);
    functions.found
}

/// Functions longer than [`MAX_FUNCTION_LINES`].
pub fn long_functions(source: &Source) -> Vec<Finding> {
    let long = |function: &Function| function.lines > MAX_FUNCTION_LINES;
    let found = functions(source).into_iter().filter(long);
    found
        .map(|function| Finding {
            owner: function.owner,
            place: function.place,
            text: format!("{}: {} lines", function.name, function.lines),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            path: "crates/a/src/lib.rs".into(),
            text: text.into(),
        }
    }

    fn texts(found: Vec<Finding>) -> Vec<String> {
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn long_test_names_are_found() {
        let found = long_test_names(&source(
            "#[test]\nfn a_b_c_d_e_f_g() {}\n#[test]\n#[ignore]\nfn a_b_c_d_e_f_g_h() {}\nfn a_b_c_d_e_f_g_h_i() {}\n",
        ));
        assert_eq!(texts(found), ["a_b_c_d_e_f_g_h: 8 words"]);
    }

    #[test]
    fn first_words_count_once_a_comment() {
        let found = first_words(&source(
            "/// What is.\n/// Who is.\nfn a() {}\n/// A thing.\n/// What is.\n//! Whether.\n",
        ));
        assert_eq!(texts(found), ["What is."]);
        assert_eq!(
            texts(first_words(&source("    /// Whether it is.\n"))),
            ["Whether it is."]
        );
    }

    #[test]
    fn public_names_are_judged() {
        let lines = [
            "pub const MOST: u32 = 1;",
            "pub const fn look() {}",
            "const LEAST: u32 = 1;",
            "pub(crate) struct FavouredOne;",
            "pub use a::look;",
            "pub favour: u32,",
            "pub struct Lookup;",
        ];
        let text = lines.join("\n");
        assert_eq!(
            texts(names(&source(&text))),
            ["MOST", "look", "FavouredOne", "favour"]
        );
    }

    #[test]
    fn functions_have_lengths() {
        let found = functions(&source(
            "fn a() {\n}\nimpl B {\n    fn c(&self) {\n        d();\n    }\n}\n",
        ));
        let found: Vec<_> = found
            .iter()
            .map(|function| (function.name.as_str(), function.lines))
            .collect();
        assert_eq!(found, [("a", 2), ("c", 3)]);
    }

    #[test]
    fn files_have_a_bound() {
        assert!(long_files(&source(&"\n".repeat(MAX_FILE_LINES))).is_empty());
        assert_eq!(
            long_files(&source(&"\n".repeat(MAX_FILE_LINES + 1))).len(),
            1
        );
    }
}
