//! The monitor's report on the console.

use core::fmt::Write;

use abi::monitor::{self as records, Header, Report, VmRecord};

use crate::hart;
use crate::system::Hypervisor;
use crate::log;

/// Prints the counters of all harts and VMs as they stand.
pub fn report(system: &Hypervisor) {
    log::locked(|out| {
        // The console never fails.
        let _ = write(system, out);
    });
}

fn write(system: &Hypervisor, out: &mut impl Write) -> core::fmt::Result {
    let elapsed = records::Ticks(hart::time().wrapping_sub(system.started));
    let mut report = Report::begin(out, Header { timebase: system.board.timebase_hertz, elapsed })?;
    for vm in &system.vms {
        let control = *vm.control.lock();
        report.vm(&VmRecord {
            vm: records::VmId(vm.id.get() as u8),
            name: vm.settings.name,
            state: control.state,
            reason: control.reason,
            restarts: control.restarts,
        })?;
    }
    for hart in &system.harts {
        let (own, work) = hart.accounts.read();
        let id = records::HartId(hart.board.id as u32);
        report.hart(id, &own)?;
        for (vm, counters) in work.iter().enumerate() {
            report.work(records::VmId(vm as u8), id, counters)?;
        }
    }
    report.end()
}
