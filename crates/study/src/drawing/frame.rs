//! The frame of a picture with two axes: where values are drawn, and the marks beside and below it.

use std::fmt::Write;

/// Distances in the picture's units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub width: f64,
    pub height: f64,
    /// Margins.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Where the place for values ends on the right.
    pub fn end(&self) -> f64 {
        self.width - self.right
    }

    /// Where it ends below.
    pub fn floor(&self) -> f64 {
        self.height - self.bottom
    }

    /// The beginning of the picture.
    pub fn open(&self) -> String {
        let Self { width, height, .. } = self;
        format!("<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\">\n")
    }

    /// A line across at the height `y`, with its text on the left.
    pub fn across(&self, svg: &mut String, y: f64, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            self.left,
            self.end(),
            self.left - 8.0,
            y + 4.0
        );
    }

    /// A line from above to below at `x`, with its text at its foot.
    pub fn down(&self, svg: &mut String, x: f64, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            self.top,
            self.floor(),
            self.floor() + 16.0
        );
    }
}
