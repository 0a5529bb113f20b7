//! From the machine's events to a timeline.

use super::interrupts::{Messages, Sent};
use super::lanes::LaneRecorder;
use super::names::{file_name, interrupt};
use super::states::{OnHart, Spin};
use super::{Flow, Owner, SliceKind, Timeline, Window};
use machine::device::{Clock, Cycles, HartId};
use machine::hart::{Mode, Privilege};
use machine::trace::locks::{Hold, Locks};
use machine::trace::{Event, Happening, Place, Sink, WaitEnd};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the mark of a pause loop's exit.
pub const PAUSE_LOOP_EXIT: &str = "pause-loop exit";
/// Two waits on one word with less than this between them are one spin, in nanoseconds: the time to look at the word.
const MAX_POLL_GAP_NS: u64 = 20_000;

/// Listens to a machine. Clones share what they hear.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Mutex<Record>>,
}

#[derive(Debug)]
struct Record {
    sheet: LaneRecorder,
    clock: Clock,
    /// The vCPUs in the order of their VMIDs, from 1.
    vcpus: Vec<Owner>,
    harts: BTreeMap<u32, OnHart>,
    /// Spins by VMID.
    spins: BTreeMap<u16, Spin>,
    /// The words for which vCPUs without a hart wait.
    parked: BTreeMap<u16, u64>,
    /// Since when a vCPU has been without a hart, and why.
    away: BTreeMap<u16, (u64, SliceKind, String)>,
    locks: Locks,
    messages: Messages,
    deliveries: Vec<u64>,
    last: u64,
}

impl Recorder {
    /// A recorder for a machine with this clock whose hypervisor gives these vCPUs, VM by VM, the VMIDs from 1.
    pub fn new(window: Window, clock: Clock, vms: &[(String, u32)]) -> Self {
        let vcpus = vms
            .iter()
            .flat_map(|(vm, count)| (0..*count).map(|number| Owner::Vcpu(vm.clone(), number)));
        Self {
            shared: Arc::new(Mutex::new(Record {
                sheet: LaneRecorder::new(window),
                clock,
                vcpus: vcpus.collect(),
                harts: BTreeMap::new(),
                spins: BTreeMap::new(),
                parked: BTreeMap::new(),
                away: BTreeMap::new(),
                locks: Locks::default(),
                messages: Messages::default(),
                deliveries: Vec::new(),
                last: 0,
            })),
        }
    }

    /// When a vCPU first had a hart, in nanoseconds since reset, if one had.
    pub fn begun(&self) -> Option<u64> {
        let record = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        record.sheet.begun
    }

    /// The timeline so far, with everything that is open ended.
    pub fn timeline(&self) -> Timeline {
        let mut record = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        record.finish();
        let mut deliveries = std::mem::take(&mut record.deliveries);
        deliveries.sort_unstable();
        Timeline {
            lanes: record.sheet.take(),
            lost: record.sheet.lost,
            deliveries,
        }
    }
}

impl Sink for Recorder {
    fn event(&mut self, event: &Event) {
        let mut record = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        record.event(event);
    }
}

