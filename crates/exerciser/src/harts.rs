//! The harts: one record each, sleep and wake, messages between them.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arch::{csr, imsic, locks, sandbox, sbi, team};
use crate::board::{MAX_HARTS, board};
use crate::frames;
use crate::interrupts;

/// Frames of a hart's stack.
const STACK_FRAMES: u64 = 16;

/// One hart. The entry code (arch/boot.rs) reads `stack_top`.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Hart {
    pub(crate) stack_top: AtomicU64,
    id: AtomicU64,
    index: AtomicUsize,
    page: AtomicU64,
    sandbox: AtomicU64,
    /// Interrupts taken, by identity.
    pub received: [AtomicU64; interrupts::IDENTITIES],
    /// Timer interrupts taken.
    pub timers: AtomicU64,
    /// Time at which the last timer interrupt was taken.
    pub timer_taken: AtomicU64,
    /// Identities that were sent by SBI, as bits: a software interrupt names none.
    called: AtomicU64,
    /// How many requests this hart has carried out.
    pub answered: AtomicU64,
}

impl Hart {
    const fn new() -> Self {
        Self {
            stack_top: AtomicU64::new(0),
            id: AtomicU64::new(0),
            index: AtomicUsize::new(0),
            page: AtomicU64::new(0),
            sandbox: AtomicU64::new(0),
            received: [const { AtomicU64::new(0) }; interrupts::IDENTITIES],
            timers: AtomicU64::new(0),
            timer_taken: AtomicU64::new(0),
            called: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// The hart id that SBI knows.
    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// The place in the list of harts; 0 is the boot hart.
    pub fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
    }

    /// The page of its interrupt file.
    pub fn page(&self) -> u64 {
        self.page.load(Ordering::Relaxed)
    }

    /// The pages of its sandbox.
    pub fn sandbox(&self) -> u64 {
        self.sandbox.load(Ordering::Relaxed)
    }

    /// Sends it an interrupt: by its interrupt file, or by SBI where it has none or [`send_by_sbi`] was called.
    pub fn send(&self, identity: u64) {
        if self.page() != 0 && !BY_SBI.load(Ordering::Relaxed) {
            imsic::send(self.page(), identity);
            return;
        }
        self.called.fetch_or(1 << (identity & 63), Ordering::AcqRel);
        // Mask bit 0 of the harts from this one on (SBI §3.1).
        let answer = sbi::call(
            riscv::sbi::IPI,
            riscv::sbi::SEND_IPI,
            [1, self.id(), 0, 0, 0, 0],
        );
        if answer.error != 0 {
            crate::start::fail(format_args!(
                "SBI IPI to hart {}: error {}",
                self.id(),
                answer.error
            ));
        }
    }

    /// Takes the identities that were sent by SBI, as bits.
    pub fn take_called(&self) -> u64 {
        self.called.swap(0, Ordering::AcqRel)
    }

    /// How often it has taken an identity.
    pub fn taken(&self, identity: u64) -> u64 {
        self.received
            .get(identity as usize)
            .map_or(0, |count| count.load(Ordering::Acquire))
    }
}

/// True if interrupts go by SBI although there are interrupt files.
static BY_SBI: AtomicBool = AtomicBool::new(false);

/// Sends every interrupt by SBI from now on.
pub fn send_by_sbi() {
    BY_SBI.store(true, Ordering::Relaxed);
}

static HARTS: [Hart; MAX_HARTS] = [const { Hart::new() }; MAX_HARTS];

/// The first `count` harts.
pub fn all(count: usize) -> &'static [Hart] {
    HARTS.get(..count).unwrap_or(&HARTS)
}

/// Fills in the records and makes this hart the first. `None` when memory is out.
pub fn open() -> Option<()> {
    let board = board();
    for index in 0..board.hart_count {
        let (Some(hart), Some(&id), Some(&page)) = (
            HARTS.get(index),
            board.harts.get(index),
            board.pages.get(index),
        ) else {
            break;
        };
        hart.id.store(id, Ordering::Relaxed);
        hart.page.store(page, Ordering::Relaxed);
        hart.index.store(index, Ordering::Relaxed);
        if index > 0 {
            let stack = frames::take_aligned(STACK_FRAMES, frames::FRAME)?;
            hart.stack_top
                .store(stack + STACK_FRAMES * frames::FRAME, Ordering::Release);
        }
    }
    team::set_current(HARTS.first()?);
    interrupts::open();
    Some(())
}

/// Gives each of the first `count` harts a sandbox.
pub fn open_sandboxes(count: usize) -> Option<()> {
    for hart in all(count) {
        if hart.sandbox() == 0 {
            hart.sandbox
                .store(sandbox::Sandbox::make()?.page(), Ordering::Relaxed);
        }
    }
    Some(())
}

/// Entry into safe code of every hart but the first.
pub fn other() -> ! {
    interrupts::open();
    team::follow()
}

/// Runs `work` on the first `count` harts; a hart that does not start is the end of the exercise.
pub fn run(count: usize, work: &(dyn Fn(&'static Hart) + Sync)) {
    if let Err((hart, error)) = team::run(count, work) {
        crate::start::fail(format_args!("hart {hart} did not start: SBI error {error}"));
    }
}

/// How often a wait looks again before it sleeps in between.
const LOOKS: u32 = 256;

/// Waits until `is_over`, with interrupts taken: it spins for a while, then sleeps 50 us at a time, so that
/// harts that share a processor get on.
pub fn wait_until(mut is_over: impl FnMut() -> bool) {
    let mut looks = 0;
    while !is_over() {
        looks += 1;
        if looks < LOOKS {
            csr::take_interrupts();
            csr::pause();
        } else {
            sleep_until(csr::time() + board().ticks(50));
        }
    }
}

/// Waits, with interrupts taken, until `count` harts have come here: only then can each be interrupted.
pub fn meet(place: &AtomicUsize, count: usize) {
    place.fetch_add(1, Ordering::AcqRel);
    wait_until(|| place.load(Ordering::Acquire) >= count);
}

/// Waits with interrupts taken until `time` reaches `deadline` or some interrupt came.
pub fn sleep_until(deadline: u64) {
    set_timer(deadline);
    let enabled = csr::interrupt_enables();
    csr::set_interrupt_enables(enabled | csr::TIMER | csr::EXTERNAL | csr::SOFTWARE);
    csr::wait_for_interrupt();
    csr::take_interrupts();
}

/// Waits as [`sleep_until`] by WRS.NTO, on a word that nobody writes: such a wait has no end but an interrupt (Zawrs, "Wait-on-Reservation-Set").
pub fn wait_on_reservation_until(deadline: u64) {
    let word = AtomicU32::new(0);
    set_timer(deadline);
    let enabled = csr::interrupt_enables();
    csr::set_interrupt_enables(enabled | csr::TIMER | csr::EXTERNAL | csr::SOFTWARE);
    // Closed interrupts end the wait too, and none can be taken in front of it and be missed by it.
    locks::wait_on_reservation(&word, 0);
    csr::take_interrupts();
}

/// Sets the next timer interrupt by whatever the board offers.
pub fn set_timer(deadline: u64) {
    if interrupts::has_sstc() {
        csr::set_timer_compare(deadline);
    } else {
        sbi::set_timer(deadline);
    }
}
