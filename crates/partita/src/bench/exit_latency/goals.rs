//! Goals for what vectors add to round trips.

use super::works::{HIDDEN, NO_VECTORS, SLEEPS, UNUSED, VECTORS_SLEEP};
use runner::exit_latency::{LatencyKind, Row};
use serde::Serialize;

/// Instructions that a dispatch of a guest without vectors may take more on harts that have them.
const WITHOUT: i64 = 10;

/// A goal, and whether it was reached.
#[derive(Debug, Serialize)]
pub struct Goal {
    /// Subject of the goal.
    pub what: &'static str,
    /// Instructions more than without vectors, in the median.
    pub instructions: i64,
    /// Largest number that reaches the goal.
    pub bound: i64,
}

impl Goal {
    /// Returns whether it was reached.
    pub(super) const fn is_kept(&self) -> bool {
        self.instructions <= self.bound
    }
}

/// The goals, by the rows of the works; those whose round trips did not occur are left out.
pub(super) fn goals(work: &[(&'static str, Vec<Row>)]) -> Vec<Goal> {
    let median = |name: &str, kind: LatencyKind, cause: &str| {
        let (_, rows) = work.iter().find(|(other, _)| *other == name)?;
        let row = rows
            .iter()
            .find(|row| row.kind == kind && row.cause == cause)?;
        i64::try_from(row.instructions[0]).ok()
    };
    let slice = |name| median(name, LatencyKind::Dispatch, "timer");
    let sleep = |name| median(name, LatencyKind::Exit, "WFI, which waits");
    let goal = |what, with: Option<i64>, without: Option<i64>, bound| {
        let instructions = with? - without?;
        Some(Goal {
            what,
            instructions,
            bound,
        })
    };
    let goals = [
        goal(
            "a dispatch after a slice, vectors hidden",
            slice(HIDDEN),
            slice(NO_VECTORS),
            WITHOUT,
        ),
        goal(
            "a dispatch after a slice, vectors unused",
            slice(UNUSED),
            slice(NO_VECTORS),
            WITHOUT,
        ),
        goal(
            "a sleep from which the vCPU comes back to its hart, vectors changed",
            sleep(VECTORS_SLEEP),
            sleep(SLEEPS),
            0,
        ),
    ];
    goals.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: LatencyKind, cause: &str, instructions: u64) -> Row {
        Row {
            kind,
            cause: String::from(cause),
            count: 1,
            instructions: [instructions; 3],
            cycles: [0; 3],
        }
    }

    #[test]
    fn goals_compare_with_vectorless_rows() {
        let slices = |instructions| vec![row(LatencyKind::Dispatch, "timer", instructions)];
        let mut work = vec![
            (NO_VECTORS, slices(1000)),
            (HIDDEN, slices(1010)),
            (UNUSED, slices(1011)),
        ];
        let found = goals(&work);
        let kept = found.iter().map(|goal| (goal.instructions, goal.is_kept()));
        assert_eq!(kept.collect::<Vec<_>>(), [(10, true), (11, false)]);
        let sleep = |instructions| {
            let cause = "WFI, which waits";
            vec![row(LatencyKind::Exit, cause, instructions)]
        };
        work.push((SLEEPS, sleep(900)));
        work.push((VECTORS_SLEEP, sleep(901)));
        let found = goals(&work);
        assert_eq!((found[2].instructions, found[2].is_kept()), (1, false));
    }
}
