//! Workload by its parameters: jobs, their steps, and the spins of paper 000 §2.2.

mod reference;
#[cfg(test)]
mod tests;

pub use reference::{
    MAX_LOCKS, MAX_PAGES, MAX_SECTORS, MAX_SPACES, MAX_TERMINALS, PARAMETERS, Parameter, REFERENCE,
    Takes,
};

use crate::arguments::{ArgumentError, Arguments};
use crate::event::Event;

/// How a spinning hart waits between two polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpinMethod {
    /// LR, compare, WRS.NTO, as Linux's ticket locks do.
    WaitOnReservation,
    /// PAUSE.
    Pause,
    /// PAUSE and a poll, again and again, as Linux does where it knows no Zawrs; PAUSE where harts carry out processes for each other,
    /// as nothing else is done in between.
    PauseLoop,
    /// The hypervisor's spin call; PAUSE where there is none.
    Call,
    /// Nothing at all.
    Busy,
}

/// How harts queue for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// First come, first served, all polling one word.
    Ticket,
    /// Compare and swap: the first hart that polls when it is free (the lock of paper 000 §2.2). Nobody is overtaken, since
    /// there is no order.
    Swap,
    /// First come, first served, each polling a word of its own (Mellor-Crummey and Scott 1991).
    Queue,
}

/// Action when a spin's count expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It is counted.
    Count,
    /// The processor is put off-line after the step it is in, unless it is the last.
    OffLine,
    /// The system fails.
    Fail,
}

/// A workload. Lengths of computation are turns of a loop of a few instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Jobs in the system at once: initiators of batch, terminals of time sharing, depth of I/O.
    pub terminals: u64,
    /// Mean time from a job's end to the next one's arrival at that terminal, microseconds; 0 is batch.
    pub think_us: u64,
    /// The run ends after so many jobs (0: no such end),
    pub jobs: u64,
    /// or after so long, milliseconds (0: no such end).
    pub duration_ms: u64,
    /// Steps of a job; everything below is for each step.
    pub steps: u64,
    /// Turns computed with interrupts open.
    pub compute: u64,
    /// Writes of all vector registers, before the turns (0: the registers are never used).
    pub vectors: u64,
    /// References to memory, each to a word of a page of the job's address space; how many spaces there are (0: nothing is
    /// translated), the pages of each, and one step in so many that ends with a fence of its space, by itself or of all harts
    /// (0: none).
    pub references: u64,
    pub spaces: u64,
    pub pages: u64,
    pub fence_one_in: u64,
    pub remote_fence_one_in: u64,
    /// True if address spaces have identifiers (ASIDs). Without, each change of the space is followed by a fence.
    pub asids: bool,
    /// An event that is repeated, and how often.
    pub event: Event,
    pub events: u64,
    /// System calls from user mode.
    pub calls: u64,
    /// Lock sections, turns inside each, and how many locks there are to choose from.
    pub locks: u64,
    pub hold: u64,
    pub lock_count: u64,
    /// Lock kind and spin method.
    pub kind: LockKind,
    pub spin: SpinMethod,
    /// Queries the hypervisor, at the start, for its allocation of processors (paper 000 §3.1, the return
    /// code at start): dedicated ones are spun on by PAUSE, shared ones given back by the spin call.
    pub queries_allocation: bool,
    /// One step in so many waits for a partner's process to complete (0: none).
    pub partner_one_in: u64,
    /// One step in so many has a partner carry out a process (0: none).
    pub request_one_in: u64,
    /// Turns of such a process.
    pub process: u64,
    /// Block reads, each waited for, and their size in sectors of 512 bytes.
    pub reads: u64,
    pub sectors: u64,
    /// Buffers of such a read, all of the same size.
    pub buffers: u64,
    /// Condition of the disk's interrupt line that makes an interrupt.
    pub trigger: Trigger,
    /// True if the disk is told of what it has asked for alone, and asked for interrupts alike, as Debian's driver has it.
    pub asked: bool,
    /// True if a read that the disk could not do is tried again; otherwise the run fails.
    pub retries: bool,
    /// Looks after which a spin is excessive (0: never).
    pub spin_limit: u64,
    /// Time after which a spin is excessive, milliseconds (0: never).
    pub spin_limit_ms: u64,
    pub expire: Expiry,
    pub seed: u64,
}

