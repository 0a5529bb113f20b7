//! Batches of programs on two computers.

use std::collections::BTreeMap;

use crate::compare::{Difference, Place, Run, describe, differences};
use crate::departures::{Explained, explain};
use crate::harness;
use crate::layout;
use crate::oracle::{Pair, run_alone};
use crate::program::Program;
use crate::random::Random;

/// Programs that run in one process of the other computer.
pub const BATCH: u64 = 250;

/// Findings over all programs of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Programs compared.
    pub programs: u64,
    /// Traps taken.
    pub traps: u64,
    /// Programs in which a known departure was met, by its name.
    pub departures: BTreeMap<&'static str, u64>,
    /// Programs that differ where they went on with a register that held a departure's value.
    pub consequences: u64,
    /// Programs that differ for no known reason, with what is known of each.
    pub failures: Vec<String>,
}

/// The seed of one program of a run.
#[must_use]
pub const fn seed_of(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits()
}

/// The image of programs: the harness and their slots, from the first program's on.
#[must_use]
pub fn image(programs: &[Program], vectors: u16) -> Vec<u8> {
    let first = programs.first().map_or(layout::SLOTS, |one| one.slot.base);
    let code = harness::build(first, programs.len() as u64, vectors);
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.resize((first - layout::RAM) as usize, 0);
    for program in programs {
        image.extend(&program.slot.bytes);
    }
    image
}

/// Programs `from..to` of a seed, of one batch: each has the slot of its place in the batch, whichever is the first.
#[must_use]
pub fn make(seed: u64, from: u64, to: u64, pair: Pair) -> Vec<Program> {
    let features = pair.features();
    let program = |number| Program::new(seed_of(seed, number), number % BATCH, None, features);
    (from..to.min(batch_end(from))).map(program).collect()
}

/// First program of the batch after a program's.
const fn batch_end(number: u64) -> u64 {
    (number / BATCH + 1) * BATCH
}

/// The slots of programs after a run on both computers.
type Both = (Vec<u8>, Vec<u8>);

fn run_both(programs: &[Program], pair: Pair) -> Result<Both, String> {
    let image = image(programs, pair.vectors);
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| pair.oracle.run_with(&image, 1, pair.vectors));
        let ours = run_alone(&image, pair.vectors).map_err(|error| error.to_string())?;
        let theirs = theirs
            .join()
            .map_err(|_| "a thread has failed".to_owned())?
            .map_err(|error| error.to_string())?;
        // What lies before the first program's slot is nobody's.
        let first = programs
            .first()
            .map_or(0, |one| one.slot.base - layout::SLOTS) as usize;
        let part = |all: Vec<u8>| all.get(first..).unwrap_or_default().to_vec();
        Ok((part(ours), part(theirs)))
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

fn compare(program: &Program, index: usize, both: &Both, pair: Pair) -> Explained {
    let (ours, theirs) = parts(program, index, both);
    let found = differences(ours, theirs);
    explain(pair.oracle, program, &found, ours, theirs)
}

/// Runs programs `from..to` of a seed on both computers.
///
/// # Errors
/// When one of the computers gives no result.
pub fn run(seed: u64, from: u64, to: u64, pair: Pair) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut next = from;
    while next < to {
        let programs = make(seed, next, to, pair);
        let both = run_both(&programs, pair)?;
        for (index, (program, number)) in programs.iter().zip(next..).enumerate() {
            summary.programs += 1;
            next = number + 1;
            let (ours, theirs) = parts(program, index, &both);
            summary.traps += ours.traps() as u64;
            let has_ended = ours.is_done() && !theirs.is_done();
            let found = compare(program, index, &both, pair);
            for name in &found.departures {
                *summary.departures.entry(name).or_default() += 1;
            }
            // A search takes a run for each item: where much fails, it tells nothing more.
            let is_searched = !has_ended && summary.failures.len() < SEARCHED;
            if found.unknown.is_empty() {
            } else if is_searched && !causes(seed, number, pair)?.is_empty() {
                summary.consequences += 1;
            } else {
                summary
                    .failures
                    .push(report(program, number, index, &both, &found.unknown));
            }
            if has_ended {
                // The other computer did not come to the programs behind this one.
                break;
            }
        }
    }
    Ok(summary)
}

/// Failures after which a program that differs is not searched for the cause.
const SEARCHED: usize = 20;
/// How many items before the one that departs are told.
const BEFORE: usize = 6;
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
    // From the first trap that differs in anything, or in its cause or place.
    let same = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let first = found
        .first()
        .map_or(same, |difference| match difference.place {
            Place::Trap { trap, .. } => same.min(trap + 1),
            _ => same,
        });
    for (name, lines) in [("here", &left), ("there", &right)] {
        for line in lines.iter().skip(first.saturating_sub(1)).take(3) {
            text.push_str(&format!("  {name}: {line}\n"));
        }
    }
    text
}

/// A program cut off after each of its items, on both computers.
struct Steps {
    programs: Vec<Program>,
    results: Vec<Both>,
}

