//! A report as people read it.

use super::{HartReport, Report, VmReport};
use crate::table::Table;
use abi::monitor::{Event, ExitCause};
use std::fmt;

/// `part` of `whole` in percent.
fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => String::from("-"),
        _ => format!("{:.2} %", part as f64 * 100.0 / whole as f64),
    }
}

impl Report {
    fn hart(&self, hart: u32) -> Option<&HartReport> {
        self.harts.iter().find(|report| report.hart == hart)
    }

    /// Where each hart's time went.
    fn time(&self) -> Table {
        let mut table = Table::new([
            "VM",
            "hart",
            "guest",
            "scheduling",
            "simulation",
            "idle",
            "dispatches",
            "SBI calls",
            "injected",
        ]);
        for vm in &self.vms {
            for work in &vm.work {
                let whole = self.hart(work.hart).map_or(0, |hart| hart.elapsed);
                table.row([
                    vm.name.clone(),
                    work.hart.to_string(),
                    percent(work.guest, whole),
                    percent(work.scheduling, whole),
                    percent(work.simulation, whole),
                    String::new(),
                    work.dispatches.to_string(),
                    work.calls.to_string(),
                    work.injected.to_string(),
                ]);
            }
        }
        for hart in &self.harts {
            table.row([
                String::from("(no VM)"),
                hart.hart.to_string(),
                String::new(),
                percent(hart.scheduling, hart.elapsed),
                String::new(),
                percent(hart.idle, hart.elapsed),
            ]);
        }
        table
    }

    /// How often each cause made each VM leave its guest, and how much of the harts' time that took.
    fn exits(&self) -> Table {
        let mut headings = vec![String::from("exits a second")];
        headings.extend(self.vms.iter().map(|vm| vm.name.clone()));
        headings.push(String::from("handling"));
        let mut table = Table::new(headings);
        let whole: u64 = self.harts.iter().map(|hart| hart.elapsed).sum();
        for cause in ExitCause::ALL.map(ExitCause::name) {
            if self.vms.iter().all(|vm| vm.exits(cause) == 0) {
                continue;
            }
            let mut cells = vec![String::from(cause)];
            let rate = |vm: &VmReport| format!("{:.1}", vm.exits(cause) as f64 / self.seconds);
            cells.extend(self.vms.iter().map(rate));
            let work = self.vms.iter().flat_map(|vm| &vm.work);
            let cycles = work
                .filter_map(|work| work.exits.get(cause))
                .map(|exits| exits.cycles);
            cells.push(percent(cycles.sum(), whole));
            table.row(cells);
        }
        table
    }

    /// Other events of each VM's vCPUs.
    fn events(&self) -> Table {
        let mut headings = vec![String::from("events")];
        headings.extend(self.vms.iter().map(|vm| vm.name.clone()));
        let mut table = Table::new(headings);
        for event in Event::ALL.map(Event::name) {
            if self.vms.iter().all(|vm| vm.events(event) == 0) {
                continue;
            }
            let mut cells = vec![String::from(event)];
            cells.extend(self.vms.iter().map(|vm| vm.events(event).to_string()));
            table.row(cells);
        }
        table
    }

    /// How interrupts reached each VM, and how the VM ended.
    fn vms(&self) -> Table {
        let mut table = Table::new([
            "VM",
            "ended",
            "restarts",
            "interrupts: direct",
            "through the hypervisor",
            "timer",
            "ipi",
            "device",
        ]);
        for vm in &self.vms {
            let ended = match &*vm.stop_reason {
                "none" => &*vm.state,
                reason => reason,
            };
            let unknown = || String::from("-");
            let own = |count: fn(&super::GuestInterrupts) -> u64| {
                vm.guest_interrupts
                    .as_ref()
                    .map_or_else(unknown, |own| count(own).to_string())
            };
            table.row([
                vm.name.clone(),
                String::from(ended),
                vm.restarts.to_string(),
                vm.direct()
                    .map_or_else(unknown, |direct| direct.to_string()),
                vm.injected().to_string(),
                own(|own| own.timer),
                own(|own| own.ipi),
                own(|own| own.device),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harts = self.harts.len();
        let word = if harts == 1 { "hart" } else { "harts" };
        writeln!(f, "{harts} {word}, {:.3} s\n", self.seconds)?;
        writeln!(
            f,
            "{}\n{}\n{}\n{}",
            self.time(),
            self.exits(),
            self.events(),
            self.vms()
        )
    }
}
