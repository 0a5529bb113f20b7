//! Systems drawn from a seed.

use super::guest::Guest;
use exerciser::random::Random;
use std::ops::Range;

/// Machine cycles of a hart in which a drawn system works, within the limits below.
const CYCLES: u64 = 150_000_000;
/// Limits of a run's work in milliseconds of machine time: slices must end a few times on a fast computer, and many windows of
/// 20 ms must lie in it on a slow one.
const MIN_MS: u64 = 120;
const MAX_MS: u64 = 600;

/// Names of a drawn system's VMs, of which it has the first few.
pub(super) const VM_NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// How long a drawn system works on a machine of so many cycles a second.
pub fn milliseconds(hertz: u64) -> u64 {
    (CYCLES / (hertz / 1000).max(1)).clamp(MIN_MS, MAX_MS)
}

/// A system that was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// Its name, a function of seed and number.
    pub name: String,
    /// Harts.
    pub harts: u64,
    /// Its VMs.
    pub guests: Vec<Guest>,
    /// How long it works.
    pub milliseconds: u64,
}

/// The system with this number out of those of a seed. Systems do not depend on how many are drawn.
pub fn draw(seed: u64, number: u64, milliseconds: u64) -> Drawn {
    let mut random = Random::stream(seed, number);
    let harts = 2 + random.below(3);
    let vms = 2 + random.below(3);
    let equal = !random.one_in(3);
    // Most VMs of a system do the same kind of work, as of one owner; in some, each does its own.
    let mixed = random.one_in(2);
    let first = Guest::draw(&mut random, harts);
    let mut guests = Vec::new();
    for _ in 0..vms {
        let mut guest = match mixed {
            true => Guest::draw(&mut random, harts),
            false => first.clone(),
        };
        guest.share = match equal {
            true => 100,
            false => random.pick(&[50, 100, 200]),
        };
        guests.push(guest);
    }
    if random.one_in(4)
        && let Some(last) = guests.last_mut()
    {
        *last = Guest::neighbour(&mut random, last.share);
    }
    Drawn {
        name: format!("random-{seed}-{number}"),
        harts,
        guests,
        milliseconds,
    }
}

impl Drawn {
    /// The system file.
    pub fn text(&self) -> String {
        self.text_of(&self.name, 0..self.guests.len())
    }

    /// The system file of one of its VMs alone, with the name of that system; `None` if there is no such VM.
    pub fn alone(&self, vm: usize) -> Option<(String, String)> {
        let name = VM_NAMES.get(vm).filter(|_| vm < self.guests.len())?;
        let name = format!("{}-{name}", self.name);
        let text = self.text_of(&name, vm..vm + 1);
        Some((name, text))
    }

    fn text_of(&self, name: &str, vms: Range<usize>) -> String {
        let mut text = format!(
            "# Drawn by `partita compare --random`: {name}.\n\nharts = {}\nmemory = \"1 GiB\"\nguest-interrupt-files = 7\n\
             spin = \"reservation\"\nwait = \"self-wait\"\ntime-limit = \"1 min\"\n",
            self.harts
        );
        let guests = self.guests.iter().zip(VM_NAMES);
        for (guest, name) in guests.take(vms.end).skip(vms.start) {
            text += &format!(
                "\n[vm.{name}]\nvcpus = {}\nmemory = \"64 MiB\"\nshare = {}\nkernel = \"image:exerciser\"\n\
                 command-line = \"{}\"\n",
                guest.vcpus,
                guest.share,
                guest.command_line(self.milliseconds)
            );
            if guest.reads > 0 {
                text += "disks = [{ file = \"image:debian/disk\" }]\n";
            }
        }
        text
    }
}