impl Steps {
    fn new(seed: u64, number: u64, pair: Pair) -> Result<Self, String> {
        let make =
            |index, items| Program::new(seed_of(seed, number), index, items, pair.features());
        let items = make(0, None).items.len();
        let programs: Vec<Program> = (0..=items)
            .map(|count| make(count as u64, Some(count)))
            .collect();
        let (ours, theirs) = run_both(&programs, pair)?;
        let slots = |all: &[u8]| -> Vec<Vec<u8>> {
            let slots = all.chunks(layout::SLOT as usize);
            slots.map(<[u8]>::to_vec).collect()
        };
        let results = slots(&ours).into_iter().zip(slots(&theirs)).collect();
        Ok(Self { programs, results })
    }

    /// As [`Steps::new`], with the program where it lay in its batch, for one whose addresses matter:
    /// halves the number of items until it is known, and gives that.
    fn in_place(seed: u64, number: u64, pair: Pair) -> Result<(Self, Option<usize>), String> {
        let index = number % BATCH;
        let make = |items| Program::new(seed_of(seed, number), index, items, pair.features());
        let items = make(None).items.len();
        let programs: Vec<Program> = (0..=items).map(|count| make(Some(count))).collect();
        let results = vec![Both::default(); programs.len()];
        let mut steps = Self { programs, results };
        let mut departs = |count: usize| {
            if let (Some(program), Some(place)) =
                (steps.programs.get(count), steps.results.get_mut(count))
            {
                *place = run_both(std::slice::from_ref(program), pair)?;
            }
            Ok::<bool, String>(!steps.after(count, pair).1.unknown.is_empty())
        };
        if !departs(items)? || departs(0)? {
            return Ok((steps, None));
        }
        let (mut good, mut bad) = (0, items);
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if departs(middle)? {
                bad = middle;
            } else {
                good = middle;
            }
        }
        Ok((steps, Some(bad)))
    }

    /// All differences after `count` items, and what becomes of them.
    fn after(&self, count: usize, pair: Pair) -> (Vec<Difference>, Explained) {
        let (Some(program), Some((ours, theirs))) =
            (self.programs.get(count), self.results.get(count))
        else {
            return Default::default();
        };
        let base = program.slot.base;
        let (ours, theirs) = (Run::new(ours, base), Run::new(theirs, base));
        let found = differences(ours, theirs);
        let explained = explain(pair.oracle, program, &found, ours, theirs);
        (found, explained)
    }

    /// The programs of a run cut off, and how many items it takes for an unknown difference.
    fn find(seed: u64, number: u64, pair: Pair) -> Result<(Self, Option<usize>), String> {
        let steps = Self::new(seed, number, pair)?;
        let departs = steps.departs(pair);
        if departs.is_some() {
            return Ok((steps, departs));
        }
        Self::in_place(seed, number, pair)
    }

    /// How many items it takes for a difference that no departure explains.
    fn departs(&self, pair: Pair) -> Option<usize> {
        (0..self.programs.len()).find(|&count| !self.after(count, pair).1.unknown.is_empty())
    }
}

/// The departures of which a program's unknown differences are consequences: when the first item
/// that is followed by one works with a register that held a departure's value already, or a branch
/// before it does.
fn causes(seed: u64, number: u64, pair: Pair) -> Result<Vec<&'static str>, String> {
    let found = causes_in(&Steps::find(seed, number, pair)?, pair);
    if !found.is_empty() {
        return Ok(found);
    }
    // Cut-off programs lie elsewhere, and addresses are values too.
    Ok(causes_in(&Steps::in_place(seed, number, pair)?, pair))
}

fn causes_in((steps, departs): &(Steps, Option<usize>), pair: Pair) -> Vec<&'static str> {
    let Some(before) = departs.and_then(|count| count.checked_sub(1)) else {
        return Vec::new();
    };
    let (found, explained) = steps.after(before, pair);
    let whole = steps.programs.last();
    let Some(item) = whole.and_then(|program| program.items.get(before)) else {
        return Vec::new();
    };
    // A branch on such a register shows only where its two ways differ, which may be later.
    let branches = whole.map_or(&[][..], |program| &program.items[..before]);
    let branches = || branches.iter().filter(|item| item.is_conditional());
    let is_used = found.iter().any(|difference| match difference.place {
        Place::Integer(register) => {
            item.mentions(register) || branches().any(|branch| branch.mentions(register))
        }
        _ => false,
    });
    if is_used {
        explained.departures
    } else {
        Vec::new()
    }
}

/// Finds the first item after which the two computers differ: runs the program cut off after each
/// of its items.
///
/// # Errors
/// As [`run`].
pub fn trace(seed: u64, number: u64, pair: Pair) -> Result<String, String> {
    let (steps, departs) = Steps::find(seed, number, pair)?;
    let Some(whole) = steps.programs.last() else {
        return Ok(String::new());
    };
    let mut text = format!("program {number}: {}\n", whole.setting);
    let Some(count) = departs else {
        text.push_str("no difference\n");
        return Ok(text);
    };
    if let Some(item) = count.checked_sub(1).and_then(|last| whole.items.get(last)) {
        let halves = item.halves();
        for before in whole.items.iter().take(count - 1).rev().take(BEFORE).rev() {
            text.push_str(&format!("  before: {}\n", before.text));
        }
        text.push_str(&format!("departs with: {} [{halves}]\n", item.text));
    }
    let (_, found) = steps.after(count, pair);
    let program = steps.programs.get(count).unwrap_or(whole);
    if let Some(both) = steps.results.get(count) {
        text.push_str(&report(program, number, 0, both, &found.unknown));
    }
    Ok(text)
}
