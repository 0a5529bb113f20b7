//! Anything in any order: guests ask and reset, the program works, lies, and begins anew, harts leave late. Each request ends at most once, no hart reaches
//! the pages of one that has ended, and an honest program ends all of them at last.

use std::collections::BTreeSet;

use super::*;
use splitmix::SplitMix64;

/// Translations that another hart of the serving VM has cached, and the state of one run.
struct Run {
    world: World,
    guests: Vec<Guest>,
    program: Program,
    random: SplitMix64,
    /// Requests under way, by guest.
    open: Vec<BTreeSet<u16>>,
    resetting: Vec<bool>,
    known: Vec<Asked>,
    cached: BTreeSet<u64>,
    starting: bool,
    ended: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let (world, mut guests) = served_system(&[10, 30]);
        assert!(start(&world, &mut guests));
        Self {
            world,
            guests,
            program: Program::default(),
            random: SplitMix64::new(seed),
            open: vec![BTreeSet::new(); 2],
            resetting: vec![false; 2],
            known: Vec::new(),
            cached: BTreeSet::new(),
            starting: false,
            ended: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// The other hart enters its guest anew, and caches what it finds.
    fn enter(&mut self) {
        self.world
            .used_generation
            .set(Some(self.world.generation.get()));
        self.cached = granted(&self.world).iter().map(|(_, at, _)| *at).collect();
    }

    fn step(&mut self) {
        let guest = self.below(2) as usize;
        match self.below(12) {
            0..4 if !self.resetting[guest] => {
                let number = self.below(REQUESTS.into()) as u16;
                if self.open[guest].insert(number) {
                    let sector = self.below(64);
                    let request = if self.below(2) == 0 {
                        read(sector)
                    } else {
                        write(sector)
                    };
                    ask(&self.world, &mut self.guests[guest], number, request);
                }
            }
            4 | 5 => {
                let asked = self.program.all(&self.world);
                self.known.extend(asked);
            }
            6 if !self.known.is_empty() => {
                let place = self.below(self.known.len() as u64) as usize;
                // Known requests are kept: the same answer comes again and again, in later lives, too.
                let asked = self.known[place].clone();
                self.program.answer(&self.world, &asked);
            }
            7 => {
                let answer = [
                    self.below(40),
                    self.below(200),
                    self.below(4),
                    self.below(600),
                ];
                self.program
                    .put(&self.world, answer.map(|value| value as u32));
            }
            8 => {
                let _ = ring_doorbell(&self.world, &mut self.guests);
            }
            9 => self.enter(),
            10 if self.below(6) == 0 || self.resetting[guest] => {
                self.resetting[guest] = !self.guests[guest].reset(&self.world);
                if !self.resetting[guest] {
                    self.guests[guest].start(&self.world);
                    self.open[guest].clear();
                }
            }
            11 if self.below(8) == 0 || self.starting => {
                if !self.starting {
                    stop(&self.world);
                }
                self.starting = !start(&self.world, &mut self.guests);
                if !self.starting {
                    self.program = Program::default();
                }
            }
            _ => {}
        }
        self.check();
    }

    /// Takes what has ended, and checks that nobody reaches what is not under way.
    fn check(&mut self) {
        for guest in 0..2 {
            if self.resetting[guest] {
                continue;
            }
            while let Some((number, _)) = self.guests[guest].take_completion(&self.world) {
                assert!(self.open[guest].remove(&number), "ended once");
                self.ended += 1;
            }
        }
        // The data may lie on both sides of a page's end.
        let pages = |guest: usize, number: u16| {
            let ends = [0, 511].map(|offset| Guest::data(number) + offset);
            ends.map(|at| self.guests[guest].place(at) & !0xfff)
        };
        let mut reachable = BTreeSet::new();
        for guest in 0..2 {
            let open = self.open[guest].iter();
            reachable.extend(open.flat_map(|number| pages(guest, *number)));
            if self.resetting[guest] {
                // Its pages are its own again when the reset is done.
                reachable.extend((0..REQUESTS).flat_map(|number| pages(guest, number)));
            }
        }
        for (_, at, _) in granted(&self.world) {
            assert!(reachable.contains(&at), "{at:#x} is granted");
        }
        for at in &self.cached {
            assert!(reachable.contains(at), "{at:#x} is cached");
        }
    }

    /// From here on the program is honest and the harts enter their guest as they are told.
    fn finish(&mut self) {
        self.enter();
        stop(&self.world);
        self.enter();
        for guest in 0..2 {
            if self.resetting[guest] {
                assert!(self.guests[guest].reset(&self.world));
                self.guests[guest].start(&self.world);
                (self.resetting[guest], self.open[guest]) = (false, BTreeSet::new());
            }
        }
        assert!(start(&self.world, &mut self.guests));
        self.program = Program::default();
        for _ in 0..4 * REQUESTS {
            for asked in self.program.all(&self.world) {
                Program::carry_out(&self.world, &asked);
                self.program.answer(&self.world, &asked);
            }
            while !ring_doorbell(&self.world, &mut self.guests) {
                self.enter();
            }
            self.enter();
            self.check();
        }
        assert!(self.open.iter().all(BTreeSet::is_empty), "{:?}", self.open);
        assert_eq!(granted(&self.world), []);
    }
}

#[test]
fn any_order_keeps_every_promise() {
    let (runs, steps) = (60, 800);
    let mut ended = 0;
    for seed in 0..runs {
        let mut run = Run::new(seed);
        for _ in 0..steps {
            run.step();
        }
        run.finish();
        ended += run.ended;
    }
    assert!(ended > 1000, "{ended} ended");
}
