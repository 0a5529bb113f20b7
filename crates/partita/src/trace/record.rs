//! From the machine's events to a timeline.

use super::{Kind, Lane, Mark, Owner, Slice, Timeline};
use machine::device::{Clock, Cycles, HartId, InterruptFile};
use machine::hart::{Cause, Mode, Privilege};
use machine::trace::{Event, Happening, Place, Sink, WaitEnd};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The stretch of machine time that is recorded, in nanoseconds since a vCPU first had a hart, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From here.
    pub start: u64,
    /// To here.
    pub end: u64,
    /// Most slices and marks together; later ones are counted and left out.
    pub most: usize,
}

/// Two waits on one word with less than this between them are one spin, in nanoseconds: the time to look at the word.
const LOOK: u64 = 20_000;

/// What is known of a hart.
#[derive(Debug, Default)]
struct OnHart {
    /// The VMID of the vCPU that has it, and since when.
    vcpu: Option<(u16, u64)>,
    /// The exit that is being handled: since when, and why.
    exit: Option<(u64, String)>,
    /// Idle since then.
    idle: Option<u64>,
}

/// What is known of a vCPU's spin.
#[derive(Debug, Clone, Copy)]
struct Spin {
    /// The physical address of the word.
    word: u64,
    start: u64,
    /// When it was last seen to wait.
    last: u64,
    /// Whether it waits now.
    waiting: bool,
}

/// Listens to a machine. Clones share what they hear.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Mutex<Record>>,
}

