//! Lines over a quantity: how a measure changes with what is swept.

use super::frame::Frame;
use super::page::{colour, escape};
use super::scale::Scale;
use std::fmt::Write;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is called.
    pub name: String,
    /// Where it goes: place, value, and the ends of the value's interval.
    pub points: Vec<(f64, f64, f64, f64)>,
}

const FRAME: Frame = Frame {
    width: 900.0,
    height: 380.0,
    left: 70.0,
    right: 170.0,
    top: 16.0,
    bottom: 46.0,
};
/// Names at the lines' ends do not come closer than this.
const NAME: f64 = 15.0;

/// The picture of lines; `marks` are places that are marked by a line across, with a word each.
pub fn lines(lines: &[Line], across: &str, up: &str, marks: &[(f64, String)]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale::new(
        points().map(|point| point.0),
        false,
        FRAME.left,
        FRAME.end(),
    );
    let ends = points().flat_map(|point| [point.2, point.3]);
    let y = Scale::new(ends, false, FRAME.floor(), FRAME.top);
    let mut svg = FRAME.open();
    for (value, text) in y.marks() {
        FRAME.across(&mut svg, y.at(value), &text);
    }
    for (value, text) in x.marks() {
        FRAME.down(&mut svg, x.at(value), &text);
    }
    // Writing to a String does not fail.
    let _ = writeln!(
        svg,
        "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"faint\" transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(FRAME.left, FRAME.end()),
        FRAME.height - 8.0,
        escape(across),
        f64::midpoint(FRAME.top, FRAME.floor()),
        escape(up)
    );
    for (place, word) in marks {
        let at = x.at(*place);
        let _ = writeln!(
            svg,
            "<line class=\"axis\" stroke-dasharray=\"4 4\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            FRAME.top,
            FRAME.floor(),
            at + 4.0,
            FRAME.top + 10.0,
            escape(word)
        );
    }
    for (index, line) in lines.iter().enumerate() {
        draw(&mut svg, line, &colour(index), &x, &y);
    }
    names(&mut svg, lines, &y);
    svg + "</svg>\n"
}

fn draw(svg: &mut String, line: &Line, colour: &str, x: &Scale, y: &Scale) {
    let mut path = String::new();
    for (place, value, low, high) in &line.points {
        let (at, value) = (x.at(*place), y.at(*value));
        let _ = write!(path, "{at:.1},{value:.1} ");
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.5\" \
             stroke-width=\"3\"/><circle cx=\"{at:.1}\" cy=\"{value:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
            y.at(*low),
            y.at(*high)
        );
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.trim_end()
    );
}

/// The lines' names at their right ends, moved apart where they would lie over each other.
fn names(svg: &mut String, lines: &[Line], y: &Scale) {
    let last = |line: &Line| line.points.last().map(|point| y.at(point.1));
    let mut places: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((last(line)?, index)))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = f64::NEG_INFINITY;
    for (place, index) in places {
        let place = place.max(above + NAME);
        above = place;
        let name = lines.get(index).map_or("", |line| line.name.as_str());
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{}\">{}</text>",
            FRAME.end() + 8.0,
            place + 4.0,
            colour(index),
            escape(name)
        );
    }
}
