//! Points of two measures: how one goes with the other.

use super::frame::Frame;
use super::page::{colour, escape};
use super::scale::Scale;
use std::fmt::Write;

const FRAME: Frame = Frame {
    width: 900.0,
    height: 380.0,
    left: 92.0,
    right: 170.0,
    top: 16.0,
    bottom: 46.0,
};
/// Distance of the names on the right.
const NAME: f64 = 18.0;

/// The picture of each series' points, with what is drawn across and upwards.
pub fn scatter(series: &[(&str, &[(f64, f64)])], across: &str, up: &str) -> String {
    let points = || series.iter().flat_map(|(_, points)| points.iter());
    let x = Scale::new(points().map(|point| point.0), true, FRAME.left, FRAME.end());
    let y = Scale::new(
        points().map(|point| point.1),
        true,
        FRAME.floor(),
        FRAME.top,
    );
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
    for (index, (name, points)) in series.iter().enumerate() {
        let colour = colour(index);
        for (across, up) in *points {
            let (x, y) = (x.at(*across), y.at(*up));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\" fill-opacity=\"0.7\"/>"
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{colour}\">{}</text>",
            FRAME.end() + 8.0,
            FRAME.top + NAME * (index as f64 + 1.0),
            escape(name)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_and_every_series_named() {
        let points = [(0.0, 1.0), (250_000.0, 2.0)];
        let svg = scatter(&[("yield", &points), ("a<b", &points[..1])], "exits", "s");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("yield") && svg.contains("a&lt;b"));
    }
}
