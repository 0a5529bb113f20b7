//! Lanes over time: which vCPU had which hart when, and when it spun.

use super::page::{colour, escape};
use super::scale::Scale;
use runner::trace::{Owner, PAUSE_LOOP_EXIT, Slice, SliceKind, Timeline};
use std::fmt::Write;

/// Distances in the picture's units.
const WIDTH: f64 = 1060.0;
const LABELS: f64 = 120.0;
const LANE: f64 = 28.0;
const TOP: f64 = 28.0;
/// Slices closer to each other than this are drawn as one.
const CLOSE: f64 = 0.35;
/// The colours of spins while running, of spin waits, and of locks that are held.
const SPINS: usize = 1;
const SPIN_WAIT: usize = 4;
const HOLDS: usize = 3;
/// Hart 0's colour and so on; those above are left out.
const HARTS: [usize; 5] = [0, 2, 6, 7, 5];

/// Legend of [`lanes`].
pub fn legend(timeline: &Timeline) -> Vec<(String, String)> {
    let harts = timeline.lanes.iter().filter_map(|lane| match lane.owner {
        Owner::Hart(number) => Some((format!("on hart {number}"), of_hart(number))),
        _ => None,
    });
    let spins = [
        (String::from("spins on a hart"), colour(SPINS)),
        (String::from("spin wait, without a hart"), colour(SPIN_WAIT)),
    ];
    let holds = (
        String::from("holds a lock that others wait for"),
        colour(HOLDS),
    );
    harts.chain(spins).chain([holds]).collect()
}

/// The vCPUs' lanes between `from` and `to`, in nanoseconds.
pub fn lanes(timeline: &Timeline, from: u64, to: u64) -> String {
    let shown: Vec<_> = timeline
        .lanes
        .iter()
        .filter(|lane| matches!(lane.owner, Owner::Vcpu(..)))
        .collect();
    let height = TOP + LANE * shown.len() as f64 + 6.0;
    let milliseconds = |time: u64| time as f64 / 1e6;
    let scale = Scale::exact(milliseconds(from), milliseconds(to), LABELS, WIDTH - 12.0);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\">\n");
    // Writing to a String does not fail.
    for (value, text) in scale.marks() {
        let x = scale.at(value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{height}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"14\" text-anchor=\"middle\">{text} ms</text>",
            TOP - 8.0
        );
    }
    for (index, lane) in shown.iter().enumerate() {
        let y = TOP + LANE * index as f64;
        if index % 2 == 0 {
            let _ = writeln!(
                svg,
                "<rect class=\"band\" x=\"{LABELS}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{LANE}\" opacity=\"0.6\"/>",
                WIDTH - LABELS - 12.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 10.0,
            y + 15.0,
            escape(&lane.owner.name())
        );
        let holds = held_by(timeline, &lane.owner);
        let slices = lane.slices.iter().map(|slice| (slice, slice.name.clone()));
        let inside = slices
            .chain(holds)
            .filter(|(slice, _)| slice.start < to && slice.end > from);
        let mut bars: Vec<Bar> = inside
            .filter_map(|(slice, title)| {
                let (fill, top, height, opacity) = style(slice.kind, &slice.name)?;
                Some(Bar {
                    from: scale.at(milliseconds(slice.start.max(from))),
                    to: scale.at(milliseconds(slice.end.min(to))),
                    fill,
                    top: y + top,
                    height,
                    opacity,
                    title: escape(&title),
                })
            })
            .collect();
        bars.sort_by(|a, b| a.top.total_cmp(&b.top).then(a.from.total_cmp(&b.from)));
        draw(&mut svg, &bars);
        let marks = lane.marks.iter();
        let exits =
            marks.filter(|mark| mark.name == PAUSE_LOOP_EXIT && (from..to).contains(&mark.at));
        let mut last = f64::NEG_INFINITY;
        for x in exits.map(|mark| scale.at(milliseconds(mark.at))) {
            // Strokes that would cover each other are one.
            if x - last >= CLOSE {
                let _ = writeln!(
                    svg,
                    "<line class=\"exit\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{}\" stroke-width=\"0.6\"/>",
                    y + 2.0,
                    y + LANE - 2.0,
                    colour(SPINS)
                );
                last = x;
            }
        }
    }
    svg + "</svg>\n"
}

/// The stretches in which a vCPU held a lock, each with what is said of it.
fn held_by<'a>(
    timeline: &'a Timeline,
    vcpu: &Owner,
) -> impl Iterator<Item = (&'a Slice, String)> + use<'a> {
    let name = vcpu.name();
    let locks = timeline.lanes.iter().filter_map(|lane| match lane.owner {
        Owner::Lock(word) => Some((word, &lane.slices)),
        _ => None,
    });
    locks.flat_map(move |(word, slices)| {
        let name = name.clone();
        let own = slices.iter().filter(move |slice| slice.name == name);
        own.map(move |slice| (slice, format!("holds {word:#x}")))
    })
}

/// A bar of the picture.
#[derive(Debug, Clone, PartialEq)]
struct Bar {
    from: f64,
    to: f64,
    fill: String,
    top: f64,
    height: f64,
    opacity: f64,
    title: String,
}

/// Draws bars, those that touch and look alike as one.
fn draw(svg: &mut String, bars: &[Bar]) {
    let mut open: Option<Bar> = None;
    let mut put = |bar: &Bar| {
        // Writing to a String does not fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\" opacity=\"{}\"><title>{}</title></rect>",
            bar.from,
            bar.top,
            (bar.to - bar.from).max(0.4),
            bar.height,
            bar.fill,
            bar.opacity,
            bar.title
        );
    };
    for bar in bars {
        match &mut open {
            Some(last)
                if last.fill == bar.fill && last.top == bar.top && bar.from - last.to < CLOSE =>
            {
                last.to = last.to.max(bar.to);
            }
            _ => {
                if let Some(last) = open.replace(bar.clone()) {
                    put(&last);
                }
            }
        }
    }
    if let Some(last) = open {
        put(&last);
    }
}

/// Colour, distance from the lane's top, height and opacity of a slice; `None` for what is not drawn.
fn style(kind: SliceKind, name: &str) -> Option<(String, f64, f64, f64)> {
    match kind {
        SliceKind::Runs => {
            let number = name.rsplit(' ').next().and_then(|hart| hart.parse().ok());
            Some((of_hart(number.unwrap_or(0)), 3.0, 10.0, 0.9))
        }
        SliceKind::Spins => Some((colour(SPINS), 14.0, 5.0, 1.0)),
        SliceKind::SpinWait => Some((colour(SPIN_WAIT), 14.0, 5.0, 1.0)),
        SliceKind::Holds => Some((colour(HOLDS), 20.0, 5.0, 1.0)),
        SliceKind::Exit | SliceKind::Idle | SliceKind::Waits | SliceKind::Delivery => None,
    }
}

fn of_hart(number: u32) -> String {
    colour(HARTS[number as usize % HARTS.len()])
}
