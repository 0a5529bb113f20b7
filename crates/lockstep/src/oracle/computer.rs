//! This machine.

use machine::base::VectorLength;
use machine::board::PmpEntries;
use machine::{Config, Limit, Machine, Stop};

use crate::{elf, layout};

/// How a run on this machine went wrong.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no machine, or the image does not fit.
    #[error(transparent)]
    Machine(#[from] machine::MachineError),
    /// The programs did not end.
    #[error("the machine stopped with {0:?} before the programs had ended; it was at {1}")]
    Endless(Stop, String),
}

/// Instructions that a program may take, with the harness around it.
const INSTRUCTIONS: u64 = 200_000;

/// A turn long enough for all programs of one hart: reservations are lost between turns.
pub const WHOLE: u64 = 1_000_000;

/// The image from the first slot on, after a run with harts that take turns of `quantum` cycles.
///
/// # Errors
/// [`RunError`] when there is no result.
pub fn run(image: &[u8], harts: u32, quantum: u64) -> Result<Vec<u8>, RunError> {
    let size = image.len() as u64 + layout::RAM - layout::SLOTS;
    let slots = size.div_ceil(layout::SLOT);
    let instructions = INSTRUCTIONS.saturating_mul(slots * u64::from(harts));
    run_within(image, harts, quantum, instructions)
}

/// As [`run`], with as many instructions as are given.
///
/// # Errors
/// [`RunError`] when there is no result.
pub fn run_within(
    image: &[u8],
    harts: u32,
    quantum: u64,
    instructions: u64,
) -> Result<Vec<u8>, RunError> {
    let mut config = config(image);
    config.board.harts = harts;
    config.quantum = quantum;
    if harts > 1 {
        // Turns end between any two instructions then, as blocks do in the timing mode.
        config.blocks.instructions = 1 + (quantum % 16) as u8;
    }
    run_on(config, image, instructions)
}

/// As [`run`], by one hart with vector registers of so many bits unless that is 0.
///
/// # Errors
/// [`RunError`] when there is no result.
pub fn run_alone(image: &[u8], vectors: u16) -> Result<Vec<u8>, RunError> {
    let size = image.len() as u64 + layout::RAM - layout::SLOTS;
    let slots = size.div_ceil(layout::SLOT);
    run_vectors(image, vectors, INSTRUCTIONS.saturating_mul(slots))
}

/// As [`run_alone`], with as many instructions as are given.
///
/// # Errors
/// [`RunError`] when there is no result.
pub fn run_vectors(image: &[u8], vectors: u16, instructions: u64) -> Result<Vec<u8>, RunError> {
    let mut config = config(image);
    config.quantum = WHOLE;
    if let Some(length) = VectorLength::new(vectors) {
        config.board.isa.set_vector_length(length);
    }
    run_on(config, image, instructions)
}

/// As [`run_within`], by one hart that has so many PMP entries.
///
/// # Errors
/// [`RunError`] when there is no result.
pub fn run_protected(
    image: &[u8],
    entries: PmpEntries,
    instructions: u64,
) -> Result<Vec<u8>, RunError> {
    let mut config = config(image);
    config.quantum = WHOLE;
    config.board.isa.pmp_entries = entries;
    run_on(config, image, instructions)
}

/// A machine with one hart that has all that an image may use.
fn config(image: &[u8]) -> Config {
    let mut config = Config::default();
    config.board.memory = super::process::memory(image.len()) << 20;
    config.board.isa.mmu = "riscv,sv57".to_owned();
    config
}

/// The image from the first slot on, after a run on such a machine.
fn run_on(config: Config, image: &[u8], instructions: u64) -> Result<Vec<u8>, RunError> {
    let mut machine = Machine::new(config)?;
    machine.load_bare(&elf::write(image))?;
    let stop = machine.run(Limit {
        instructions: Some(instructions),
        cycles: None,
    });
    let place = machine.harts().first().map(|hart| hart.describe());
    if !matches!(stop, Stop::Exit(0) | Stop::PowerOff) {
        return Err(RunError::Endless(stop, place.unwrap_or_default()));
    }
    let end = layout::RAM + image.len() as u64;
    machine
        .read_memory(layout::SLOTS, end)
        .ok_or_else(|| RunError::Endless(stop, "memory that is not there".to_owned()))
}
