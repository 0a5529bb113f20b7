//! The performance monitor's report on the console (`abi::monitor`).
//!
//! A hart publishes its CPU time when it changes its work, so a hart in a guest, or an idle one, may not have published for long. A
//! requested report waits until each hart has been interrupted and has published. From then on it is written piece by piece, as the UART takes it:
//! no hart waits for the UART. What is typed meanwhile waits for the report's end.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use abi::monitor::{self as records, Header, VmRecord};
use scheduler::HartSet;

use crate::console;
use crate::hart;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::report_space::{ReportSpace, ReportWriter};
use crate::vm::Vm;

/// Requests a report: harts leave their guests, idle harts are woken, and the last one to publish its CPU time lets the report begin. `own`, which has
/// served the UART, publishes next.
pub fn request_report(system: &Hypervisor, own: &Hart) {
    let harts: HartSet = system.harts.iter().map(|hart| hart.index).collect();
    system.report.add(harts);
    for hart in system.harts.iter().filter(|hart| hart.index != own.index) {
        hart.request_reschedule();
    }
}

/// Publishes for `hart`, which was interrupted and has charged all its time.
#[inline]
pub fn publish(system: &Hypervisor, hart: &Hart) {
    if system.report.any() {
        publish_awaited(system, hart);
    }
}

#[cold]
#[inline(never)]
fn publish_awaited(system: &Hypervisor, hart: &Hart) {
    if system.report.awaits(hart.index) {
        hart.published.copy(&hart.accounts);
    }
    if system.report.publish(hart.index) {
        {
            let space = &mut *system.report_space.lock();
            note_vms(system, space);
            space.pending = Some(ReportWriter::new(header(system)));
        }
        console::begin_report();
    }
}

/// Writes on at the operator's report, if one has begun: as many lines as the UART has use for now, between the other lines of the console.
pub fn continue_report(system: &Hypervisor) {
    let space = &mut *system.report_space.lock();
    let Some(mut writer) = space.pending.take() else {
        return;
    };
    let read = |hart: usize, work: &mut Vec<_>| {
        let hart = system.harts.get(hart)?;
        Some((id_of(hart), hart.published.read_into(work)))
    };
    while console::has_use_for_lines() {
        let goes_on = space.next_line(&mut writer, &read, &mut Lines);
        if goes_on != Ok(true) {
            return console::end_answer();
        }
    }
    space.pending = Some(writer);
}

/// Lines on the console, each in one piece.
struct Lines;

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_fmt(format_args!("{text}"))
    }

    fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        console::raw_line(line);
        Ok(())
    }
}

fn header(system: &Hypervisor) -> Header {
    Header {
        timebase: u64::from(system.board.timebase_hertz),
        elapsed: records::Ticks(hart::time().wrapping_sub(system.started)),
    }
}

fn id_of(hart: &Hart) -> records::HartId {
    records::HartId(hart.board.id as u32)
}

/// Records all VMs. The VMs' locks are free again when the console's is taken.
fn note_vms(system: &Hypervisor, space: &mut ReportSpace) {
    let record = |vm: &Vm| {
        let life = vm.life_cycle.lock();
        VmRecord {
            vm: vm.number(),
            name: vm.settings.name,
            state: life.state(),
            stop_reason: life.stop_reason(),
            restarts: life.restarts(),
        }
    };
    space.vms.clear();
    space.vms.extend(system.vms.iter().map(record));
}

/// Prints the counters before the power goes off, behind the rest of a report that has begun.
pub fn last_report(system: &Hypervisor) {
    let space = &mut *system.report_space.lock();
    note_vms(system, space);
    let published = |hart: usize, work: &mut Vec<_>| {
        let hart = system.harts.get(hart)?;
        Some((id_of(hart), hart.published.read_into(work)))
    };
    let present = |hart: usize, work: &mut Vec<_>| {
        let hart = system.harts.get(hart)?;
        Some((id_of(hart), hart.accounts.read_into(work)))
    };
    console::final_report(|out| {
        // The UART takes everything.
        if let Some(mut writer) = space.pending.take() {
            while space.next_line(&mut writer, &published, out) == Ok(true) {}
        }
        let mut writer = ReportWriter::new(header(system));
        while space.next_line(&mut writer, &present, out) == Ok(true) {}
    });
}
