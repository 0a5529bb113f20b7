//! `partita-serve-hostile`: a serving program that lies, for tests. It answers what it was not asked, twice, late, wrong and never, touches
//! what it was not granted, writes its configuration space at random and begins new lives all the time. At the end it says how often its
//! accesses succeeded where nothing was granted; `partita-guest result workload=hostile ok=yes` is none.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
serve::entry!(program::run);

/// The program.
#[cfg(target_os = "none")]
mod program {
    use core::ffi::CStr;
    use core::sync::atomic::{AtomicU32, Ordering};

    use abi::serve::{SLOT_BYTES, SLOTS, WINDOW_BYTES, register, request, ring};
    use serve::device::{Device, Unusable};
    use serve::linux;
    use serve::request::Request;
    use serve::say;

    /// Honest answers that are given, and rounds after which too few were asked for.
    const HONEST: u32 = 1000;
    const MAX_ROUNDS: u32 = 100_000;
    /// Bytes of the disk that it keeps in its memory, for honest answers.
    const FILL: u32 = 0x5a5a_5a5a;

    struct Hostile {
        device: Device,
        random: u64,
        seen: u32,
        answered: u32,
        lies: u32,
        honest: u32,
        breaches: u32,
        died: u32,
        shared: &'static AtomicU32,
    }

    /// Runs the program; its exit status.
    pub fn run(_: impl Iterator<Item = &'static CStr>) -> u8 {
        let device = match Device::open() {
            Ok(device) => device,
            Err(Unusable(what, number)) => {
                say!("{what} ({number})");
                return 1;
            }
        };
        let Ok(shared) = linux::common(4096) else {
            return 1;
        };
        let mut hostile = Hostile {
            device,
            random: 1,
            seen: 0,
            answered: 0,
            lies: 0,
            honest: 0,
            breaches: 0,
            died: 0,
            // SAFETY: the memory is zeroed, aligned to a page, stays, and holds nothing else.
            shared: unsafe { &*shared.cast::<AtomicU32>() },
        };
        hostile.start();
        for _ in 0..MAX_ROUNDS {
            hostile.step();
            if hostile.honest >= HONEST {
                break;
            }
        }
        hostile.report()
    }

    impl Hostile {
        fn below(&mut self, bound: u32) -> u32 {
            // An xorshift of 64 bits (Marsaglia 2003).
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 33) as u32 % bound
        }

        fn start(&mut self) {
            self.device.set_register(register::START, 1);
            (self.seen, self.answered) = (0, 0);
        }

        fn ring(&self, offset: u64) -> u32 {
            u32::from_le(self.device.rings.word(offset).load(Ordering::SeqCst))
        }

        fn set_ring(&self, offset: u64, value: u32) {
            let word = self.device.rings.word(offset);
            word.store(value.to_le(), Ordering::SeqCst);
        }

        fn answer(&mut self, answer: [u32; 4]) {
            let place = ring::ANSWER_BYTES * u64::from(self.answered % SLOTS as u32);
            for (offset, value) in (0..).step_by(4).zip(answer) {
                self.set_ring(ring::ANSWERS + place + offset, value);
            }
            self.answered = self.answered.wrapping_add(1);
            self.set_ring(ring::ANSWERED, self.answered);
            self.device.set_register(register::DOORBELL, 0);
        }

        /// Touches a word in a process of its own, which dies where it may not. Returns true if it was there.
        fn touches(&mut self, at: impl FnOnce(&Device) -> &AtomicU32, is_store: bool) -> bool {
            self.shared.store(0, Ordering::SeqCst);
            let Ok(child) = linux::fork() else {
                return false;
            };
            if child {
                let word = at(&self.device);
                if is_store {
                    word.store(FILL, Ordering::SeqCst);
                } else {
                    let _ = word.load(Ordering::SeqCst);
                }
                self.shared.store(1, Ordering::SeqCst);
                linux::exit(0);
            }
            linux::reap();
            let there = self.shared.load(Ordering::SeqCst) != 0;
            self.died += u32::from(!there);
            there
        }

        fn breach(&mut self, at: impl FnOnce(&Device) -> &AtomicU32, is_store: bool) {
            self.breaches += u32::from(self.touches(at, is_store));
        }

