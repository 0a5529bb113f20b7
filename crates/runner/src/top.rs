//! Use of the harts right now: counted from the machine's events while a system runs.

mod screen;

pub use screen::Screen;

use crate::table::Table;
use machine::hart::{Mode, Privilege};
use machine::trace::{Event, Happening, Place, Sink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Work of one vCPU, or one hart, since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    cycles: u64,
    exits: u64,
    dispatches: u64,
    spins: u64,
}

/// State of a hart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Present {
    /// The VMID, in a guest.
    guest: Option<u16>,
    /// Set while the vCPU waits in the hypervisor.
    waits: bool,
    /// The last vCPU that it had.
    last: Option<u16>,
    since: u64,
}

#[derive(Debug, Default)]
struct Counts {
    harts: BTreeMap<u32, Present>,
    guests: BTreeMap<u16, Share>,
    idle: BTreeMap<u32, u64>,
    begun: u64,
    now: u64,
}

/// Counts. Clones share what they count.
#[derive(Debug, Clone, Default)]
pub struct Top {
    counts: Arc<Mutex<Counts>>,
}

impl Sink for Top {
    fn event(&mut self, event: &Event) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.event(event);
    }
}

impl Top {
    /// A table of what happened since the last one up to now, machine time in cycles. `vms` are the VMs in the order of
    /// their VMIDs with their numbers of vCPUs; `hertz` is the machine's frequency.
    pub fn table(&self, now: u64, vms: &[(String, u32)], hertz: u64) -> Table {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.settle(now);
        let whole = now.saturating_sub(counts.begun).max(1);
        let seconds = whole as f64 / hertz as f64;
        let per_cent = |cycles: u64| format!("{:.1} %", cycles as f64 * 100.0 / whole as f64);
        let rate = |count: u64| format!("{:.0}", count as f64 / seconds);
        let mut table = Table::new(["", "of a hart", "exits/s", "dispatches/s", "spins/s"]);
        let mut vmid = 0u16;
        for (vm, vcpus) in vms {
            for number in 0..*vcpus {
                vmid = vmid.saturating_add(1);
                let share = counts.guests.get(&vmid).copied().unwrap_or_default();
                table.row([
                    format!("{vm} vCPU {number}"),
                    per_cent(share.cycles),
                    rate(share.exits),
                    rate(share.dispatches),
                    rate(share.spins),
                ]);
            }
        }
        for hart in counts.harts.keys() {
            let idle = counts.idle.get(hart).copied().unwrap_or(0);
            table.row([format!("hart {hart} idle"), per_cent(idle)]);
        }
        counts.guests.clear();
        counts.idle.clear();
        counts.begun = now;
        table
    }
}

impl Counts {
    fn event(&mut self, event: &Event) {
        let Place::Hart(hart) = event.place else {
            return;
        };
        let now = event.cycles;
        self.now = self.now.max(now);
        self.charge(hart.0, now);
        let present = self.harts.entry(hart.0).or_default();
        match &event.happening {
            Happening::Return { to, vmid, .. } if to.virtualized => {
                present.guest = Some(*vmid);
                let fresh = present.last != Some(*vmid);
                present.last = Some(*vmid);
                if fresh {
                    self.guests.entry(*vmid).or_default().dispatches += 1;
                }
            }
            Happening::Exception { from, to, vmid, .. }
            | Happening::Interrupt { from, to, vmid, .. } => {
                present.waits = false;
                let leaves = from.virtualized && !to.virtualized;
                if leaves {
                    present.guest = None;
                }
                if leaves && to.privilege == Privilege::Supervisor {
                    self.guests.entry(*vmid).or_default().exits += 1;
                }
            }
            Happening::WaitForInterrupt { mode } | Happening::WaitForStore { mode, .. } => {
                if *mode == Mode::HYPERVISOR {
                    present.waits = true;
                    present.last = None;
                } else if let (Some(vmid), Happening::WaitForStore { .. }) =
                    (present.guest, &event.happening)
                {
                    self.guests.entry(vmid).or_default().spins += 1;
                }
            }
            Happening::Wake { .. } => present.waits = false,
            _ => {}
        }
    }

    /// Charges the time up to now to the vCPUs that have harts.
    fn charge(&mut self, hart: u32, now: u64) {
        let present = self.harts.entry(hart).or_default();
        let since = present.since.max(self.begun);
        let passed = now.saturating_sub(since);
        present.since = now.max(present.since);
        if let Some(vmid) = present.guest {
            self.guests.entry(vmid).or_default().cycles += passed;
        } else if present.waits {
            *self.idle.entry(hart).or_default() += passed;
        }
    }

    fn settle(&mut self, now: u64) {
        let harts: Vec<u32> = self.harts.keys().copied().collect();
        for hart in harts {
            self.charge(hart, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::device::HartId;
    use machine::hart::{Cause, Exception};

    #[test]
    fn time_goes_to_whoever_has_the_hart() {
        let mut top = Top::default();
        let vms = [(String::from("a"), 1), (String::from("b"), 1)];
        let at = |cycles, happening| Event {
            place: Place::Hart(HartId(0)),
            cycles,
            retired: 0,
            happening,
        };
        let enter = |cycles, vmid| {
            let happening = Happening::Return {
                from: Mode::HYPERVISOR,
                to: Mode::VIRTUAL_SUPERVISOR,
                pc: 0,
                vmid,
            };
            at(cycles, happening)
        };
        let exit = |cycles, vmid| {
            let happening = Happening::Exception {
                exception: Exception::new(Cause::VirtualInstruction, 0),
                from: Mode::VIRTUAL_SUPERVISOR,
                to: Mode::HYPERVISOR,
                pc: 0,
                vmid,
            };
            at(cycles, happening)
        };
        for event in [enter(0, 1), exit(500, 1), enter(600, 2), exit(800, 2)] {
            top.event(&event);
        }
        top.event(&at(
            800,
            Happening::WaitForInterrupt {
                mode: Mode::HYPERVISOR,
            },
        ));
        let text = top.table(1000, &vms, 1000).to_string();
        let line = |name: &str| {
            let mut lines = text.lines();
            lines
                .find(|line| line.starts_with(name))
                .unwrap()
                .to_owned()
        };
        assert!(line("a vCPU 0").contains("50.0 %"), "{text}");
        assert!(line("b vCPU 0").contains("20.0 %"), "{text}");
        assert!(line("hart 0 idle").contains("20.0 %"), "{text}");
        assert!(line("a vCPU 0").split_whitespace().any(|word| word == "1"));
        // The next table begins at zero.
        let text = top.table(2000, &vms, 1000).to_string();
        let idle = text.lines().last().unwrap();
        assert!(idle.contains("100.0 %"), "{text}");
    }
}
