//! Batches of programs on two computers.

use std::collections::BTreeMap;

use crate::compare::{Difference, Run, describe, differences};
use crate::departures::{Explained, explain};
use crate::harness;
use crate::layout;
use crate::oracle::{Oracle, run_here};
use crate::program::Program;
use crate::random::Random;

/// Programs that run in one process of the other computer.
pub const BATCH: u64 = 250;

/// What is known of all programs of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Programs compared.
    pub programs: u64,
    /// Traps taken.
    pub traps: u64,
    /// Programs in which a known departure was met, by its name.
    pub departures: BTreeMap<&'static str, u64>,
    /// Programs that differ for no known reason, with what is known of each.
    pub failures: Vec<String>,
}

/// The seed of one program of a run.
#[must_use]
pub const fn seed_of(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits()
}

/// The image of programs: the harness and their slots.
#[must_use]
pub fn image(programs: &[Program]) -> Vec<u8> {
    let code = harness::build(programs.len() as u64);
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.resize((layout::SLOTS - layout::RAM) as usize, 0);
    for program in programs {
        image.extend(&program.slot.bytes);
    }
    image
}

/// Programs `from..to` of a seed.
#[must_use]
pub fn make(seed: u64, from: u64, to: u64, oracle: Oracle) -> Vec<Program> {
    let program =
        |(index, number)| Program::new(seed_of(seed, number), index, None, oracle.features());
    (0..).zip(from..to).map(program).collect()
}

/// The slots of programs after a run on both computers.
type Both = (Vec<u8>, Vec<u8>);

fn run_both(programs: &[Program], oracle: Oracle) -> Result<Both, String> {
    let image = image(programs);
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| oracle.run(&image));
        let ours = run_here(&image, programs.len() as u64).map_err(|error| error.to_string())?;
        let theirs = theirs
            .join()
            .map_err(|_| "a thread has failed".to_owned())?;
        Ok((ours, theirs.map_err(|error| error.to_string())?))
    })
}

/// One program's part of both results.
fn parts<'a>(program: &Program, index: usize, (ours, theirs): &'a Both) -> (Run<'a>, Run<'a>) {
    let size = layout::SLOT as usize;
    let range = index * size..(index + 1) * size;
    let part = |all: &'a Vec<u8>| all.get(range.clone()).unwrap_or_default();
    let base = program.slot.base;
    (Run::new(part(ours), base), Run::new(part(theirs), base))
}

fn compare(program: &Program, index: usize, both: &Both, oracle: Oracle) -> Explained {
    let (ours, theirs) = parts(program, index, both);
    let found = differences(ours, theirs);
    explain(oracle, &found, ours, theirs)
}

/// Runs programs `from..to` of a seed on both computers.
///
/// # Errors
/// When one of the computers gives no result.
pub fn run(seed: u64, from: u64, to: u64, oracle: Oracle) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut next = from;
    while next < to {
        let programs = make(seed, next, to.min(next + BATCH), oracle);
        let both = run_both(&programs, oracle)?;
        for (index, (program, number)) in programs.iter().zip(next..).enumerate() {
            summary.programs += 1;
            let (ours, _) = parts(program, index, &both);
            summary.traps += ours.traps() as u64;
            let found = compare(program, index, &both, oracle);
            for name in &found.departures {
                *summary.departures.entry(name).or_default() += 1;
            }
            if !found.unknown.is_empty() {
                summary
                    .failures
                    .push(report(program, number, index, &both, &found.unknown));
            }
        }
        next += BATCH;
    }
    Ok(summary)
}

/// How many differences of a program are told.
const TOLD: usize = 8;

fn report(
    program: &Program,
    number: u64,
    index: usize,
    both: &Both,
    found: &[Difference],
) -> String {
    let (ours, theirs) = parts(program, index, both);
    let mut text = format!("program {number}: {}\n", program.setting);
    for difference in found.iter().take(TOLD) {
        text.push_str(&format!("  {difference}\n"));
    }
    let (left, right) = (describe(program, ours), describe(program, theirs));
    let same = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    for (name, lines) in [("here", &left), ("there", &right)] {
        for line in lines.iter().skip(same.saturating_sub(1)).take(3) {
            text.push_str(&format!("  {name}: {line}\n"));
        }
    }
    text
}

/// Finds the first item after which the two computers differ: runs the program cut off after each
/// of its items.
///
/// # Errors
/// As [`run`].
pub fn trace(seed: u64, number: u64, oracle: Oracle) -> Result<String, String> {
    let make = |index, items| Program::new(seed_of(seed, number), index, items, oracle.features());
    let whole = make(0, None);
    let programs: Vec<Program> = (0..=whole.items.len() as u64)
        .map(|count| make(count, Some(count as usize)))
        .collect();
    let both = run_both(&programs, oracle)?;
    let mut text = format!("program {number}: {}\n", whole.setting);
    for (count, program) in programs.iter().enumerate() {
        let found = compare(program, count, &both, oracle);
        if found.unknown.is_empty() {
            continue;
        }
        if let Some(item) = count
            .checked_sub(1)
            .and_then(|last| program.items.get(last))
        {
            text.push_str(&format!(
                "departs with: {} [{}]\n",
                item.text,
                item.halves()
            ));
        }
        text.push_str(&report(program, number, count, &both, &found.unknown));
        return Ok(text);
    }
    text.push_str("no difference\n");
    Ok(text)
}
