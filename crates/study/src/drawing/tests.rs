//! Tests of pictures: every mark lies where it should and stays in its place.

use super::*;
use runner::trace::{Lane, Mark, Owner, PAUSE_LOOP_EXIT, Timeline};

#[test]
fn scales_hold_their_values_between_round_marks() {
    for (low, high) in [
        (0.0, 1.0),
        (3.1, 97.2),
        (-5.0, 5.0),
        (0.00012, 0.00013),
        (1e9, 2e12),
    ] {
        let scale = Scale::new([low, high], false, 0.0, 100.0);
        let marks = scale.marks();
        assert!((3..=12).contains(&marks.len()), "{marks:?}");
        assert!(marks.first().unwrap().0 <= low + 1e-12);
        assert!(marks.last().unwrap().0 >= high * (1.0 - 1e-12));
        assert!(scale.at(low) < scale.at(high));
        let texts: std::collections::BTreeSet<_> = marks.iter().map(|mark| &mark.1).collect();
        assert_eq!(texts.len(), marks.len(), "two marks read alike: {marks:?}");
    }
}

#[test]
fn scales_do_without_values() {
    for values in [vec![], vec![f64::NAN, f64::INFINITY], vec![0.0], vec![7.0]] {
        let scale = Scale::new(values.clone(), true, 10.0, 20.0);
        assert!((10.0..=20.0).contains(&scale.at(7.0)), "{values:?}");
        assert!(!scale.marks().is_empty());
    }
}

#[test]
fn names_cannot_become_markup() {
    let hostile = "</svg><script>alert('x')</script>\u{7}\"&";
    let bars = shares(&["a"], &[(String::from(hostile), vec![1.0])]);
    let line = Line {
        name: String::from(hostile),
        points: vec![(0.0, 1.0, 0.5, 1.5), (1.0, 2.0, 2.0, 2.0)],
    };
    let curves = lines(
        &[line],
        hostile,
        hostile,
        &[Band {
            from: 0.2,
            to: 0.5,
            word: String::from(hostile),
        }],
    );
    let mut page = Page::new(hostile);
    page.heading(hostile);
    page.legend(&[String::from(hostile)]);
    page.figure(&(bars + &curves), hostile);
    let text = page.finish();
    assert!(!text.contains("<script"), "{text}");
    assert_eq!(text.matches("</svg>").count(), 2);
    assert!(!text.contains("NaN"));
}

#[test]
fn shares_fill_the_bar() {
    let svg = shares(&["a", "b"], &[(String::from("row"), vec![1.0, 3.0])]);
    let widths: Vec<f64> = svg
        .lines()
        .filter(|line| line.starts_with("<rect") && line.contains("height=\"22.0\""))
        .filter_map(|line| {
            line.split("width=\"")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(widths.len(), 2);
    assert!((widths[1] / widths[0] - 3.0).abs() < 0.01);
    assert!((widths[0] + widths[1] - 590.0).abs() < 0.2);
}

#[test]
fn lanes_draw_pause_loop_exits_within_bounds() {
    let mark = |at| Mark {
        at,
        name: String::from(PAUSE_LOOP_EXIT),
        details: Vec::new(),
        flows: Vec::new(),
    };
    let lane = Lane {
        owner: Owner::Vcpu(String::from("web"), 0),
        slices: Vec::new(),
        marks: vec![mark(200), mark(400)],
    };
    let timeline = Timeline {
        lanes: vec![lane],
        ..Timeline::default()
    };
    let strokes = |from, to| {
        let svg = lanes::lanes(&timeline, from, to);
        svg.matches("class=\"exit\"").count()
    };
    assert_eq!(
        (strokes(0, 500), strokes(0, 400), strokes(500, 90_100)),
        (2, 1, 0)
    );
}
