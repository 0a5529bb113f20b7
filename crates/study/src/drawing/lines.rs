//! Lines over a quantity: how a measure changes with what is swept.

use super::frame::Frame;
use super::page::{colour, escape};
use super::scale::Scale;
use std::fmt::Write;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Where it goes: place, value, and the ends of the value's interval.
    pub points: Vec<(f64, f64, f64, f64)>,
}

const FRAME: Frame = Frame {
    width: 900.0,
    height: 380.0,
    left: 92.0,
    right: 170.0,
    top: 16.0,
    bottom: 46.0,
};
/// Names at the lines' ends do not come closer than this.
const NAME: f64 = 15.0;
/// How far the first and the last value lie from the picture's edges where values are drawn by their logarithms.
const MARGIN: f64 = 14.0;
/// From this ratio of the largest value to the smallest on, values are drawn by their logarithms.
const WIDE: f64 = 20.0;

/// A stretch of what is swept that is marked by a band, with a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Event there.
    pub word: String,
}

/// The scale across: by logarithms where the values, all of them positive, lie far apart.
struct Across {
    scale: Scale,
    is_logarithmic: bool,
}

impl Across {
    fn of(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_logarithmic = low > 0.0 && high.is_finite() && high / low >= WIDE;
        let scale = if is_logarithmic {
            let (from, to) = (FRAME.left + MARGIN, FRAME.end() - MARGIN);
            Scale::exact(low.ln(), high.ln(), from, to)
        } else {
            Scale::new(values.iter().copied(), false, FRAME.left, FRAME.end())
        };
        Self {
            scale,
            is_logarithmic,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic {
            value.ln()
        } else {
            value
        };
        self.scale.at(value)
    }

    /// Labels below: round values, or the values themselves where these lie by their logarithms.
    fn marks(&self, values: &[f64]) -> Vec<(f64, String)> {
        if !self.is_logarithmic {
            return self.scale.marks();
        }
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
            .iter()
            .map(|value| (*value, value.to_string()))
            .collect()
    }
}

/// The picture of lines over what `across` names; the bands lie behind them.
pub fn lines(lines: &[Line], across: &str, up: &str, bands: &[Band]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let places: Vec<f64> = points().map(|point| point.0).collect();
    let x = Across::of(&places);
    let ends = points().flat_map(|point| [point.2, point.3]);
    let y = Scale::new(ends, false, FRAME.floor(), FRAME.top);
    let mut svg = FRAME.open();
    for (index, band) in bands.iter().enumerate() {
        draw_band(&mut svg, band, index, &x);
    }
    for (value, text) in y.marks() {
        FRAME.across(&mut svg, y.at(value), &text);
    }
    for (value, text) in x.marks(&places) {
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
    for (index, line) in lines.iter().enumerate() {
        draw(&mut svg, line, &colour(index), &x, &y);
    }
    names(&mut svg, lines, &y);
    svg + "</svg>\n"
}

/// A band with its word at its head, below the words of the bands before it.
fn draw_band(svg: &mut String, band: &Band, index: usize, x: &Across) {
    let (from, to) = (x.at(band.from), x.at(band.to));
    // Writing to a String does not fail.
    let _ = writeln!(
        svg,
        "<rect class=\"turn\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
         <text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        FRAME.top,
        (to - from).max(1.0),
        FRAME.floor() - FRAME.top,
        f64::midpoint(from, to),
        FRAME.top + 12.0 + 14.0 * index as f64,
        escape(&band.word)
    );
}

fn draw(svg: &mut String, line: &Line, colour: &str, x: &Across, y: &Scale) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_far_apart_lie_by_their_logarithms() {
        let values = [1000.0, 10.0, 100.0];
        let x = Across::of(&values);
        let middle = f64::midpoint(x.at(10.0), x.at(1000.0));
        assert!((x.at(100.0) - middle).abs() < 1e-6);
        let written: Vec<String> = x.marks(&values).into_iter().map(|mark| mark.1).collect();
        assert_eq!(written, ["10", "100", "1000"]);
        for near in [[1.0, 2.0, 3.0], [0.0, 10.0, 1000.0], [-1.0, 1.0, 1000.0]] {
            assert!(!Across::of(&near).is_logarithmic, "{near:?}");
        }
    }

    #[test]
    fn band_spans_neighbouring_values() {
        let points = [1.0, 2.0, 3.0].map(|place| (place, place, place, place));
        let line = Line {
            name: String::from("a"),
            points: points.to_vec(),
        };
        let band = Band {
            from: 1.0,
            to: 3.0,
            word: String::from("turns"),
        };
        let picture = lines(std::slice::from_ref(&line), "x", "y", &[band]);
        let width = FRAME.end() - FRAME.left;
        assert!(
            picture.contains(&format!("class=\"turn\" x=\"{:.1}\"", FRAME.left)),
            "{picture}"
        );
        assert!(
            picture.contains(&format!("width=\"{width:.1}\"")),
            "{picture}"
        );
        assert!(!lines(&[line], "x", "y", &[]).contains("turn"));
    }
}