#[derive(Debug)]
struct Record {
    window: Window,
    /// When a vCPU first had a hart.
    begun: Option<u64>,
    clock: Clock,
    /// The vCPUs in the order of their VMIDs, from 1.
    vcpus: Vec<Owner>,
    harts: BTreeMap<u32, OnHart>,
    /// Spins by VMID.
    spins: BTreeMap<u16, Spin>,
    /// Since when a vCPU has been without a hart, and why.
    away: BTreeMap<u16, (u64, Kind, String)>,
    lanes: BTreeMap<Owner, Lane>,
    count: usize,
    lost: u64,
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
                window,
                begun: None,
                clock,
                vcpus: vcpus.collect(),
                harts: BTreeMap::new(),
                spins: BTreeMap::new(),
                away: BTreeMap::new(),
                lanes: BTreeMap::new(),
                count: 0,
                lost: 0,
                last: 0,
            })),
        }
    }

    /// When a vCPU first had a hart, in nanoseconds since reset, if one had.
    pub fn begun(&self) -> Option<u64> {
        let record = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        record.begun
    }

    /// What was heard, with everything that is open ended.
    pub fn timeline(&self) -> Timeline {
        let mut record = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        record.finish();
        let mut lanes: Vec<Lane> = std::mem::take(&mut record.lanes).into_values().collect();
        for lane in &mut lanes {
            lane.slices
                .sort_by_key(|slice| (slice.start, u64::MAX - slice.end));
            lane.marks.sort_by_key(|mark| mark.at);
        }
        Timeline {
            lanes,
            lost: record.lost,
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
                let why = describe(exception.cause);
                self.trap(hart, now, (*from, *to), *vmid, why, *pc);
            }
            Happening::Interrupt {
                code,
                from,
                to,
                pc,
                vmid,
            } => {
                let why = format!("interrupt {}", interrupt(*code));
                self.trap(hart, now, (*from, *to), *vmid, why, *pc);
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
            Happening::Wake { end } => self.wake(hart, now, *end),
            Happening::Fence { fence, mode } => {
                let details = vec![("mode", String::from(mode.name()))];
                let owner = self.running(hart).filter(|_| mode.virtualized);
                let owner = owner.unwrap_or(Owner::Hart(hart.0));
                self.mark(owner, now, format!("fence {fence:?}"), details);
            }
            _ => {}
        }
    }

    /// Who has the hart.
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
        why: String,
        pc: u64,
    ) {
        self.end_idle(hart, now);
        if !from.virtualized {
            return;
        }
        if to.virtualized {
            let details = vec![("address", format!("{pc:#x}"))];
            let owner = self.owner(vmid);
            self.mark(owner.unwrap_or(Owner::Hart(hart.0)), now, why, details);
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
        self.begun.get_or_insert(now);
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
                self.slice(owner, start, now, Kind::Exit, why, Vec::new());
            }
            return;
        }
        on_hart.vcpu = Some((vmid, now));
        let Some(owner) = self.owner(vmid) else {
            return;
        };
        if let Some((start, kind, why)) = self.away.remove(&vmid) {
            self.slice(owner, start, now, kind, why, Vec::new());
        }
    }

    /// The vCPU that had the hart has left it; `idle` if nobody follows at once.
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
        self.slice(
            owner.clone(),
            start,
            end,
            Kind::Runs,
            format!("on hart {}", hart.0),
            details.clone(),
        );
        let name = owner.name();
        self.slice(Owner::Hart(hart.0), start, end, Kind::Runs, name, details);
        let spin = self.spins.get_mut(&vmid).filter(|spin| {
            // A vCPU that left out of a wait for a word spins on.
            spin.waiting || end.saturating_sub(spin.last) < LOOK
        });
        let away = match spin {
            Some(spin) => {
                spin.waiting = false;
                let word = spin.word;
                self.end_spin(vmid, end);
                (end, Kind::SpinWait, format!("spin wait on {word:#x}"))
            }
            None if idle => (end, Kind::Waits, format!("waits ({why})")),
            None => (end, Kind::Waits, format!("off ({why})")),
        };
        self.away.insert(vmid, away);
    }

    /// The vCPU on the hart waits for a word.
    fn spin(&mut self, hart: HartId, now: u64, word: u64) {
        let Some((vmid, _)) = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu) else {
            return;
        };
        let known = self.spins.get(&vmid).copied();
        match known {
            Some(spin) if spin.word == word && now.saturating_sub(spin.last) < LOOK => {
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
                };
                self.spins.insert(vmid, spin);
            }
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
        }
    }

    /// Writes a vCPU's spin down.
    fn end_spin(&mut self, vmid: u16, end: u64) {
        let Some(spin) = self.spins.remove(&vmid) else {
            return;
        };
        if let Some(owner) = self.owner(vmid) {
            let name = format!("spins on {:#x}", spin.word);
            let details = vec![("word", format!("{:#x}", spin.word))];
            self.slice(owner, spin.start, end, Kind::Spins, name, details);
        }
    }

    fn end_idle(&mut self, hart: HartId, now: u64) {
        let idle = self.harts.entry(hart.0).or_default().idle.take();
        if let Some(start) = idle {
            let name = String::from(Kind::Idle.name());
            self.slice(
                Owner::Hart(hart.0),
                start,
                now,
                Kind::Idle,
                name,
                Vec::new(),
            );
        }
    }

    fn device(&mut self, now: u64, happening: &Happening) {
        let (name, details) = match happening {
            Happening::Line { source, level } => (
                format!("source {source} {}", if *level { "rises" } else { "falls" }),
                Vec::new(),
            ),
            Happening::Message {
                hart,
                file,
                identity,
            } => (
                format!("message to hart {}", hart.0),
                vec![
                    ("file", file_name(*file)),
                    ("identity", identity.to_string()),
                ],
            ),
            _ => return,
        };
        self.mark(Owner::Devices, now, name, details);
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
        for (vmid, (start, kind, why)) in std::mem::take(&mut self.away) {
            if let Some(owner) = self.owner(vmid) {
                self.slice(owner, start, now, kind, why, Vec::new());
            }
        }
    }

    fn slice(
        &mut self,
        owner: Owner,
        start: u64,
        end: u64,
        kind: Kind,
        name: String,
        details: Vec<(&'static str, String)>,
    ) {
        let Some((from, to)) = self.shown() else {
            return;
        };
        let (start, end) = (start.max(from), end.min(to));
        if start >= end || !self.has_room() {
            return;
        }
        self.lane(owner).slices.push(Slice {
            start,
            end,
            kind,
            name,
            details,
        });
    }

    fn mark(&mut self, owner: Owner, at: u64, name: String, details: Vec<(&'static str, String)>) {
        let inside = self
            .shown()
            .is_some_and(|(from, to)| (from..=to).contains(&at));
        if !inside || !self.has_room() {
            return;
        }
        self.lane(owner).marks.push(Mark { at, name, details });
    }

    /// The window in nanoseconds since reset.
    fn shown(&self) -> Option<(u64, u64)> {
        let begun = self.begun?;
        let from = begun.saturating_add(self.window.start);
        Some((from, begun.saturating_add(self.window.end)))
    }

    fn has_room(&mut self) -> bool {
        let room = self.count < self.window.most;
        if room {
            self.count += 1;
        } else {
            self.lost += 1;
        }
        room
    }

    fn lane(&mut self, owner: Owner) -> &mut Lane {
        self.lanes.entry(owner.clone()).or_insert_with(|| Lane {
            owner,
            slices: Vec::new(),
            marks: Vec::new(),
        })
    }
}

fn file_name(file: InterruptFile) -> String {
    format!("{file:?}")
}

fn describe(cause: Cause) -> String {
    let text = format!("{cause:?}");
    // The first word, without what it holds.
    let word = text.split([' ', '(', '{']).next().unwrap_or_default();
    let mut out = String::new();
    for character in word.chars() {
        if character.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(character.to_lowercase());
    }
    out
}

/// Interrupt codes of scause and vscause (privileged architecture, §Supervisor cause register; AIA).
fn interrupt(code: u64) -> String {
    let name = match code {
        1 | 2 => "software",
        5 | 6 => "timer",
        9 | 10 => "external",
        12 => "guest-external",
        13 => "overflow",
        other => return other.to_string(),
    };
    String::from(name)
}
