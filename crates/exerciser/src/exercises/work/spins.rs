//! The spins of paper 000 §2.2: to get a lock, to wait for a partner's process, to wait for a process that a
//! partner was asked to carry out. All spin with interrupts closed, each with a count that can expire.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use exerciser::workload::{Expiry, SpinMethod, Workload};

use super::Totals;
use crate::arch::{csr, locks, sbi};
use crate::board::board;
use crate::harts::Hart;
use crate::interrupts::SERVE;

/// Turns of the process that a partner is asked for.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// A hart's side of the second and third spin.
#[derive(Debug)]
#[repr(align(64))]
pub struct Partner {
    /// Odd while its process runs.
    process: AtomicU32,
    /// Processes asked of it, and carried out.
    asked: AtomicU32,
    served: AtomicU32,
}

impl Partner {
    pub const fn new() -> Self {
        Self {
            process: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            served: AtomicU32::new(0),
        }
    }
}

static PARTNERS: [Partner; crate::board::MAX_HARTS] =
    [const { Partner::new() }; crate::board::MAX_HARTS];

fn partner(hart: &Hart) -> Option<&'static Partner> {
    PARTNERS.get(hart.index())
}

/// Carries out what others ask of this hart: called by the interrupt, and from within every spin, as spins
/// are closed for interrupts and two harts may ask each other.
pub fn serve(hart: &Hart) {
    let Some(mine) = partner(hart) else { return };
    let asked = mine.asked.load(Ordering::Acquire);
    if mine.served.load(Ordering::Relaxed) != asked {
        locks::turn(PROCESS.load(Ordering::Relaxed));
        mine.served.store(asked, Ordering::Release);
    }
}

/// Tests whether the hypervisor below has Partita's own calls, that for spins among them. KVM is not asked: it leaves a vendor's extensions to
/// the program that started the VM, and QEMU 10.0 ends the VM for such a question.
pub fn has_vendor_calls() -> bool {
    let extension = abi::sbi::EXTENSION as u64;
    sbi::implementation() != riscv::sbi::base::KVM
        && sbi::probe(extension)
        && sbi::call(extension, abi::sbi::Function::Version.id() as u64, [0; 6]).value >> 32
            == abi::sbi::SIGNATURE
}

/// One hart's spinning.
#[derive(Debug)]
pub struct Spinner<'a> {
    hart: &'a Hart,
    method: SpinMethod,
    limit: u64,
    limit_ticks: u64,
    expiry: Expiry,
    /// Set when a count expired and the processor is to go off-line.
    expired: &'a AtomicBool,
}

impl<'a> Spinner<'a> {
    pub fn new(workload: &Workload, hart: &'a Hart, expired: &'a AtomicBool) -> Self {
        PROCESS.store(workload.process, Ordering::Relaxed);
        let method = match workload.spin {
            SpinMethod::Call if !has_vendor_calls() => SpinMethod::Pause,
            SpinMethod::PauseLoop if workload.request_one_in > 0 => SpinMethod::Pause,
            SpinMethod::WaitOnReservation if !board().has("zawrs") => SpinMethod::Pause,
            method => method,
        };
        let forever = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        Self {
            hart,
            method,
            limit: forever(workload.spin_limit),
            limit_ticks: forever(board().ticks(workload.spin_limit_ms * 1000)),
            expiry: workload.expire,
            expired,
        }
    }

    /// Spins until `word` is as `is_over` wants it.
    pub fn wait(&mut self, word: &AtomicU32, totals: &mut Totals, is_over: impl Fn(u32) -> bool) {
        self.spin(word, None, totals, is_over);
    }

    /// Spins until the ticket lock `word` serves `ticket`.
    pub fn wait_for_ticket(&mut self, word: &AtomicU32, ticket: u32, totals: &mut Totals) {
        self.spin(word, Some(ticket), totals, |word| word & 0xffff == ticket);
    }

    fn spin(
        &mut self,
        word: &AtomicU32,
        ticket: Option<u32>,
        totals: &mut Totals,
        is_over: impl Fn(u32) -> bool,
    ) {
        let (start, mut looks, mut is_excessive) = (csr::time(), 0, false);
        totals.contended += 1;
        loop {
            let seen = word.load(Ordering::Acquire);
            if is_over(seen) {
                break;
            }
            looks += 1;
            serve(self.hart);
            match self.method {
                SpinMethod::WaitOnReservation => match ticket {
                    Some(ticket) => locks::wait_for_ticket(word, seen, ticket),
                    None => locks::wait_on_reservation(word, seen),
                },
                SpinMethod::Pause => csr::pause(),
                SpinMethod::PauseLoop => match ticket {
                    Some(ticket) => locks::pause_for_ticket(word, ticket),
                    None => locks::pause_while(word, seen),
                },
                SpinMethod::Call => {
                    let address = word.as_ptr().addr() as u64;
                    let function = abi::sbi::Function::Spin.id() as u64;
                    sbi::call(
                        abi::sbi::EXTENSION as u64,
                        function,
                        [
                            address,
                            u64::from(seen),
                            ticket.map_or(u64::MAX, |ticket| u64::from(ticket & 0xffff)),
                            0,
                            0,
                            0,
                        ],
                    );
                }
                SpinMethod::Busy => {}
            }
            if !is_excessive && (looks >= self.limit || csr::time() - start >= self.limit_ticks) {
                is_excessive = true;
                totals.excessive += 1;
                if self.expiry == Expiry::OffLine {
                    self.expired.store(true, Ordering::Relaxed);
                }
            }
        }
        totals.looks.add(looks);
    }

    /// Runs this hart's own process, for which partners may wait.
    pub fn run_process(&self, turns: u64) {
        if let Some(mine) = partner(self.hart) {
            mine.process.fetch_add(1, Ordering::AcqRel);
            locks::turn(turns);
            mine.process.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Waits for the process that `other` runs at the moment, if it does (Fig. 2 of the paper).
    pub fn wait_for_process(&mut self, other: &Hart, totals: &mut Totals) {
        let Some(theirs) = partner(other) else { return };
        let seen = theirs.process.load(Ordering::Acquire);
        if seen & 1 == 1 {
            let start = csr::time();
            self.wait(&theirs.process, totals, |word| word != seen);
            totals.wait[1].add(board().nanoseconds(csr::time() - start));
        }
    }

    /// Has `other` carry out a process, and waits for its end (Fig. 3).
    pub fn request(&mut self, other: &Hart, totals: &mut Totals) {
        let Some(theirs) = partner(other) else { return };
        let number = theirs.asked.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let start = csr::time();
        other.send(SERVE);
        self.wait(&theirs.served, totals, |served| {
            served.wrapping_sub(number).cast_signed() >= 0
        });
        totals.wait[2].add(board().nanoseconds(csr::time() - start));
    }
}
