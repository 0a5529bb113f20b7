//! A mistake in a profile's text, with its line.

use core::fmt;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Mistake {
    /// The file, or the name of a profile that ships.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key by its dotted path; empty where the text is no TOML.
    pub key: String,
    /// The value as it is written.
    pub value: Option<String>,
    /// Description of the fault.
    pub message: String,
    /// Remedy.
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}\n    {}", self.message, self.remedy)
    }
}

/// All mistakes of a profile, in the order of the file; at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.0 {
            writeln!(f, "{mistake}")?;
        }
        match self.0.len() {
            1 => write!(f, "1 mistake"),
            count => write!(f, "{count} mistakes"),
        }
    }
}
