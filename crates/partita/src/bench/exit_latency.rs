//! Round trips through the hypervisor in several works, side by side.

mod goals;
mod works;

pub use goals::Goal;

use super::BenchError;
use goals::goals;
use guest_images::Progress;
use runner::computer::{Chosen, Setup};
use runner::exit_latency::{ExitLatencies, LatencyKind, Row};
use runner::headless::{Limits, Run};
use runner::table::Table;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use system::cache::Cache;
use system::image::{self, slots::Assignment};
use system::{Document, System};
use works::{DISK, WORK, Work};

/// The profile of the machine.
const PROFILE: &str = "k3-class";

/// The round trips of each work.
#[derive(Debug, Serialize)]
pub struct ExitLatencyReport {
    /// The work's name and its rows.
    pub work: Vec<(&'static str, Vec<Row>)>,
    /// Goals for what vectors add to them.
    pub goals: Vec<Goal>,
}

/// Measures the exit latency of several works on the machine.
///
/// # Errors
/// A system cannot be built or does not run.
pub fn measure_exit_latency(
    cache: &Cache,
    hypervisor: &Path,
    progress: &Progress,
) -> Result<ExitLatencyReport, BenchError> {
    // The system is taken to stand elsewhere.
    let hypervisor = &std::path::absolute(hypervisor).map_err(|error| BenchError::File {
        path: hypervisor.to_owned(),
        error,
    })?;
    runner::images::ensure(cache, &[DISK], progress)?;
    let exerciser = hypervisor.with_file_name("exerciser");
    // Each is a function of its system alone, so that they may go side by side.
    let work = std::thread::scope(|scope| {
        let one = |of: Work| {
            let (hypervisor, exerciser) = (&hypervisor, &exerciser);
            scope.spawn(move || {
                progress.step(&format!("measuring exit latency: {}", of.name));
                measure(cache, hypervisor, exerciser, &of).map(|rows| (of.name, rows))
            })
        };
        let begun = WORK.map(one);
        let joined = begun.map(std::thread::ScopedJoinHandle::join);
        let rows = joined
            .into_iter()
            .map(|rows| rows.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        rows.collect::<Result<Vec<_>, BenchError>>()
    })?;
    let goals = goals(&work);
    Ok(ExitLatencyReport { work, goals })
}

/// Round trips of one work.
fn measure(
    cache: &Cache,
    hypervisor: &Path,
    exerciser: &Path,
    work: &Work,
) -> Result<Vec<Row>, BenchError> {
    let text = work.system(exerciser);
    let document = Document::new(&std::env::temp_dir().join("exit-latency.toml"), text, &[])?;
    let system = System::read(&document)?;
    let slots = Assignment::of(&system);
    let image = image::compose(&system, &slots, cache, None)?;
    let setup = Setup {
        system: &system,
        slots: &slots,
        image: &image,
        hypervisor,
        cache,
    };
    let mut chosen = Chosen::named(Some(PROFILE), 0)?;
    if let Some(profile) = &mut chosen.profile {
        work.set_vectors(profile);
    }
    let mut run = Run::boot(&setup, &chosen)?;
    let exit_latency = ExitLatencies::default();
    run.machine.listen(Box::new(exit_latency.clone()));
    let _ = run.follow(&Limits::default(), &mut |_line| {});
    Ok(exit_latency.rows())
}

impl fmt::Display for ExitLatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, rows)) in self.work.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let mut table = Table::new([
                *name,
                "count",
                "instructions",
                "mean",
                "most",
                "cycles",
                "mean",
                "most",
            ]);
            // Addresses differ from build to build.
            for row in rows.iter().filter(|row| row.kind != LatencyKind::Pauses) {
                let name = match row.kind {
                    LatencyKind::Exit => format!("exit: {}", row.cause),
                    LatencyKind::Dispatch => format!("dispatch after: {}", row.cause),
                    LatencyKind::FromIdle => String::from("dispatch by an idle hart"),
                    LatencyKind::Pauses => format!("pauses at: {}", row.cause),
                };
                let figures = row.instructions.iter().chain(&row.cycles);
                table.row(
                    [name, row.count.to_string()]
                        .into_iter()
                        .chain(figures.map(ToString::to_string)),
                );
            }
            write!(f, "{table}")?;
        }
        let mut table = Table::new(["instructions more than without vectors", "", "bound", ""]);
        for goal in &self.goals {
            let kept = if goal.is_kept() { "kept" } else { "MISSED" };
            table.row([
                goal.what,
                &goal.instructions.to_string(),
                &format!("at most {}", goal.bound),
                kept,
            ]);
        }
        write!(f, "\n{table}")
    }
}
