//! Work of one VM of a drawn system.

use exerciser::random::Random;

/// Most turns that the lock sections of a job take, so that a run has many jobs.
const MAX_HELD: u64 = 12_000;

/// A VM's work, in the exerciser's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Virtual CPUs.
    pub vcpus: u64,
    /// Its share.
    pub share: u64,
    /// Jobs at once.
    pub terminals: u64,
    /// Mean time between two jobs of a terminal, in microseconds.
    pub think_us: u64,
    /// Turns without a lock.
    pub compute: u64,
    /// Lock sections of a job, the turns of each, and the locks to choose from.
    pub locks: u64,
    /// Turns of each.
    pub hold: u64,
    /// Locks to choose from.
    pub lock_count: u64,
    /// Kind of lock.
    pub kind: &'static str,
    /// How it spins.
    pub spin: &'static str,
    /// Block reads of a job.
    pub reads: u64,
    /// One job in so many waits for a word that is no lock.
    pub partner_one_in: u64,
    /// One job in so many has a partner carry something out.
    pub request_one_in: u64,
}

impl Guest {
    /// Any work, on at most as many vCPUs as a computer of so many harts makes sense of.
    pub fn draw(random: &mut Random, harts: u64) -> Self {
        let hold = between(random, 60, 6300);
        let locks = (1 + random.below(8)).min((MAX_HELD / hold).max(1));
        let thinks = random.one_in(4);
        let waits_for_words = random.one_in(6);
        Self {
            vcpus: 2 + random.below(harts.min(3)),
            share: 100,
            terminals: random.pick(&[4, 8, 16]),
            think_us: match thinks {
                true => between(random, 500, 20_000),
                false => 0,
            },
            compute: between(random, 200, 20_000),
            locks,
            hold,
            lock_count: random.pick(&[1, 1, 2, 4]),
            kind: pick(random, ["ticket", "ticket", "swap", "queue"]),
            spin: pick(random, ["wrs", "wrs", "wrs", "call"]),
            reads: match random.one_in(6) {
                true => 1 + random.below(2),
                false => 0,
            },
            partner_one_in: match waits_for_words {
                true => random.pick(&[1, 2, 4]),
                false => 0,
            },
            request_one_in: match waits_for_words {
                true => random.pick(&[1, 2, 4]),
                false => 0,
            },
        }
    }

    /// One vCPU that computes all the time.
    pub fn neighbour(random: &mut Random, share: u64) -> Self {
        Self {
            vcpus: 1,
            share,
            terminals: 4,
            think_us: 0,
            compute: between(random, 2000, 20_000),
            locks: 0,
            hold: 0,
            lock_count: 1,
            kind: "ticket",
            spin: "wrs",
            reads: 0,
            partner_one_in: 0,
            request_one_in: 0,
        }
    }

    /// The exerciser's command line.
    pub fn command_line(&self, milliseconds: u64) -> String {
        let mut line = format!(
            "exercise=work duration-ms={milliseconds} terminals={} compute={}",
            self.terminals, self.compute
        );
        let more = [
            ("think-us", self.think_us),
            ("reads", self.reads),
            ("partner-one-in", self.partner_one_in),
            ("request-one-in", self.request_one_in),
        ];
        for (word, number) in more.iter().filter(|(_, number)| *number > 0) {
            line += &format!(" {word}={number}");
        }
        line += &format!(" lock={} spin={}", self.kind, self.spin);
        if self.locks > 0 {
            line += &format!(
                " locks={} hold={} lock-count={}",
                self.locks, self.hold, self.lock_count
            );
        }
        line
    }
}

/// A number from `low` to `high`; each factor of two is as likely as another.
fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    let steps = (high / low).ilog2();
    let scale = low << random.below(u64::from(steps) + 1);
    (scale + random.below(scale)).min(high)
}

fn pick<const N: usize>(random: &mut Random, words: [&'static str; N]) -> &'static str {
    let index = random.below(N as u64) as usize;
    words.get(index).copied().unwrap_or("ticket")
}
