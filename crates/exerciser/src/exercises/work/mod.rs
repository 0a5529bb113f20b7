//! `work`: jobs as a parameter file says, by all harts, with the spins of paper 000 §2.2.
//!
//! Terminals think, then ask for a job; harts take what is ready, step by step. A step computes, calls the
//! system, takes locks, waits for partners, has partners do things, and reads a disk. The report gives ends,
//! response times, and what the spins cost.

use core::sync::atomic::Ordering;

use exerciser::arguments::Arguments;
use exerciser::distribution::Distribution;
use exerciser::workload::{Expiry, PARAMETERS, SpinMethod, Workload};

use super::{Exercise, Outcome, Verdict};
use crate::arch::sync::Lock;
use crate::arch::{csr, sbi};
use crate::block::Disk;
use crate::board::board;
use crate::console::say;
use crate::harts;

mod events;
mod jobs;
mod locks;
mod spaces;
mod spins;

pub use spins::{has_vendor_calls, serve};

pub const EXERCISE: Exercise = Exercise {
    name: "work",
    parameters: &PARAMETERS,
    run,
};

/// Sum of the harts' measurements.
#[derive(Debug, Default)]
struct Totals {
    response: Distribution,
    hold: Distribution,
    wait: [Distribution; 3],
    looks: Distribution,
    contended: u64,
    excessive: u64,
    overtaken: u64,
    events: u64,
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.hold.merge(&other.hold);
        for (mine, theirs) in self.wait.iter_mut().zip(&other.wait) {
            mine.merge(theirs);
        }
        self.looks.merge(&other.looks);
        self.contended += other.contended;
        self.excessive += other.excessive;
        self.overtaken += other.overtaken;
        self.events += other.events;
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let mut workload = Workload::parse(arguments)?;
    let count = super::harts(arguments)?;
    let needs_disk = workload.reads > 0 || workload.event.needs_disk();
    let found = Disk::find(workload.trigger, workload.asked, workload.retries);
    let disk = match (needs_disk, found) {
        (false, _) => None,
        (true, Ok(disk)) => Some(disk.with_buffers(workload.buffers)),
        (true, Err(reason)) => {
            let (reads, event) = (workload.reads, workload.event);
            say!("reads={reads} event={event:?} needs a disk: {reason}");
            return Ok(Verdict::Fail);
        }
    };
    if let (true, Some(why)) = (
        workload.events > 0,
        events::refusal(workload.event, workload.spaces),
    ) {
        say!("work event={:?} {why}", workload.event);
        return Ok(Verdict::Fail);
    }
    if workload.vectors > 0 && !board().has("v") {
        say!("work vectors={} needs vectors", workload.vectors);
        return Ok(Verdict::Fail);
    }
    ask_allocation(&mut workload);
    let Some(spaces) = spaces::Spaces::new(&workload) else {
        say!(
            "not enough memory for {} spaces of {} pages",
            workload.spaces,
            workload.pages
        );
        return Ok(Verdict::Fail);
    };
    let floor = jobs::Floor::new(&workload, count, disk, spaces);
    let totals = Lock::new(Totals::default());
    let start = csr::time();
    harts::run(count, &|hart| {
        let mut mine = Totals::default();
        floor.work(hart, &mut mine);
        totals.lock().merge(&mine);
    });
    let elapsed = floor.end().saturating_sub(start);
    report(&workload, &floor, &totals.lock(), elapsed);
    let off_line = floor.off_line();
    say!("work harts={count} off-line={off_line}");
    let failed = workload.expire == Expiry::Fail && totals.lock().excessive > 0;
    Ok(Verdict::of(
        !failed && totals.lock().overtaken == 0 && floor.ends() > 0,
    ))
}

/// Asks how the hypervisor allocates processors to us, where it is one that tells; spins by the answer where
/// the workload says so.
fn ask_allocation(workload: &mut Workload) {
    if !has_vendor_calls() {
        return;
    }
    let function = abi::sbi::Function::Allocation.id() as u64;
    let answer = sbi::call(abi::sbi::EXTENSION as u64, function, [0; 6]);
    let is_dedicated =
        answer.error == 0 && answer.value & 0xff == abi::sbi::AllocationForm::Dedicated as u64;
    say!(
        "work allocation={} dedicated-harts={}",
        if is_dedicated { "dedicated" } else { "shared" },
        answer.value >> 8 & 0xff_ffff
    );
    if workload.queries_allocation {
        workload.spin = if is_dedicated {
            SpinMethod::Pause
        } else {
            SpinMethod::Call
        };
    }
}

fn report(workload: &Workload, floor: &jobs::Floor, totals: &Totals, elapsed: u64) {
    let board = board();
    let microseconds = board.nanoseconds(elapsed) / 1000;
    let completions = floor.ends();
    let per_second =
        (u128::from(completions) * 1_000_000_000 / u128::from(microseconds.max(1))) as u64;
    say!(
        "work completions={completions} elapsed-us={microseconds} completions-per-second={}.{:03} reads={}",
        per_second / 1000,
        per_second % 1000,
        floor.reads.load(Ordering::Relaxed)
    );
    say!("work response-ns {}", totals.response);
    if workload.locks > 0 || workload.calls > 0 {
        say!("work lock-hold-ns {}", totals.hold);
        say!("work lock-wait-ns {}", totals.wait[0]);
    }
    if workload.partner_one_in > 0 {
        say!("work partner-wait-ns {}", totals.wait[1]);
    }
    if workload.request_one_in > 0 {
        say!("work request-wait-ns {}", totals.wait[2]);
    }
    if workload.events > 0 {
        say!("work events={}", totals.events);
    }
    say!("work polls-per-spin {}", totals.looks);
    say!(
        "work spins={} polls={} excessive={} out-of-order={}",
        totals.contended,
        totals.looks.sum(),
        totals.excessive,
        totals.overtaken
    );
}
