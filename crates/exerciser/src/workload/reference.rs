//! The words of `work`'s command line: what each takes, and what it is.

use crate::event::Event;

/// Values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A whole number.
    Number {
        /// Value if the parameter is not given.
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
    /// Meaning, in one sentence.
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

/// Bound of numbers that have no other.
const MANY: u64 = 1 << 40;

/// The parameters of `work`.
pub const REFERENCE: [Parameter; 36] = [
    number("harts", 0, 0, MANY, "harts that work; 0 is all"),
    number(
        "terminals",
        4,
        1,
        MAX_TERMINALS,
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
        "vectors",
        0,
        0,
        MANY,
        "writes of all vector registers, before the turns; 0: the registers are never used",
    ),
    number(
        "references",
        0,
        0,
        MANY,
        "references to memory, each to a word of one of the pages of the job's address space",
    ),
    number(
        "spaces",
        0,
        0,
        MAX_SPACES,
        "address spaces, which the jobs share out among them; 0: addresses are not translated",
    ),
    number(
        "pages",
        64,
        1,
        MAX_PAGES,
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
        "asids",
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
    number("lock-count", 1, 1, MAX_LOCKS, "locks to choose from"),
    word(
        "lock",
        &["ticket", "swap", "queue"],
        "order in which harts get a lock: as they came, all polling one word; the first that polls; as they came, each polling a word of its own",
    ),
    word(
        "spin",
        &["wrs", "pause", "pause-loop", "call", "busy"],
        "how a spinning hart waits between two polls: LR and WRS.NTO, PAUSE, PAUSE in Linux's loop of a few instructions (without `request-one-in`), the hypervisor's spin call, or nothing",
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
        MAX_SECTORS,
        "size of a block read in sectors of 512 bytes",
    ),
    number(
        "buffers",
        1,
        1,
        MAX_SECTORS,
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
        "polls after which a spin is excessive; 0: never",
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
pub const MAX_TERMINALS: u64 = 1024;
/// The most locks.
pub const MAX_LOCKS: u64 = 64;
/// The most address spaces.
pub const MAX_SPACES: u64 = 64;
/// The most pages of one: a table of the last level.
pub const MAX_PAGES: u64 = 512;
/// The most sectors of one read: one page.
pub const MAX_SECTORS: u64 = 8;
