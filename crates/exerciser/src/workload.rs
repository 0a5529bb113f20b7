//! What a workload does, as its parameters say it: jobs, their steps, and the spins of paper 000 §2.2.

use crate::arguments::{ArgumentError, Arguments};
use crate::event::Event;

/// How a spinning hart waits between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpinMethod {
    /// LR, compare, WRS.NTO, as Linux's ticket locks do.
    WaitOnReservation,
    /// PAUSE.
    Pause,
    /// PAUSE and a look, again and again, as Linux does where it knows no Zawrs; PAUSE where harts carry out processes for each other,
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
    /// First come, first served, all looking at one word.
    Ticket,
    /// Compare and swap: whoever looks first when it is free (the lock of paper 000 §2.2). Nobody is overtaken, since
    /// there is no order.
    Swap,
    /// First come, first served, each looking at a word of its own (Mellor-Crummey and Scott 1991).
    Queue,
}

/// What follows when a spin's count expires.
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
    /// References to memory, each to a word of a page of the job's address space; how many spaces there are (0: nothing is
    /// translated), the pages of each, and one step in so many that ends with a fence of its space, by itself or of all harts
    /// (0: none).
    pub touches: u64,
    pub spaces: u64,
    pub pages: u64,
    pub fence_one_in: u64,
    pub remote_fence_one_in: u64,
    /// Whether address spaces have identifiers (ASIDs). Without, each change of the space is followed by a fence.
    pub identifiers: bool,
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
    /// Whether the hypervisor is asked, at the start, how it allocates processors (paper 000 §3.1, the return
    /// code at start): dedicated ones are spun on by PAUSE, shared ones given back by the spin call.
    pub asks_allocation: bool,
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
    /// What of the disk's wire makes an interrupt.
    pub trigger: Trigger,
    /// Whether the disk is told of what it has asked for alone, and asked for interrupts alike, as Debian's driver has it.
    pub asked: bool,
    /// Whether a read that the disk could not do is tried again; otherwise the run fails.
    pub retries: bool,
    /// Looks after which a spin is excessive (0: never).
    pub spin_limit: u64,
    /// Time after which a spin is excessive, milliseconds (0: never).
    pub spin_limit_ms: u64,
    pub expire: Expiry,
    pub seed: u64,
}

/// What of a device's wire makes an interrupt (AIA §4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Its high level.
    Level,
    /// Its rising.
    Edge,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A whole number.
    Number {
        /// What it is if it is not given.
        default: u64,
        /// The least.
        low: u64,
        /// The most.
        high: u64,
    },
    /// One of these words; the first if none is given.
    Word(&'static [&'static str]),
}

/// A word of `work`'s command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub takes: Takes,
    /// What it is.
    pub what: &'static str,
}

const fn number(
    name: &'static str,
    default: u64,
    low: u64,
    high: u64,
    what: &'static str,
) -> Parameter {
    let takes = Takes::Number { default, low, high };
    Parameter { name, takes, what }
}

