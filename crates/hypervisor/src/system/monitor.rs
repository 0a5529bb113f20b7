//! The performance monitor's report on the console (`abi::monitor`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use abi::monitor::{self as records, Header, Report, VmRecord};

use crate::console;
use crate::hart;
use crate::system::Hypervisor;
use crate::vm::Vm;

/// Prints the counters as they stand, line by line between the other lines of the console.
pub fn report(system: &Hypervisor) {
    // The console takes everything.
    let _ = write(system, &records(system), &mut Lines(String::new()));
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
