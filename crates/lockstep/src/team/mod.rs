//! Programs for several harts whose outcome does not depend on who is first: sums by AMOs and by
//! LR and SC, locks, values that are handed on, interprocessor interrupts, code that another hart
//! changes, page tables of both stages that another hart changes.
//!
//! Each hart has code of its own, in M-mode; all meet between two exercises. What they leave behind is
//! compared byte by byte.

mod exercise;
mod hart;
mod memory;

use crate::assembler::Code;
use crate::layout;
use crate::lockstep::seed_of;
use crate::oracle::{Oracle, run_here};
use crate::random::Random;
use exercise::Exercise;

/// Exercises of a program.
const EXERCISES: usize = 10;

/// A program for several harts.
#[derive(Debug, Clone)]
pub struct Team {
    /// Number of harts.
    pub harts: u32,
    /// The exercises, for people.
    pub exercises: Vec<String>,
    /// Memory from the start of RAM.
    pub image: Vec<u8>,
}

impl Team {
    /// The program of a seed.
    ///
    /// # Panics
    /// If the code does not fit: a mistake in this crate.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let harts = 2 + random.field(3);
        let mut memory = memory::Memory::new(&mut random);
        let exercises: Vec<Exercise> = (0..EXERCISES)
            .map(|number| Exercise::new(number, harts, &mut memory, &mut random))
            .collect();
        let mut code = Code::default();
        hart::start(&mut code, harts, |code, hart| {
            for exercise in &exercises {
                exercise.emit(code, hart, harts, &mut random);
                hart::meet(code, harts, &mut random);
            }
        });
        let mut image: Vec<u8> = code
            .finish()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert!(
            image.len() as u64 <= layout::TOHOST - layout::RAM,
            "{} bytes of code",
            image.len()
        );
        image.resize((layout::SLOTS - layout::RAM) as usize, 0);
        image.extend(memory.bytes);
        Self {
            harts,
            exercises: exercises.iter().map(|one| format!("{one:?}")).collect(),
            image,
        }
    }
}

/// Findings over the programs of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Programs compared.
    pub programs: u64,
    /// Exercises in them.
    pub exercises: u64,
    /// Difference.
    pub failures: Vec<String>,
}

/// Runs programs `from..to` of a seed here and on another implementation.
///
/// # Errors
/// When one of the two gives no result.
pub fn run(seed: u64, from: u64, to: u64, oracle: Oracle) -> Result<Summary, String> {
    let mut summary = Summary::default();
    for number in from..to {
        let team = Team::new(seed_of(seed, number));
        // How often harts take turns here is random too.
        let quantum = 1 + Random::new(seed_of(seed, number)).below(2000);
        let (ours, theirs) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| oracle.run(&team.image, team.harts));
            let ours = run_here(&team.image, team.harts, quantum);
            (ours, theirs.join())
        });
        let failed = |error: String| format!("program {number} for {} harts: {error}", team.harts);
        let ours = ours.map_err(|error| failed(error.to_string()))?;
        let theirs = theirs
            .map_err(|_| failed("a thread has failed".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        summary.programs += 1;
        summary.exercises += team.exercises.len() as u64;
        let words = |bytes: &[u8]| -> Vec<[u8; 8]> { bytes.as_chunks().0.to_vec() };
        let different: Vec<String> = words(&ours)
            .iter()
            .zip(&words(&theirs))
            .enumerate()
            .filter(|(_, (left, right))| left != right)
            .map(|(index, (left, right))| {
                format!(
                    "  {:#x}: {:#x} here, {:#x} there",
                    layout::SLOTS + 8 * index as u64,
                    u64::from_le_bytes(*left),
                    u64::from_le_bytes(*right)
                )
            })
            .collect();
        if !different.is_empty() {
            summary.failures.push(format!(
                "program {number} for {} harts, quantum {quantum}:\n  {}\n{}\n",
                team.harts,
                team.exercises.join("\n  "),
                different
                    .iter()
                    .take(8)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join("\n")
            ));
        }
    }
    Ok(summary)
}
