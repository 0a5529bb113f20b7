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

/// A series of points.
#[derive(Debug, Clone, Copy)]
pub struct Points<'a> {
    /// Its name.
    pub name: &'a str,
    /// Across and upwards.
    pub points: &'a [(f64, f64)],
    /// The ends of a line through them.
    pub trend: Option<[(f64, f64); 2]>,
}

/// The picture of each series' points, with what is drawn across and upwards.
pub fn scatter(series: &[Points<'_>], across: &str, up: &str) -> String {
    let points = || series.iter().flat_map(|series| series.points.iter());
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
    for (index, one) in series.iter().enumerate() {
        let Points {
            name,
            points,
            trend,
        } = one;
        let colour = colour(index);
        for (across, up) in *points {
            let (x, y) = (x.at(*across), y.at(*up));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\" fill-opacity=\"0.7\"/>"
            );
        }
        if let Some(ends) = trend {
            let [(left, start), (right, end)] = ends.map(|(across, up)| (x.at(across), y.at(up)));
            let _ = writeln!(
                svg,
                "<line x1=\"{left:.1}\" y1=\"{start:.1}\" x2=\"{right:.1}\" y2=\"{end:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/>"
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
    fn points_are_drawn_and_series_named() {
        let points = [(0.0, 1.0), (250_000.0, 2.0)];
        let series = |name, points, trend| Points {
            name,
            points,
            trend,
        };
        let line = Some([(0.0, 1.5), (250_000.0, 1.5)]);
        let all = [
            series("yield", &points[..], line),
            series("a<b", &points[..1], None),
        ];
        let svg = scatter(&all, "exits", "s");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("stroke-width=\"2\"").count(), 1);
        assert!(svg.contains("yield") && svg.contains("a&lt;b"));
    }
}
