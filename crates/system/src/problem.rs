//! Mistakes in a system file, as they are shown.

use std::fmt;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File and line, or the `--set` that made it.
    pub place: String,
    /// Position in the file, by which mistakes are sorted.
    position: usize,
    /// The key by its dotted path, empty for the whole file.
    pub key: String,
    /// The value as it was written.
    pub value: Option<String>,
    /// Description of the mistake.
    pub message: String,
    /// Remedy.
    pub remedy: String,
}

impl Problem {
    /// A mistake at a place of which the text is `place`.
    pub(crate) fn at(
        place: String,
        position: usize,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            place,
            position,
            key: key.into(),
            value: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// The same with the value that was found.
    pub fn with_value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", visible(&self.place))?;
        if !self.key.is_empty() {
            write!(f, "{}", visible(&self.key))?;
            if let Some(value) = &self.value {
                write!(f, " = {}", visible(value))?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}\n    {}", visible(&self.message), self.remedy)
    }
}

/// A text with its control characters written out: names may have any, and a terminal would obey them.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// All mistakes of a system, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(Vec<Problem>);

impl Mistakes {
    /// `Ok` if there are none.
    pub fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by_key(|problem| problem.position);
        Err(Self(problems))
    }

    /// The mistakes.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}")?;
        }
        match self.0.len() {
            1 => write!(f, "1 mistake"),
            count => write!(f, "{count} mistakes"),
        }
    }
}
