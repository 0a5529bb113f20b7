//! The performance monitor's report on the console (`abi::monitor`).
//!
//! A hart publishes its CPU time when it changes its work, so a hart in a guest, or an idle one, may not have published for long. A
//! requested report waits until each hart has been interrupted and has published.

use alloc::string::String;
use core::fmt::{self, Write};

use abi::monitor::{self as records, Header, Report, VmRecord};
use scheduler::HartSet;

use crate::console;
use crate::hart;
use crate::heap;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::report_space::ReportSpace;
use crate::vm::Vm;

/// Requests a report: harts leave their guests, idle harts are woken, and the last one to publish its CPU time prints. Only then is
/// the UART served again, so that answers come in the order of the commands. `own` has served the UART, and publishes next.
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
        print_if_last(system, hart);
    }
}

#[cold]
#[inline(never)]
fn print_if_last(system: &Hypervisor, hart: &Hart) {
    if system.report.publish(hart.index) {
        // The counters at this moment, line by line between the other lines of the console, which takes everything.
        let _ = heap::permit(|| {
            let space = &mut *system.report_space.lock();
            note_vms(system, space);
            write(system, space, &mut Lines(String::new()))
        });
        console::end_answer();
        system.resample_uart();
    }
}

/// Line that is being written; the heap never holds more of a report.
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

/// Prints the counters before the power goes off.
pub fn last_report(system: &Hypervisor) {
    let space = &mut *system.report_space.lock();
    note_vms(system, space);
    console::final_report(|out| {
        // The UART takes everything.
        let _ = write(system, space, &mut Through(out));
    });
}

struct Through<'a>(&'a mut dyn Write);

impl Write for Through<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}

fn write(system: &Hypervisor, space: &mut ReportSpace, out: &mut impl Write) -> fmt::Result {
    let ReportSpace { vms, work } = space;
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
        let own = hart.accounts.read_into(work);
        let id = records::HartId(hart.board.id as u32);
        report.hart(id, &own)?;
        for (vm, counters) in system.vms.iter().zip(&*work) {
            report.work(vm.number(), id, counters)?;
        }
    }
    report.end()
}