impl Record {
    fn event(&mut self, event: &Event) {
        let now = self.clock.nanoseconds(Cycles(event.cycles));
        self.last = self.last.max(now);
        let Place::Hart(hart) = event.place else {
            self.device(now, &event.happening);
            return;
        };
        match &event.happening {
            Happening::Exception {
                exception,
                from,
                to,
                pc,
                vmid,
            } => {
                let why = String::from(exception.cause.name());
                let flows = Vec::new();
                self.trap(hart, now, (*from, *to), *vmid, *pc, (why, flows));
            }
            Happening::Interrupt {
                code,
                from,
                to,
                pc,
                vmid,
                guest_file,
            } => {
                let why = format!("interrupt {}", interrupt(*code));
                let flows = match (code, to.virtualized) {
                    (9 | 10, true) => self.handle(hart, now, *guest_file),
                    (9, false) if *to == Mode::HYPERVISOR => self.handle(hart, now, 0),
                    _ => Vec::new(),
                };
                self.trap(hart, now, (*from, *to), *vmid, *pc, (why, flows));
            }
            Happening::Word {
                mode,
                physical,
                value,
                stored,
            } => {
                let vcpu = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu);
                let by = vcpu.filter(|_| *stored && mode.virtualized);
                let by = by.map(|(vmid, _)| vmid);
                if let Some(hold) = self.locks.word(*physical, *value, by, now) {
                    self.hold(hold);
                }
            }
            Happening::Return { to, vmid, .. } if to.virtualized => self.enter(hart, now, *vmid),
            Happening::WaitForInterrupt { mode } if *mode == Mode::HYPERVISOR => {
                self.leave(hart, now, true);
                self.harts.entry(hart.0).or_default().idle = Some(now);
            }
            Happening::WaitForStore { mode, physical, .. } if mode.virtualized => {
                self.spin(hart, now, *physical);
            }
            Happening::WaitForStore { mode, .. } if *mode == Mode::HYPERVISOR => {
                self.leave(hart, now, true);
                self.harts.entry(hart.0).or_default().idle = Some(now);
            }
            Happening::PauseLoop { mode, physical, .. } if mode.virtualized => {
                self.pause_loop(hart, now, *physical);
            }
            Happening::Wake { end } => self.wake(hart, now, *end),
            Happening::Fence { fence, mode } => {
                let details = vec![("mode", String::from(mode.name()))];
                let owner = self.running(hart).filter(|_| mode.virtualized);
                let owner = owner.unwrap_or(Owner::Hart(hart.0));
                self.sheet
                    .mark(owner, now, format!("fence {fence:?}"), details, Vec::new());
            }
            _ => {}
        }
    }

    /// VMID of the vCPU that has the hart.
    fn running(&self, hart: HartId) -> Option<Owner> {
        let (vmid, _) = self.harts.get(&hart.0)?.vcpu?;
        self.vcpus.get(usize::from(vmid).checked_sub(1)?).cloned()
    }

    fn owner(&self, vmid: u16) -> Option<Owner> {
        self.vcpus.get(usize::from(vmid).checked_sub(1)?).cloned()
    }

    fn trap(
        &mut self,
        hart: HartId,
        now: u64,
        (from, to): (Mode, Mode),
        vmid: u16,
        pc: u64,
        (why, flows): (String, Vec<Flow>),
    ) {
        self.end_idle(hart, now);
        let details = || vec![("address", format!("{pc:#x}"))];
        if !flows.is_empty() && !to.virtualized {
            let owner = Owner::Hart(hart.0);
            self.sheet
                .mark(owner, now, why.clone(), details(), flows.clone());
        }
        if !from.virtualized {
            return;
        }
        if to.virtualized {
            let owner = self.owner(vmid);
            let owner = owner.unwrap_or(Owner::Hart(hart.0));
            self.sheet.mark(owner, now, why, details(), flows);
            return;
        }
        // M-mode handles what it must and returns; only HS-mode's traps are exits.
        if to.privilege == Privilege::Supervisor {
            let on_hart = self.harts.entry(hart.0).or_default();
            if on_hart.vcpu.is_none() {
                on_hart.vcpu = Some((vmid, now));
            }
            on_hart.exit = Some((now, why));
        }
    }

    /// The hart enters a guest.
    fn enter(&mut self, hart: HartId, now: u64, vmid: u16) {
        self.sheet.begun.get_or_insert(now);
        self.end_idle(hart, now);
        let on_hart = self.harts.entry(hart.0).or_default();
        if on_hart.vcpu.is_some_and(|(other, _)| other != vmid) {
            self.leave(hart, now, false);
        }
        let on_hart = self.harts.entry(hart.0).or_default();
        let exit = on_hart.exit.take();
        if on_hart.vcpu.is_some() {
            // The same vCPU goes on: what was between is the handling of its exit. A return from M-mode is none.
            if let (Some((start, why)), Some(owner)) = (exit, self.owner(vmid)) {
                self.sheet
                    .slice(owner, start, now, SliceKind::Exit, why, Vec::new());
            }
            return;
        }
        on_hart.vcpu = Some((vmid, now));
        let Some(owner) = self.owner(vmid) else {
            return;
        };
        if let Some((start, kind, why)) = self.away.remove(&vmid) {
            self.sheet.slice(owner, start, now, kind, why, Vec::new());
        }
        if let Some(word) = self.parked.remove(&vmid) {
            // If it must wait on, it says so again.
            self.locks.wait_over(word, vmid);
        }
    }

    /// The vCPU that had the hart has left it; `idle` if no vCPU follows at once.
    fn leave(&mut self, hart: HartId, now: u64, idle: bool) {
        let on_hart = self.harts.entry(hart.0).or_default();
        let exit = on_hart.exit.take();
        let Some((vmid, start)) = on_hart.vcpu.take() else {
            return;
        };
        // What follows the last exit is the hypervisor's.
        let (end, why) = exit.unwrap_or((now, String::from("leaves")));
        let Some(owner) = self.owner(vmid) else {
            return;
        };
        let details = vec![("left by", why.clone())];
        self.sheet.slice(
            owner.clone(),
            start,
            end,
            SliceKind::Runs,
            format!("on hart {}", hart.0),
            details.clone(),
        );
        let name = owner.name();
        self.sheet.slice(
            Owner::Hart(hart.0),
            start,
            end,
            SliceKind::Runs,
            name,
            details,
        );
        let spin = self.spins.get_mut(&vmid).filter(|spin| {
            // A vCPU that left out of a wait for a word spins on.
            spin.waiting || end.saturating_sub(spin.last) < MAX_POLL_GAP_NS
        });
        let away = match spin {
            Some(spin) => {
                spin.waiting = false;
                let word = spin.word;
                self.end_spin(vmid, end);
                self.locks.wait(word, vmid);
                self.parked.insert(vmid, word);
                (end, SliceKind::SpinWait, format!("spin wait on {word:#x}"))
            }
            None if idle => (end, SliceKind::Waits, format!("waits ({why})")),
            None => (end, SliceKind::Waits, format!("off ({why})")),
        };
        self.away.insert(vmid, away);
    }

    /// The vCPU on the hart waits for a word.
    fn spin(&mut self, hart: HartId, now: u64, word: u64) {
        let Some((vmid, _)) = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu) else {
            return;
        };
        let known = self.spins.get(&vmid).copied();
        self.locks.wait(word, vmid);
        match known {
            Some(spin) if spin.word == word && now.saturating_sub(spin.last) < MAX_POLL_GAP_NS => {
                let spin = Spin {
                    last: now,
                    waiting: true,
                    ..spin
                };
                self.spins.insert(vmid, spin);
            }
            _ => {
                if let Some(spin) = known {
                    self.end_spin(vmid, spin.last);
                }
                let spin = Spin {
                    word,
                    start: now,
                    last: now,
                    waiting: true,
                    holder: self.locks.holder(word),
                    waiters: self.locks.waiters(word),
                };
                self.spins.insert(vmid, spin);
            }
        }
    }

    /// The pause loop of the vCPU on the hart exits.
    fn pause_loop(&mut self, hart: HartId, now: u64, word: Option<u64>) {
        let Some((vmid, _)) = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu) else {
            return;
        };
        if let Some(owner) = self.owner(vmid) {
            let word = word.map_or_else(|| String::from("not read"), |word| format!("{word:#x}"));
            let name = String::from(PAUSE_LOOP_EXIT);
            self.sheet
                .mark(owner, now, name, vec![("word", word)], Vec::new());
        }
        let Some(word) = word else { return };
        self.spin(hart, now, word);
        if let Some(spin) = self.spins.get_mut(&vmid) {
            // No event tells when the loop ends, so an exit counts as a look at the word and not as a wait.
            spin.waiting = false;
        }
    }

    fn wake(&mut self, hart: HartId, now: u64, end: WaitEnd) {
        self.end_idle(hart, now);
        let Some((vmid, _)) = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu) else {
            return;
        };
        if let Some(spin) = self.spins.get_mut(&vmid) {
            spin.last = now;
            // Where time ends the wait, the trap follows.
            spin.waiting = end == WaitEnd::Time;
            if !spin.waiting {
                self.locks.wait_over(spin.word, vmid);
            }
        }
    }

    /// Writes a vCPU's spin down.
    fn end_spin(&mut self, vmid: u16, end: u64) {
        let Some(spin) = self.spins.remove(&vmid) else {
            return;
        };
        self.locks.wait_over(spin.word, vmid);
        if let Some(owner) = self.owner(vmid) {
            let name = format!("spins on {:#x}", spin.word);
            let holder = spin.holder.and_then(|holder| self.owner(holder));
            let holder = holder.map_or_else(|| String::from("not known"), |owner| owner.name());
            let details = vec![
                ("word", format!("{:#x}", spin.word)),
                ("holder", holder),
                ("waiters", spin.waiters.to_string()),
            ];
            self.sheet
                .slice(owner, spin.start, end, SliceKind::Spins, name, details);
        }
    }

    fn end_idle(&mut self, hart: HartId, now: u64) {
        let idle = self.harts.entry(hart.0).or_default().idle.take();
        if let Some(start) = idle {
            let name = String::from(SliceKind::Idle.name());
            self.sheet.slice(
                Owner::Hart(hart.0),
                start,
                now,
                SliceKind::Idle,
                name,
                Vec::new(),
            );
        }
    }

    /// Writes down who had a lock.
    fn hold(&mut self, hold: Hold) {
        let Some(holder) = self.owner(hold.holder) else {
            return;
        };
        let name = holder.name();
        let details = vec![
            ("holder", name.clone()),
            ("waiters", hold.waiters.to_string()),
        ];
        let owner = Owner::Lock(hold.word);
        self.sheet
            .slice(owner, hold.start, hold.end, SliceKind::Holds, name, details);
    }

    /// A hart handles what has arrived at a file.
    fn handle(&mut self, hart: HartId, now: u64, file: u8) -> Vec<Flow> {
        let taken = self.messages.take(hart.0, file);
        let shown = self.sheet.shown();
        let inside = |sent: &&Sent| shown.is_some_and(|(from, to)| sent.at >= from && now <= to);
        for sent in taken
            .iter()
            .filter(|sent| sent.source.is_some())
            .filter(inside)
        {
            self.deliveries.push(now.saturating_sub(sent.at));
        }
        let seen = taken.iter().filter(inside);
        seen.map(|sent| Flow::To(sent.flow)).collect()
    }

    fn device(&mut self, now: u64, happening: &Happening) {
        let (name, details, flows) = match happening {
            Happening::Line { source, level } => {
                self.messages.line(*source, *level, now);
                let change = if *level { "rises" } else { "falls" };
                (format!("source {source} {change}"), Vec::new(), Vec::new())
            }
            Happening::Message {
                hart,
                file,
                identity,
            } => {
                let sent = self.messages.arrive(hart.0, *file, now);
                let from = sent.and_then(|sent| sent.source);
                let from = from.map_or_else(
                    || String::from("a hart"),
                    |source| format!("source {source}"),
                );
                let details = vec![
                    ("file", file_name(*file)),
                    ("identity", identity.to_string()),
                    ("from", from),
                ];
                let flows = sent.map(|sent| Flow::From(sent.flow));
                let name = format!("message to hart {}", hart.0);
                (name, details, flows.into_iter().collect())
            }
            _ => return,
        };
        self.sheet.mark(Owner::Devices, now, name, details, flows);
    }

    /// Ends everything that is open.
    fn finish(&mut self) {
        let now = self.last;
        let harts: Vec<u32> = self.harts.keys().copied().collect();
        for hart in harts {
            self.end_idle(HartId(hart), now);
            self.leave(HartId(hart), now, false);
        }
        let spins: Vec<(u16, u64)> = self
            .spins
            .iter()
            .map(|(vmid, spin)| (*vmid, spin.last))
            .collect();
        for (vmid, last) in spins {
            self.end_spin(vmid, last);
        }
        for hold in self.locks.finish(now) {
            self.hold(hold);
        }
        for (vmid, (start, kind, why)) in std::mem::take(&mut self.away) {
            if let Some(owner) = self.owner(vmid) {
                self.sheet.slice(owner, start, now, kind, why, Vec::new());
            }
        }
    }
}
