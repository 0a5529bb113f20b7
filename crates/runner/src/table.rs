//! Tables of text.

use std::fmt;

/// A table: the first column and columns of text are set left, the others right.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Column of text.
    text: usize,
}

impl Table {
    /// A table with these headings.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        Self {
            rows: vec![headings.into_iter().map(Into::into).collect()],
            text: 0,
        }
    }

    /// The same with text in this column, which is set left.
    pub fn with_text(self, column: usize) -> Self {
        let text = column;
        Self { text, ..self }
    }

    /// The rows, the headings first.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line += &format!("{cell:<width$}"),
                    _ if column == self.text => line += &format!("  {cell:<width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A figure with four significant digits; whole numbers from a thousand on.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let before = value.abs().log10().floor() as i32;
    let after = usize::try_from(3 - before).unwrap_or(0).min(9);
    let text = format!("{value:.after$}");
    // A number that is rounded up over a power of ten has a digit more than it needs; that is harmless.
    text
}