/// Condition of a device's interrupt line that makes an interrupt (AIA §4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Its high level.
    Level,
    /// Its rising.
    Edge,
}

impl Workload {
    /// Reads a workload's parameters. What is not given is nothing, or small.
    ///
    /// # Errors
    /// A value that its parameter does not take.
    pub fn parse<'a>(arguments: &Arguments<'a>) -> Result<Self, ArgumentError<'a>> {
        let number = |key| number_of(arguments, key);
        Ok(Self {
            terminals: number("terminals")?,
            think_us: number("think-us")?,
            jobs: number("jobs")?,
            duration_ms: number("duration-ms")?,
            steps: number("steps")?,
            compute: number("compute")?,
            vectors: number("vectors")?,
            references: number("references")?,
            spaces: number("spaces")?,
            pages: number("pages")?,
            fence_one_in: number("fence-one-in")?,
            remote_fence_one_in: number("remote-fence-one-in")?,
            asids: number("asids")? != 0,
            event: arguments.choice("event", Event::None, &Event::ALL)?,
            events: number("events")?,
            calls: number("calls")?,
            locks: number("locks")?,
            hold: number("hold")?,
            lock_count: number("lock-count")?,
            kind: arguments.choice(
                "lock",
                LockKind::Ticket,
                &[
                    ("ticket", LockKind::Ticket),
                    ("swap", LockKind::Swap),
                    ("queue", LockKind::Queue),
                ],
            )?,
            spin: arguments.choice(
                "spin",
                SpinMethod::WaitOnReservation,
                &[
                    ("wrs", SpinMethod::WaitOnReservation),
                    ("pause", SpinMethod::Pause),
                    ("pause-loop", SpinMethod::PauseLoop),
                    ("call", SpinMethod::Call),
                    ("busy", SpinMethod::Busy),
                ],
            )?,
            queries_allocation: arguments.choice(
                "allocation",
                false,
                &[("ignore", false), ("code", true)],
            )?,
            partner_one_in: number("partner-one-in")?,
            request_one_in: number("request-one-in")?,
            process: number("process")?,
            reads: number("reads")?,
            sectors: number("sectors")?,
            buffers: number("buffers")?,
            trigger: arguments.choice(
                "trigger",
                Trigger::Level,
                &[("level", Trigger::Level), ("edge", Trigger::Edge)],
            )?,
            asked: arguments.choice("notify", false, &[("always", false), ("asked", true)])?,
            retries: arguments.choice("read-error", false, &[("fail", false), ("retry", true)])?,
            spin_limit: number("spin-limit")?,
            spin_limit_ms: number("spin-limit-ms")?,
            expire: arguments.choice(
                "expire",
                Expiry::Count,
                &[
                    ("count", Expiry::Count),
                    ("offline", Expiry::OffLine),
                    ("fail", Expiry::Fail),
                ],
            )?,
            seed: number("seed")?,
        })
    }
}

/// A number, by the limits of its parameter.
fn number_of<'a>(arguments: &Arguments<'a>, key: &'static str) -> Result<u64, ArgumentError<'a>> {
    for parameter in &REFERENCE {
        if let Takes::Number { default, low, high } = parameter.takes
            && parameter.name == key
        {
            return arguments.number(key, default, low, high);
        }
    }
    Err(ArgumentError::UnknownKey(key))
}

/// A think time: exponential with mean `mean`, from 16 random bits, by a table-free approximation: the
/// negative logarithm of a uniform number, in 1/64 of the mean, cut at about eleven means.
#[must_use]
pub fn think_time(mean: u64, random: u64) -> u64 {
    // -ln(u) = ln 2 * (16 - log2(n)) for u = n / 2^16, n in 1..=2^16; log2 with 6 bits of fraction, linear
    // between powers of two (its error is below 0.09, the mean's below 6 %).
    let n = (random & 0xffff) + 1;
    let power = 63 - u64::from(n.leading_zeros());
    let fraction = ((n << 6) >> power) & 63;
    let log = 64 * power + fraction;
    // ln 2 = 44/64 to within 1 %.
    let distance = (16 * 64 - log) * 44;
    ((u128::from(mean) * u128::from(distance)) >> 12) as u64
}
