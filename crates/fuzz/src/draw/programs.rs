//! Programs of hostile guests.

use super::words::pick;
use crate::case::Program;
use exerciser::random::Random;

/// Parts of the exercise `hostile`.
const HOSTILE: [&str; 15] = [
    "counters",
    "sbi",
    "csr",
    "instructions",
    "addresses",
    "misaligned",
    "tables",
    "ipi",
    "files",
    "suspend",
    "waits",
    "storms",
    "console",
    "fences",
    "hsm",
];

/// Things that the exercise `storm` does without a disk, and with one.
const STORMS: [&str; 3] = ["kicks", "console", "calls"];
const DISK_STORMS: [&str; 3] = ["reads", "refused", "notifications"];

/// A program for a guest of so many vCPUs.
pub fn draw(random: &mut Random, vcpus: u64, is_paged: bool, has_disk: bool) -> Program {
    let seed = ("seed", random.below(1 << 20).to_string());
    match random.below(18) {
        0 | 1 if has_disk => {
            let rounds = 32 + random.below(64);
            let gives_back = if is_paged && random.one_in(2) {
                "yes"
            } else {
                "no"
            };
            let options = [
                seed,
                ("rounds", rounds.to_string()),
                ("give-back", String::from(gives_back)),
            ];
            Program::new("descriptors", &options)
        }
        2 if is_paged => {
            let rounds = 200 + random.below(800);
            let options = [
                seed,
                ("rounds", rounds.to_string()),
                ("pages", String::from("64")),
            ];
            Program::new("free-pages", &options)
        }
        3 if vcpus > 1 => {
            let via = pick(random, &["imsic", "sbi"]);
            let count = 20 + random.below(200);
            let options = [
                ("via", via),
                ("count", count.to_string()),
                // No timer heals a wake that is lost.
                ("limit-ms", String::from("0")),
            ];
            Program::new("ipi", &options)
        }
        4 => Program::new("reboot", &[("delay-ms", random.below(12).to_string())]),
        5 => {
            let rounds = 50 + random.below(200);
            Program::new("translations", &[seed, ("rounds", rounds.to_string())])
        }
        6 => {
            let of = match has_disk && random.one_in(2) {
                true => pick(random, &DISK_STORMS),
                false => pick(random, &STORMS),
            };
            let sleep = random.pick(&[0, 20, 100, 1000]);
            let options = [
                ("of", of),
                ("duration-ms", String::from("60")),
                ("sleep-us", sleep.to_string()),
            ];
            Program::new("storm", &options)
        }
        7..9 => {
            let count = 200 + random.below(3000);
            Program::new("fuzz", &[seed, ("count", count.to_string())])
        }
        9..14 => {
            let events = 300 + random.below(2000);
            Program::new("mixture", &[seed, ("events", events.to_string())])
        }
        _ => {
            let options = [
                seed,
                ("test", pick(random, &HOSTILE)),
                ("calls", String::from("300")),
                ("storm-ms", String::from("20")),
                ("rounds", String::from("10")),
            ];
            Program::new("hostile", &options)
        }
    }
}

/// Another program for a guest: what a hart has must be its own, and still be there when the hart comes back.
pub fn draw_more(random: &mut Random) -> Program {
    let seed = ("seed", random.below(1 << 20).to_string());
    let rounds = (10 + random.below(60)).to_string();
    if random.one_in(4) {
        return Program::new("timer", &[seed, ("count", rounds)]);
    }
    let away = random.pick(&[50, 300, 2000]).to_string();
    // Without a profile a hart may be a quantum of 1,000 cycles, which are ten ticks, behind what another one has done.
    let clock = ("clock-ticks", String::from("20"));
    Program::new(
        "state",
        &[seed, ("rounds", rounds), ("away-us", away), clock],
    )
}
