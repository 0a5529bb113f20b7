//! Start phases: what differs between two runs of the same system.

use crate::laboratory::{Computer, Point, PointError};
use exerciser::random::EXERCISES;
use runner::window::Window;

/// The word by which a guest's command line takes a seed of its own.
const SEED: &str = "seed=";
/// Mark of a command line that takes such a word.
const EXERCISE: &str = "exercise=";

/// The point with its seed passed on to the guests that can use one: exercisers that draw random numbers, whose command lines get `seed=`, a
/// different one for each VM. A command line that names its seed keeps it, and other guests are left alone.
///
/// # Errors
/// The system has mistakes.
pub fn with_phase(mut point: Point) -> Result<Point, PointError> {
    let system = point.read()?;
    for (index, vm) in system.vms.iter().enumerate() {
        let mut words = vm.command_line.split_whitespace();
        let exercise = words.clone().find_map(|word| word.strip_prefix(EXERCISE));
        // One that draws nothing would refuse a seed.
        let is_random = exercise.is_some_and(|name| EXERCISES.contains(&name));
        if !is_random || words.any(|word| word.starts_with(SEED)) {
            continue;
        }
        // Different for each VM of each point, and never zero.
        let seed = point.seed * system.vms.len() as u64 + index as u64 + 1;
        let line = toml_text(&format!("{} {SEED}{seed}", vm.command_line));
        point
            .changes
            .push(format!("vm.{}.command-line={line}", vm.name));
    }
    Ok(point)
}

/// The point with its measures taken over the steady window of its run, where it has one on its computer.
///
/// # Errors
/// The system has mistakes.
pub fn with_window(mut point: Point) -> Result<Point, PointError> {
    let is_whole = point.native || point.kvm || point.start.is_some();
    if !is_whole && matches!(point.computer, Computer::Machine { .. }) {
        point.window = Window::of(&point.read()?);
    }
    Ok(point)
}

/// A text as TOML writes it.
fn toml_text(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => out += &format!("\\u{:04X}", u32::from(control)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
