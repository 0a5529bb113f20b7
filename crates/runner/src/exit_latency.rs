//! Round trips through the hypervisor: what lies between a guest's last instruction and the next guest's first, counted by
//! the machine's own events, so that the hypervisor pays nothing for it.
//!
//! A round trip begins with a trap from a guest to HS-mode and ends with the return to one. If it ends in the same vCPU
//! it is an *exit*, if it ends in another one a *dispatch*. A hart that waited in between and then has another vCPU was idle:
//! its round trip begins when the wait ends. Where the same vCPU goes on, the time of the wait is left out. What the firmware does meanwhile
//! counts.
//!
//! Where the hypervisor waits for a lock or for another hart, its loop executes PAUSE. Each such wait is told by the address of that
//! instruction.

#[cfg(test)]
mod tests;

use machine::hart::{Cause, Exception, Mode, Privilege};
use machine::trace::{Event, Happening, Place, Sink};
use riscv::instruction;
use riscv::virtio::mmio::register::{INTERRUPT_ACKNOWLEDGE, QUEUE_NOTIFY};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Guest-physical addresses of the devices that every guest has (`board::guest_tree`), and their sizes in bytes.
const UART: (u64, u64) = (0x1000_0000, 0x100);
const APLIC: (u64, u64) = (0x0d00_0000, 0x8000);
const IMSIC: (u64, u64) = (0x2800_0000, 0x100_0000);
/// The virtio devices of the machine's board, which has them where QEMU's `virt` has: a page each.
const VIRTIO: (u64, u64) = (0x1000_1000, 0x8000);

/// Two instructions by their encodings (unprivileged and privileged ISA).
const WFI: u64 = instruction::WFI as u64;
const WRS_NTO: u64 = instruction::WRS_NTO as u64;
/// The opcode SYSTEM.
const SYSTEM: u64 = instruction::SYSTEM as u64;

/// The most cycles from one PAUSE to the next of the same wait.
const LOOP: u64 = 256;

/// How a round trip ended, or that it is a wait within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyKind {
    /// In the vCPU that had been left.
    Exit,
    /// In another vCPU.
    Dispatch,
    /// In a vCPU, from the end of a wait for work.
    FromIdle,
    /// No round trip: a wait of the hypervisor in a loop with PAUSE.
    Pauses,
}

/// Round trips of one kind and cause.
#[derive(Debug, Clone, Default)]
struct Lengths {
    instructions: Vec<u64>,
    cycles: Vec<u64>,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// How the round trips ended.
    pub kind: LatencyKind,
    /// Why the guest was left; after an idle wait, empty.
    pub cause: String,
    /// How many there were.
    pub count: u64,
    /// Instructions: the median, the mean, and the most.
    pub instructions: [u64; 3],
    /// Cycles: the median, the mean, and the most.
    pub cycles: [u64; 3],
}

/// State of a hart between a trap and the return.
#[derive(Debug, Clone, Default)]
struct OnTheWay {
    /// Instructions and cycles at the beginning.
    begun: (u64, u64),
    /// Why the guest was left; `None` after a wait for work.
    from: Option<(u16, String)>,
    /// When a wait began, and the cycles of those that are over.
    waits: Option<u64>,
    waited: u64,
    /// Instructions and cycles when the last wait ended.
    woken: Option<(u64, u64)>,
}

/// A wait of the hypervisor in a loop with PAUSE: instructions and cycles at the first and at the last.
#[derive(Debug, Clone)]
struct Pausing {
    at: u64,
    first: (u64, u64),
    last: (u64, u64),
    pauses: u64,
}

impl Pausing {
    /// How long it lasted. Before the first PAUSE, too, the word was looked at once.
    fn length(&self) -> (u64, u64) {
        let turns = self.pauses - 1;
        let whole = |first: u64, last: u64| {
            let seen = last.saturating_sub(first);
            seen + seen.checked_div(turns).unwrap_or(0)
        };
        (
            whole(self.first.0, self.last.0),
            whole(self.first.1, self.last.1),
        )
    }
}