const fn word(name: &'static str, words: &'static [&'static str], what: &'static str) -> Parameter {
    let takes = Takes::Word(words);
    Parameter { name, takes, what }
}

/// More than anybody wants.
const MANY: u64 = 1 << 40;

/// The parameters of `work`.
pub const REFERENCE: [Parameter; 35] = [
    number("harts", 0, 0, MANY, "harts that work; 0 is all"),
    number(
        "terminals",
        4,
        1,
        MOST_TERMINALS,
        "jobs in the system at once: initiators of batch, terminals of time sharing, depth of I/O",
    ),
    number(
        "think-us",
        0,
        0,
        MANY,
        "mean time from a job's end to the next one's arrival at that terminal, microseconds; 0 is batch",
    ),
    number(
        "jobs",
        0,
        0,
        MANY,
        "the run ends after so many jobs; 0: no such end",
    ),
    number(
        "duration-ms",
        5000,
        0,
        MANY,
        "the run ends after so many milliseconds; 0: no such end",
    ),
    number(
        "steps",
        1,
        1,
        MANY,
        "steps of a job; everything below is for each step",
    ),
    number(
        "compute",
        1000,
        0,
        MANY,
        "turns of a loop computed with interrupts open",
    ),
    number(
        "touches",
        0,
        0,
        MANY,
        "references to memory, each to a word of one of the pages of the job's address space",
    ),
    number(
        "spaces",
        0,
        0,
        MOST_SPACES,
        "address spaces, which the jobs share out among them; 0: addresses are not translated",
    ),
    number(
        "pages",
        64,
        1,
        MOST_PAGES,
        "pages of 4 KiB of each address space",
    ),
    number(
        "fence-one-in",
        0,
        0,
        MANY,
        "one step in so many ends with an SFENCE.VMA of its address space; 0: none",
    ),
    number(
        "remote-fence-one-in",
        0,
        0,
        MANY,
        "one step in so many ends with a fence of its address space on all harts, by SBI RFENCE; 0: none",
    ),
    number(
        "identifiers",
        1,
        0,
        1,
        "1 where address spaces have identifiers (ASIDs); with 0 each change of the space is followed by a fence of everything",
    ),
    word(
        "event",
        &Event::WORDS,
        "an event that is repeated `events` times, for what it costs (crates/exerciser/src/event.rs)",
    ),
    number(
        "events",
        0,
        0,
        MANY,
        "how often; rounded up to a multiple of 16 where it is one instruction",
    ),
    number(
        "calls",
        0,
        0,
        MANY,
        "system calls from user mode, each of which takes a lock",
    ),
    number("locks", 0, 0, MANY, "lock sections"),
    number("hold", 100, 0, MANY, "turns inside each lock section"),
    number("lock-count", 1, 1, MOST_LOCKS, "locks to choose from"),
    word(
        "lock",
        &["ticket", "swap", "queue"],
        "how harts queue for a lock: the first come is served first, looking at one word; whoever looks first; the first come, each at a word of its own",
    ),
    word(
        "spin",
        &["wrs", "pause", "pause-loop", "call", "busy"],
        "how a spinning hart waits between two looks: LR and WRS.NTO, PAUSE, PAUSE in Linux's loop of a few instructions (without `request-one-in`), the hypervisor's spin call, or nothing",
    ),
    number(
        "partner-one-in",
        0,
        0,
        MANY,
        "one step in so many waits for a partner's process to complete; 0: none",
    ),
    number(
        "request-one-in",
        0,
        0,
        MANY,
        "one step in so many has a partner carry out a process; 0: none",
    ),
    number("process", 200, 0, MANY, "turns of such a process"),
    number("reads", 0, 0, MANY, "block reads, each waited for"),
    number(
        "sectors",
        8,
        1,
        MOST_SECTORS,
        "size of a block read in sectors of 512 bytes",
    ),
    number(
        "buffers",
        1,
        1,
        MOST_SECTORS,
        "buffers of a block read; the sectors are divided among them, and what is left over is not read",
    ),
    word(
        "trigger",
        &["level", "edge"],
        "what makes an interrupt of the disk's wire: its level, for which the APLIC is told each time, or a rising edge, as Debian's driver has it",
    ),
    word(
        "notify",
        &["always", "asked"],
        "whether the disk is told of each read, or of those that it asks for (VIRTIO_F_EVENT_IDX, or the flag of its ring), as Debian's driver has it",
    ),
    word(
        "read-error",
        &["fail", "retry"],
        "what follows a read that the disk could not do: the run fails, or the read is tried again",
    ),
    number(
        "spin-limit",
        0,
        0,
        MANY,
        "looks after which a spin is excessive; 0: never",
    ),
    number(
        "spin-limit-ms",
        0,
        0,
        MANY,
        "milliseconds after which a spin is excessive; 0: never",
    ),
    word(
        "expire",
        &["count", "offline", "fail"],
        "what follows an excessive spin: it is counted, the processor is put off-line after its step, or the run fails",
    ),
    number(
        "seed",
        1,
        0,
        u64::MAX,
        "what everything random follows from; `compare` and `sweep` give each start phase its own",
    ),
    word(
        "allocation",
        &["ignore", "code"],
        "whether the hypervisor is asked at the start how it allocates processors, and spins follow that",
    ),
];

/// The parameters' names.
pub const PARAMETERS: [&str; REFERENCE.len()] = {
    let mut names = [""; REFERENCE.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = REFERENCE[index].name;
        index += 1;
    }
    names
};

/// The most terminals.
pub const MOST_TERMINALS: u64 = 1024;
/// The most locks.
pub const MOST_LOCKS: u64 = 64;
/// The most address spaces.
pub const MOST_SPACES: u64 = 64;
/// The most pages of one: a table of the last level.
pub const MOST_PAGES: u64 = 512;
/// The most sectors of one read: one page.
pub const MOST_SECTORS: u64 = 8;

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
            touches: number("touches")?,
            spaces: number("spaces")?,
            pages: number("pages")?,
            fence_one_in: number("fence-one-in")?,
            remote_fence_one_in: number("remote-fence-one-in")?,
            identifiers: number("identifiers")? != 0,
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
            asks_allocation: arguments.choice(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_is_not_given_is_nothing() {
        let arguments = Arguments::parse("exercise=work").unwrap();
        let workload = Workload::parse(&arguments).unwrap();
        assert_eq!(
            (
                workload.locks,
                workload.reads,
                workload.partner_one_in,
                workload.spin_limit
            ),
            (0, 0, 0, 0)
        );
        assert_eq!(workload.spin, SpinMethod::WaitOnReservation);
    }

    #[test]
    fn the_reference_says_what_is_taken() {
        for parameter in REFERENCE {
            let name = parameter.name;
            let takes = |value: &str| {
                let line = format!("exercise=work {name}={value}");
                Workload::parse(&Arguments::parse(&line).unwrap()).is_ok()
            };
            match parameter.takes {
                Takes::Word(words) => {
                    assert!(words.iter().all(|word| takes(word)), "{name}");
                    assert!(!takes("none-of-these"), "{name}");
                }
                // The exercise itself reads how many harts there are.
                Takes::Number { .. } if name == "harts" => {}
                Takes::Number { low, high, .. } => {
                    assert!(
                        takes(&low.to_string()) && takes(&high.to_string()),
                        "{name}"
                    );
                    assert!(
                        high == u64::MAX || !takes(&(high + 1).to_string()),
                        "{name}"
                    );
                    assert!(low == 0 || !takes(&(low - 1).to_string()), "{name}");
                }
            }
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for line in [
            "spin=wfi",
            "lock=fair",
            "terminals=0",
            "expire=now",
            "sectors=9",
            "lock-count=65",
        ] {
            let arguments = Arguments::parse(line).unwrap();
            assert!(Workload::parse(&arguments).is_err(), "{line}");
        }
    }

    #[test]
    fn think_times_are_exponential() {
        let mut random = Random::new(3);
        let times: Vec<u64> = (0..100_000)
            .map(|_| think_time(1000, random.next()))
            .collect();
        let mean = times.iter().sum::<u64>() / 100_000;
        assert!((920..=1080).contains(&mean), "{mean}");
        // A share 1/e of an exponential's values exceed its mean.
        let above = times.iter().filter(|&&time| time > 1000).count();
        assert!((34_000..40_000).contains(&above), "{above}");
        assert!(times.iter().all(|&time| time <= 12_000));
    }

    /// Every parameter file of the experiments is one that the exerciser takes, and every system's command line
    /// is one of these files.
    #[test]
    fn the_experiments_files_are_right() {
        let experiments =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for paper in ["paper-000", "paper-002"] {
            let paper = experiments.join(paper);
            let files = |kind: &str| -> Vec<(std::path::PathBuf, String)> {
                let folders = [paper.clone(), paper.join("workloads")];
                let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
                let paths = entries.flatten().map(|entry| entry.unwrap().path());
                let of_kind =
                    paths.filter(|path| path.extension().is_some_and(|name| name == kind));
                of_kind
                    .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
                    .collect()
            };
            let mut lines = Vec::new();
            for (path, text) in files("args") {
                let words = text
                    .lines()
                    .map(|line| line.split('#').next().unwrap_or(""));
                let line: Vec<&str> = words.flat_map(str::split_whitespace).collect();
                let line = line.join(" ");
                let arguments = Arguments::parse(&line).unwrap();
                assert_eq!(arguments.get("exercise"), Some("work"), "{path:?}");
                let known: Vec<&str> = PARAMETERS.iter().copied().chain(["exercise"]).collect();
                arguments.only(&known).unwrap();
                Workload::parse(&arguments).unwrap();
                lines.push(line);
            }
            let systems = files("toml");
            assert!(!lines.is_empty() && !systems.is_empty(), "{paper:?}");
            for (path, text) in systems {
                let command_lines = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("command-line = \"")?.strip_suffix('"'));
                for line in command_lines.filter(|line| line.starts_with("exercise=")) {
                    assert!(lines.iter().any(|known| known == line), "{path:?}: {line}");
                }
            }
        }
    }
}