        fn step(&mut self) {
            let asked = self.next();
            let anything = [0; 4].map(|_| self.below(u32::MAX));
            self.lies += 1;
            match self.below(40) {
                0 => self.answer(anything),
                1 => {
                    let slot = self.below(SLOTS as u32);
                    self.answer([slot, self.seen, 0, 4096]);
                }
                2 => {
                    let ahead = self.below(u32::MAX);
                    self.set_ring(ring::ANSWERED, ahead);
                    self.device.set_register(register::DOORBELL, 0);
                    self.set_ring(ring::ANSWERED, self.answered);
                }
                3 => {
                    for offset in (ring::ANSWERED..ring::USED_BYTES).step_by(4) {
                        let value = self.below(u32::MAX);
                        self.set_ring(offset, value);
                    }
                    self.device.set_register(register::DOORBELL, 0);
                    self.start();
                }
                4 => self.start(),
                5 => {
                    let offset = u64::from(self.below(64)) * 4;
                    self.device.set_configuration(offset, anything[0]);
                }
                6 => self.device.set_register(register::DOORBELL, anything[1]),
                7 => {
                    let offset = u64::from(self.below(1024)) * 4;
                    self.device.set_register(offset, anything[2]);
                    // It may have been the start.
                    self.start();
                }
                8 => {
                    let offset = u64::from(self.below((ring::READ_ONLY_BYTES / 4) as u32)) * 4;
                    self.breach(|device| device.rings.word(offset), true);
                }
                9 => {
                    // The last page of a slot's part is granted to requests of 256 pages alone.
                    let slot = u64::from(self.below(SLOTS as u32));
                    let offset = (slot + 1) * SLOT_BYTES - 4096;
                    self.breach(
                        |device| device.window.word(offset),
                        self.seen.is_multiple_of(2),
                    );
                }
                10 => {
                    let offset = u64::from(self.below((WINDOW_BYTES / 4) as u32)) * 4;
                    let is_store = self.below(2) == 0;
                    let _ = self.touches(|device| device.window.word(offset), is_store);
                }
                _ => {
                    self.lies -= 1;
                    match asked {
                        Some((slot, request)) => self.treat(slot, request),
                        None => linux::sleep_millisecond(),
                    }
                }
            }
        }

        fn next(&mut self) -> Option<(u32, Request)> {
            if self.ring(ring::ASKED) == self.seen {
                return None;
            }
            let entry = ring::ASKED_SLOTS + 4 * u64::from(self.seen % SLOTS as u32);
            self.seen = self.seen.wrapping_add(1);
            let slot = self.ring(entry);
            let record = u64::from(slot) * ring::REQUEST_BYTES;
            Some((slot, Request::read(|offset| self.ring(record + offset))))
        }

        fn treat(&mut self, slot: u32, request: Request) {
            let Request {
                id, bytes, kind, ..
            } = request;
            let record = u64::from(slot) * ring::REQUEST_BYTES;
            let (offset, _) = Request::piece(0, |offset| self.ring(record + offset));
            let first = u64::from(slot) * SLOT_BYTES + u64::from(offset & !3);
            match self.below(8) {
                // Never.
                0 => {}
                1 => self.answer([slot, id, 0, bytes.wrapping_add(1)]),
                2 => self.answer([slot, id, 77, bytes]),
                3 if kind == 1 => {
                    // Data that is only read must not be written.
                    let is_there = self.touches(|device| device.window.word(first), true);
                    self.judge(is_there, record, id);
                    self.answer([slot, id, 0, bytes]);
                }
                4 if bytes > 0 => {
                    self.answer([slot, id, 0, bytes]);
                    let is_there = self.touches(|device| device.window.word(first), false);
                    self.judge(is_there, record, id);
                    self.answer([slot, id, 0, bytes]);
                }
                _ => {
                    self.honest += 1;
                    self.answer([slot, id, 0, bytes]);
                }
            }
        }

        /// Counts a breach if the slot has the same request as before: another one may have been granted meanwhile.
        fn judge(&mut self, is_there: bool, record: u64, id: u32) {
            let is_same = self.ring(record + request::ID) == id;
            self.breaches += u32::from(is_there && is_same);
        }

        fn report(&self) -> u8 {
            let refused = self.device.register(register::REFUSED);
            let Self {
                lies,
                honest,
                breaches,
                died,
                ..
            } = self;
            say!(
                "{lies} lies, {honest} honest answers, {refused} answers refused, {died} accesses refused, {breaches} breaches"
            );
            u8::from(*breaches > 0)
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!(
        "partita-serve-hostile runs in a guest: build it with --target riscv64gc-unknown-none-elf"
    );
    std::process::exit(2);
}
