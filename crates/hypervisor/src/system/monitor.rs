//! The performance monitor's report on the console (`abi::monitor`).
//!
//! A hart books its time when it changes what it does, so that one that is with a guest, or rests, may have booked nothing for long. A
//! report that is asked for waits until each hart has been interrupted and has booked what it did.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use abi::monitor::{self as records, Header, Report, VmRecord};
use scheduler::{HartId, HartSet};

use crate::console;
use crate::hart;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::vm::Vm;

/// The harts that a report waits for, a bit each.
#[derive(Debug, Default)]
pub struct Awaited(AtomicU64);

impl Awaited {
    /// A report waits for `harts`, and for whom one waits already.
    fn add(&self, harts: HartSet) {
        self.0.fetch_or(harts.bits(), Ordering::Relaxed);
    }

    /// Whether a report waits for any hart.
    #[inline]
    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// `hart` has booked its time. Whether it was the last: then everything that the others have booked can be read.
    fn has_booked(&self, hart: HartId) -> bool {
        let own = HartSet::only(hart).bits();
        // What this hart booked is seen by the hart that comes last.
        self.0.fetch_and(!own, Ordering::AcqRel) == own
    }
}

/// Asks for a report: harts with guests leave them, harts that rest are woken, and the last to have booked its time prints.
pub fn ask(system: &Hypervisor, own: &Hart) {
    let harts: HartSet = system.harts.iter().map(|hart| hart.index).collect();
    system.report.add(harts);
    for hart in system.harts.iter().filter(|hart| hart.index != own.index) {
        hart.tell();
    }
}

/// `hart` has been interrupted, and has booked what it did until then.
#[inline]
pub fn has_booked(system: &Hypervisor, hart: &Hart) {
    if system.report.any() {
        print_if_last(system, hart);
    }
}

#[cold]
#[inline(never)]
fn print_if_last(system: &Hypervisor, hart: &Hart) {
    if system.report.has_booked(hart.index) {
        // The counters as they stand, line by line between the other lines of the console, which takes everything.
        let _ = write(system, &records(system), &mut Lines(String::new()));
    }
}

/// The line that is being written; the heap never holds more of a report than that.
struct Lines(String);

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            self.0.push_str(part);
            if part.ends_with('\n') {
                console::raw_line(self.0.trim_end());
                self.0.clear();
            }
        }
        Ok(())
    }
}

/// What there is to say of the VMs. Their locks are free again when the console's is taken.
fn records(system: &Hypervisor) -> Vec<VmRecord> {
    let record = |vm: &Vm| {
        let life = vm.life.lock();
        VmRecord {
            vm: vm.number(),
            name: vm.settings.name,
            state: life.state(),
            reason: life.reason(),
            restarts: life.restarts(),
        }
    };
    system.vms.iter().map(record).collect()
}

/// Prints the counters as the last thing before the power goes.
pub fn last_report(system: &Hypervisor) {
    let vms = records(system);
    console::last_words(|out| {
        // The UART takes everything.
        let _ = write(system, &vms, &mut Through(out));
    });
}

struct Through<'a>(&'a mut dyn Write);

impl Write for Through<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}

fn write(system: &Hypervisor, vms: &[VmRecord], out: &mut impl Write) -> fmt::Result {
    let elapsed = records::Ticks(hart::time().wrapping_sub(system.started));
    let mut report = Report::begin(
        out,
        Header {
            timebase: u64::from(system.board.timebase_hertz),
            elapsed,
        },
    )?;
    for vm in vms {
        report.vm(vm)?;
    }
    for hart in &system.harts {
        let (own, work) = hart.accounts.read();
        let id = records::HartId(hart.board.id as u32);
        report.hart(id, &own)?;
        for (vm, counters) in system.vms.iter().zip(&work) {
            report.work(vm.number(), id, counters)?;
        }
    }
    report.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hart(number: u16) -> HartId {
        HartId::new(number).unwrap()
    }

    #[test]
    fn the_last_hart_that_books_prints_once() {
        let awaited = Awaited::default();
        assert!(!awaited.has_booked(hart(0)), "nobody asked");
        let harts = HartSet::from_bits(0b111);
        awaited.add(harts);
        assert!(!awaited.has_booked(hart(1)));
        assert!(!awaited.has_booked(hart(1)), "a hart is awaited once");
        // Somebody asks again meanwhile: that report comes with the one that is under way.
        awaited.add(harts);
        assert!(!awaited.has_booked(hart(2)) && !awaited.has_booked(hart(0)));
        assert!(awaited.any());
        assert!(awaited.has_booked(hart(1)));
        assert!(!awaited.any() && !awaited.has_booked(hart(1)), "once");
    }
}