#[derive(Debug, Default)]
struct Collection {
    harts: BTreeMap<u32, OnTheWay>,
    pausing: BTreeMap<u32, Pausing>,
    exit_latency: BTreeMap<(LatencyKind, String), Lengths>,
}

/// Listens to a machine. Clones share what they hear.
#[derive(Debug, Clone, Default)]
pub struct ExitLatencies {
    shared: Arc<Mutex<Collection>>,
}

impl ExitLatencies {
    /// Lengths by kind and cause.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let collection = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |((kind, cause), lengths): (&(LatencyKind, String), &Lengths)| Row {
            kind: *kind,
            cause: cause.clone(),
            count: lengths.cycles.len() as u64,
            instructions: summary(&lengths.instructions),
            cycles: summary(&lengths.cycles),
        };
        let mut rows: Vec<Row> = collection.exit_latency.iter().map(row).collect();
        // All dispatches together, whatever they followed.
        let all = collection.exit_latency.iter();
        let all = all.filter(|((kind, _), _)| *kind == LatencyKind::Dispatch);
        let mut together = Lengths::default();
        for (_, lengths) in all {
            together.instructions.extend(&lengths.instructions);
            together.cycles.extend(&lengths.cycles);
        }
        if !together.cycles.is_empty() {
            rows.push(row((
                &(LatencyKind::Dispatch, String::from("all")),
                &together,
            )));
        }
        rows.sort_by(|a, b| (a.kind, b.count).cmp(&(b.kind, a.count)));
        rows
    }
}

/// The median, the mean, and the most.
fn summary(values: &[u64]) -> [u64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let count = sorted.len() as u64;
    let sum: u64 = sorted.iter().sum();
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let most = sorted.last().copied().unwrap_or(0);
    [middle, sum.checked_div(count).unwrap_or(0), most]
}

impl Sink for ExitLatencies {
    fn event(&mut self, event: &Event) {
        let mut collection = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        collection.event(event);
    }
}

impl Collection {
    fn event(&mut self, event: &Event) {
        let Place::Hart(hart) = event.place else {
            return;
        };
        let now = (event.retired, event.cycles);
        if let Happening::Pause { mode, pc } = event.happening {
            if mode == Mode::HYPERVISOR {
                self.pause(hart.0, now, pc);
            }
            return;
        }
        self.end_of_pausing(hart.0);
        match &event.happening {
            Happening::Exception {
                exception,
                from,
                to,
                vmid,
                ..
            } if is_exit(*from, *to) => self.begin(hart.0, now, *vmid, name(exception)),
            Happening::Interrupt {
                code,
                from,
                to,
                vmid,
                ..
            } if is_exit(*from, *to) => {
                self.begin(hart.0, now, *vmid, interrupt(*code).to_owned());
            }
            Happening::WaitForInterrupt { mode } | Happening::WaitForStore { mode, .. }
                if *mode == Mode::HYPERVISOR =>
            {
                if let Some(way) = self.harts.get_mut(&hart.0) {
                    way.waits = Some(now.1);
                }
            }
            Happening::Wake { .. } => self.wake(hart.0, now),
            Happening::Return { from, to, vmid, .. }
                if *from == Mode::HYPERVISOR && to.virtualized =>
            {
                self.end(hart.0, now, *vmid);
            }
            _ => {}
        }
    }

    fn pause(&mut self, hart: u32, now: (u64, u64), pc: u64) {
        if let Some(pausing) = self.pausing.get_mut(&hart)
            && pausing.at == pc
            && now.1.saturating_sub(pausing.last.1) <= LOOP
        {
            pausing.last = now;
            pausing.pauses += 1;
            return;
        }
        self.end_of_pausing(hart);
        let pausing = Pausing {
            at: pc,
            first: now,
            last: now,
            pauses: 1,
        };
        self.pausing.insert(hart, pausing);
    }

    fn end_of_pausing(&mut self, hart: u32) {
        if let Some(pausing) = self.pausing.remove(&hart) {
            let (instructions, cycles) = pausing.length();
            let key = (LatencyKind::Pauses, format!("{:#x}", pausing.at));
            let lengths = self.exit_latency.entry(key).or_default();
            lengths.instructions.push(instructions);
            lengths.cycles.push(cycles);
        }
    }

