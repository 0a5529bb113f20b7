//! The exercises, by name.

use exerciser::arguments::{ArgumentError, Arguments};

use crate::console::say;

pub mod alarm;
pub mod allocation;
pub mod boot;
pub mod descriptors;
pub mod events;
pub mod features;
pub mod free_pages;
pub mod fuzz;
pub mod heartbeat;
pub mod hostile;
pub mod ipi;
pub mod mixture;
pub mod pmu;
pub mod reboot;
pub mod remains;
pub mod sleep;
pub mod state;
pub mod steal;
pub mod storm;
pub mod timer;
pub mod translations;
pub mod triggers;
pub mod witness;
pub mod work;

/// How an exercise ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Fail,
}

impl Verdict {
    /// `Pass` where nothing failed.
    pub const fn of(passed: bool) -> Self {
        if passed { Self::Pass } else { Self::Fail }
    }
}

/// Result of an exercise: a verdict, or a mistake in its parameters.
pub type Outcome<'a> = Result<Verdict, ArgumentError<'a>>;

/// An exercise: its name, its parameters (`exercise` and `console` are everybody's), and what it does.
pub struct Exercise {
    name: &'static str,
    parameters: &'static [&'static str],
    run: for<'a> fn(&Arguments<'a>) -> Outcome<'a>,
}

const EXERCISES: &[Exercise] = &[
    boot::EXERCISE,
    alarm::EXERCISE,
    allocation::EXERCISE,
    descriptors::EXERCISE,
    heartbeat::EXERCISE,
    hostile::EXERCISE,
    fuzz::EXERCISE,
    translations::EXERCISE,
    triggers::EXERCISE,
    state::EXERCISE,
    steal::EXERCISE,
    events::EXERCISE,
    features::EXERCISE,
    sleep::EXERCISE,
    storm::EXERCISE,
    ipi::EXERCISE,
    pmu::EXERCISE,
    timer::EXERCISE,
    work::EXERCISE,
    reboot::EXERCISE,
    remains::EXERCISE,
    free_pages::EXERCISE,
    witness::EXERCISE,
    mixture::EXERCISE,
];

/// Former names of exercises, with the present ones.
const FORMER: [(&str, &str); 3] = [
    ("chains", "descriptors"),
    ("returns", "free-pages"),
    ("stale", "translations"),
];

/// Parameters that every exercise takes.
const COMMON: [&str; 3] = ["exercise", "console", "host"];

/// Runs the exercise that the command line names; without a name, `boot`.
pub fn run(arguments: &Arguments<'_>) -> Verdict {
    let name = arguments.get("exercise").unwrap_or("boot");
    let Some(exercise) = EXERCISES.iter().find(|exercise| exercise.name == name) else {
        if let Some((_, present)) = FORMER.iter().find(|(former, _)| *former == name) {
            say!("the exercise `{name}` is now called `{present}`");
            return Verdict::Fail;
        }
        say!("there is no exercise `{name}`; there are:");
        for exercise in EXERCISES {
            say!("  {}", exercise.name);
        }
        return Verdict::Fail;
    };
    let mut known = [""; 40];
    for (slot, name) in known
        .iter_mut()
        .zip(COMMON.iter().chain(exercise.parameters))
    {
        *slot = name;
    }
    match arguments
        .only(&known)
        .and_then(|()| (exercise.run)(arguments))
    {
        Ok(verdict) => verdict,
        Err(error) => {
            say!("{error}");
            Verdict::Fail
        }
    }
}

/// The number of harts that an exercise uses: `harts=N`, all by default.
fn harts<'a>(arguments: &Arguments<'a>) -> Result<usize, ArgumentError<'a>> {
    let all = crate::board::board().hart_count as u64;
    Ok(arguments.number("harts", all, 1, all)? as usize)
}
