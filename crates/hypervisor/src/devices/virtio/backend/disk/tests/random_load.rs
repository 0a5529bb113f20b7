//! Random load of three guests, checked against what each of their sectors must hold.

use super::guest::*;
use super::world::*;
use super::{FLUSH, FLUSH_REQUEST, outcome, random};

/// Guests with a reference beside each.
struct Load {
    world: World,
    guests: Vec<Guest>,
    /// By guest and sector: the byte that fills the sector.
    expected: Vec<Vec<u8>>,
    /// By guest and request: the requests in flight.
    in_flight: Vec<[Option<BlockRequest>; REQUESTS as usize]>,
}

impl Load {
    fn new(shares: [u32; 3]) -> Self {
        let (world, guests) = system(&shares, FLUSH);
        let sectors = |guest: usize| (0..SECTORS).map(move |at| (first_of(guest) + at) as u8);
        Self {
            world,
            guests,
            expected: (0..3).map(|guest| sectors(guest).collect()).collect(),
            in_flight: vec![[None; REQUESTS as usize]; 3],
        }
    }

    /// Makes a random request of the guest available, unless its number or its sector is in use.
    fn ask(&mut self, number: usize, random: &mut impl FnMut(u64) -> u64) {
        let request = random(REQUESTS.into()) as u16;
        let sector = random(SECTORS);
        let in_flight = &mut self.in_flight[number];
        let mut others = in_flight.iter().flatten();
        if in_flight[usize::from(request)].is_some() || others.any(|other| other.sector == sector) {
            return;
        }
        let wanted = match random(8) {
            0 => BlockRequest {
                sector,
                ..FLUSH_REQUEST
            },
            1..4 => write(sector),
            _ => read(sector),
        };
        let guest = &mut self.guests[number];
        if wanted.kind == 1 {
            let value = random(256) as u8;
            guest.write(&self.world, Guest::data(request), &[value; 512]);
            self.expected[number][sector as usize] = value;
        }
        guest.ask(&self.world, request, wanted);
        in_flight[usize::from(request)] = Some(wanted);
        if random(3) == 0 {
            guest.notify(&self.world);
        }
    }

    /// Completes a random operation of the disk, if it has one.
    fn complete(&mut self, random: &mut impl FnMut(u64) -> u64) {
        let given = self.world.operations.borrow().len() as u64;
        if given == 0 {
            return;
        }
        let failing = random(10) == 0;
        let which = random(given) as usize;
        let kind = self.world.operations.borrow()[which].kind;
        // An error of a write leaves the sector as it was, which the reference would have to know.
        self.world.complete(which, u8::from(failing && kind != 1));
        if random(2) == 0 {
            serve(&self.world, &mut self.guests);
        }
    }

    /// Takes the guest's completions and compares what was read.
    fn check_completions(&mut self, number: usize) {
        let guest = &mut self.guests[number];
        while let Some((request, written)) = guest.take_completion(&self.world) {
            let wanted = self.in_flight[number][usize::from(request)].take();
            let wanted = wanted.expect("a request completes once");
            let status = guest.status(&self.world, request);
            assert!(status <= 1);
            if wanted.kind == 0 && status == outcome::OK {
                assert_eq!(written, 513);
                let expected = self.expected[number][wanted.sector as usize];
                let data = guest.read::<512>(&self.world, Guest::data(request));
                assert_eq!(data, [expected; 512]);
            }
        }
    }

    /// Checks that every request completes.
    fn finish(&mut self) {
        for guest in &mut self.guests {
            guest.notify(&self.world);
        }
        serve(&self.world, &mut self.guests);
        while !self.world.operations.borrow().is_empty() {
            self.world.complete(0, 0);
            serve(&self.world, &mut self.guests);
        }
        for (guest, in_flight) in self.guests.iter_mut().zip(&mut self.in_flight) {
            while let Some((request, _)) = guest.take_completion(&self.world) {
                let wanted = in_flight[usize::from(request)].take();
                assert!(wanted.is_some(), "a request completes once");
            }
            assert!(in_flight.iter().all(Option::is_none), "a request is lost");
        }
    }

    /// Checks that no sector outside of the slices was written.
    fn check_sectors_between(&self) {
        for (sector, bytes) in self.world.sectors.borrow().iter().enumerate() {
            let is_of = |guest| {
                let first = first_of(guest);
                (first..first + SECTORS).contains(&(sector as u64))
            };
            if !(0..3).any(is_of) {
                assert_eq!(*bytes, [sector as u8; 512]);
            }
        }
    }
}

/// Reads, writes, flushes and failing operations in any order.
#[test]
fn sectors_stay_separate_under_random() {
    for seed in 0..60 {
        let mut random = random(seed);
        let shares = std::array::from_fn(|_| 1 + random(50) as u32);
        let mut load = Load::new(shares);
        for _ in 0..1500 {
            let number = random(3) as usize;
            match random(8) {
                0..4 => load.ask(number, &mut random),
                4..7 => load.complete(&mut random),
                _ => load.guests[number].notify(&load.world),
            }
            load.check_completions(number);
        }
        load.finish();
        load.check_sectors_between();
    }
}