    fn begin(&mut self, hart: u32, now: (u64, u64), vmid: u16, cause: String) {
        let way = OnTheWay {
            begun: now,
            from: Some((vmid, cause)),
            ..OnTheWay::default()
        };
        self.harts.insert(hart, way);
    }

    fn wake(&mut self, hart: u32, now: (u64, u64)) {
        if let Some(way) = self.harts.get_mut(&hart)
            && let Some(began) = way.waits.take()
        {
            way.waited += now.1.saturating_sub(began);
            way.woken = Some(now);
        }
    }

    fn end(&mut self, hart: u32, now: (u64, u64), vmid: u16) {
        let Some(way) = self.harts.remove(&hart) else {
            return;
        };
        let Some((before, cause)) = way.from else {
            return;
        };
        let (kind, cause, (begun, waited)) = match (before == vmid, way.woken) {
            (true, None) => (LatencyKind::Exit, cause, (way.begun, 0)),
            (true, Some(_)) => {
                let cause = format!("{cause}, which waits");
                (LatencyKind::Exit, cause, (way.begun, way.waited))
            }
            (false, None) => (LatencyKind::Dispatch, cause, (way.begun, 0)),
            (false, Some(woken)) => (LatencyKind::FromIdle, String::new(), (woken, 0)),
        };
        // The return is the hypervisor's last instruction, and not yet counted.
        let instructions = now.0 + 1 - begun.0;
        let cycles = (now.1 - begun.1).saturating_sub(waited);
        let lengths = self.exit_latency.entry((kind, cause)).or_default();
        lengths.instructions.push(instructions);
        lengths.cycles.push(cycles);
    }
}

/// Returns whether a trap leads from a guest to the hypervisor.
fn is_exit(from: Mode, to: Mode) -> bool {
    from.virtualized && !to.virtualized && to.privilege == Privilege::Supervisor
}

fn interrupt(code: u64) -> &'static str {
    match code {
        5 => "timer",
        9 => "interrupt of another hart or a device",
        12 => "interrupt of a guest file",
        13 => "counter overflow",
        _ => "another interrupt",
    }
}

fn name(exception: &Exception) -> String {
    // Under shadow tables an access to a device is a page fault, and all that the trap tells is the guest's virtual address. It is
    // the device's where the guest maps devices to where they are, as the exerciser does.
    let at = match exception.cause {
        Cause::LoadPage | Cause::StorePage => exception.value,
        _ => exception.guest_physical,
    };
    let within = |(base, size): (u64, u64)| at.checked_sub(base).is_some_and(|at| at < size);
    let name = match exception.cause {
        Cause::CallFromVirtualSupervisor => "SBI call",
        Cause::VirtualInstruction => match exception.value {
            WFI => "WFI",
            WRS_NTO => "WRS.NTO",
            bits if bits & 0x7f == SYSTEM => "CSR access",
            _ => "virtual instruction",
        },
        Cause::LoadGuestPage | Cause::LoadPage if within(UART) => "UART read",
        Cause::StoreGuestPage | Cause::StorePage if within(UART) => "UART write",
        Cause::LoadGuestPage | Cause::LoadPage if within(APLIC) => "APLIC read",
        Cause::StoreGuestPage | Cause::StorePage if within(APLIC) => "APLIC write",
        Cause::StoreGuestPage | Cause::StorePage if within(IMSIC) => "IMSIC write",
        Cause::LoadGuestPage | Cause::LoadPage if within(VIRTIO) => "virtio read",
        Cause::StoreGuestPage | Cause::StorePage if within(VIRTIO) => match at % 0x1000 {
            QUEUE_NOTIFY => "virtio notification",
            INTERRUPT_ACKNOWLEDGE => "virtio acknowledgement",
            _ => "virtio write",
        },
        Cause::FetchGuestPage | Cause::LoadGuestPage | Cause::StoreGuestPage => "guest page fault",
        Cause::FetchPage | Cause::LoadPage | Cause::StorePage => "page fault",
        _ => "another exception",
    };
    name.to_owned()
}
