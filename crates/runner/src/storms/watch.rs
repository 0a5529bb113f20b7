//! From the machine's events to storms.

use super::count::{PauseExitClass, Storms, TOGETHER, Wait};
use machine::Machine;
use machine::device::{Clock, Cycles, HartId};
use machine::hart::{Mode, Privilege};
use machine::trace::locks::{Locks, Turn, Vmid};
use machine::trace::{Event, Happening, Place, Sink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The extension without which there is nothing to watch (docs/reference/extensions.md).
const PAUSE_LOOP_EXITING: &str = "xpartitaple";

/// Software that runs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// A hypervisor, ours or another, with virtual machines: what they wait for is watched.
    Hypervisor,
    /// One kernel, by itself. Its harts are told apart by their numbers, as vCPUs are by their VMIDs. No loop exits there, and a wait counts
    /// from when it begins.
    Kernel,
}

/// Listens to a machine. Clones share what they hear.
#[derive(Debug, Clone)]
pub struct Watcher {
    shared: Arc<Mutex<Watch>>,
}

impl Watcher {
    /// Listens to a machine from now on, if its harts have pause-loop exiting.
    pub fn attach(machine: &mut Machine, runs: Runs) -> Option<Self> {
        let extensions = &machine.config().board.isa.extensions;
        if !extensions.iter().any(|name| name == PAUSE_LOOP_EXITING) {
            return None;
        }
        let watcher = Self::new(machine.clock(), runs);
        machine.system_mut().tells_bare_locks = runs == Runs::Kernel;
        machine.listen(Box::new(watcher.clone()));
        Some(watcher)
    }

    /// A watcher of a machine with this clock.
    pub fn new(clock: Clock, runs: Runs) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Watch {
                runs,
                clock,
                harts: BTreeMap::new(),
                left: BTreeMap::new(),
                locks: Locks::default(),
                waits: BTreeMap::new(),
                exited: BTreeMap::new(),
                storms: Storms::default(),
                contended_before: 0,
                last: 0,
            })),
        }
    }

    /// Counts from now on. What is known of locks, and the waits that go on with the exits that they have had, are kept.
    pub fn begin(&self) {
        let mut watch = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        watch.storms = Storms::default();
        watch.contended_before = watch.locks.contended();
    }

    /// Accounts so far; waits that go on count with the exits that they have had.
    pub fn storms(&self) -> Storms {
        let watch = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut storms = watch.storms.clone();
        let counts = |word| match watch.runs {
            Runs::Hypervisor => true,
            Runs::Kernel => matches!(watch.locks.turn(word), Turn::Of(..)),
        };
        let waits = watch.waits.iter();
        let waits = waits.filter(|((_, word), _)| counts(*word));
        for (&(vmid, word), wait) in waits {
            storms.lose(wait.class, watch.last.saturating_sub(wait.latest));
            storms.wait(wait.end(vmid, word, watch.last));
        }
        storms.contended = watch.locks.contended() - watch.contended_before;
        storms
    }
}

impl Sink for Watcher {
    fn event(&mut self, event: &Event) {
        let mut watch = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        watch.event(event);
    }
}

/// A hart's number in the place of a VMID.
fn bare(hart: HartId) -> Vmid {
    Vmid::try_from(hart.0).unwrap_or(Vmid::MAX)
}

/// A wait that goes on.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: u64,
    exits: u64,
    /// When its latest exit was, and of which class.
    latest: u64,
    class: PauseExitClass,
}

impl Open {
    const fn end(self, vmid: Vmid, word: u64, end: u64) -> Wait {
        Wait {
            vmid,
            word,
            start: self.start,
            end,
            exits: self.exits,
        }
    }
}

/// State of a hart.
#[derive(Debug, Default)]
struct OnHart {
    /// The vCPU that has it.
    vcpu: Option<Vmid>,
    /// When its last exit was, while that is handled.
    exit: Option<u64>,
}

#[derive(Debug)]
struct Watch {
    runs: Runs,
    clock: Clock,
    harts: BTreeMap<u32, OnHart>,
    /// Until when each vCPU without a hart had one.
    left: BTreeMap<Vmid, u64>,
    locks: Locks,
    /// The waits that go on, by vCPU and word.
    waits: BTreeMap<(Vmid, u64), Open>,
    /// When each vCPU's latest exit from a pause loop was.
    exited: BTreeMap<Vmid, u64>,
    storms: Storms,
    /// Tickets that had been drawn before their turn when counting began.
    contended_before: u64,
    last: u64,
}

impl Watch {
    fn event(&mut self, event: &Event) {
        let Place::Hart(hart) = event.place else {
            return;
        };
        let now = self.clock.nanoseconds(Cycles(event.cycles));
        self.last = self.last.max(now);
        match &event.happening {
            Happening::Exception { from, to, .. } | Happening::Interrupt { from, to, .. }
                // M-mode handles what it must and returns; only HS-mode's traps are exits.
                if from.virtualized
                    && !to.virtualized
                    && to.privilege == Privilege::Supervisor =>
            {
                self.harts.entry(hart.0).or_default().exit = Some(now);
            }
            Happening::Return { to, vmid, .. } if to.virtualized => self.enter(hart, now, *vmid),
            Happening::PauseLoop { mode, physical: Some(physical), .. }
            | Happening::WaitForStore { mode, physical, .. }
                if self.is_bare(*mode) =>
            {
                self.begin_wait(bare(hart), *physical, now);
            }
            Happening::WaitForInterrupt { mode } | Happening::WaitForStore { mode, .. }
                if *mode == Mode::HYPERVISOR =>
            {
                self.leave(hart, now);
            }
            Happening::PauseLoop { mode, physical, pc } if mode.virtualized => {
                self.storms.at(*pc);
                self.pause_loop(hart, now, *physical);
            }
            Happening::Word {
                mode,
                physical,
                value,
                stored,
            } => {
                let vcpu = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu);
                let by = match self.is_bare(*mode) {
                    true => Some(bare(hart)),
                    false => vcpu.filter(|_| mode.virtualized),
                };
                self.word(*physical, *value, by.filter(|_| *stored), now);
            }
            _ => {}
        }
    }

    /// Returns whether this is the mode of a kernel that runs by itself.
    fn is_bare(&self, mode: Mode) -> bool {
        self.runs == Runs::Kernel && !mode.virtualized && mode.privilege == Privilege::Supervisor
    }

    /// A vCPU polls a word, and will again. A wait that goes on goes on.
    fn begin_wait(&mut self, waiter: Vmid, word: u64, now: u64) {
        // Its turn has come, and it has not looked since.
        if matches!(self.locks.turn(word), Turn::Of(holder, _) if holder == waiter) {
            return;
        }
        self.locks.wait(word, waiter);
        self.waits.entry((waiter, word)).or_insert(Open {
            start: now,
            exits: 0,
            latest: now,
            class: PauseExitClass::FalseExit,
        });
    }

    fn enter(&mut self, hart: HartId, now: u64, vmid: Vmid) {
        let on_hart = self.harts.entry(hart.0).or_default();
        if on_hart.vcpu != Some(vmid) {
            self.leave(hart, now);
        }
        self.left.remove(&vmid);
        self.harts.insert(
            hart.0,
            OnHart {
                vcpu: Some(vmid),
                exit: None,
            },
        );
    }

    /// The vCPU that had the hart has left it: at its last exit, as what follows is the hypervisor's.
    fn leave(&mut self, hart: HartId, now: u64) {
        let on_hart = self.harts.entry(hart.0).or_default();
        let at = on_hart.exit.take().unwrap_or(now);
        if let Some(vmid) = on_hart.vcpu.take() {
            self.left.insert(vmid, at);
        }
    }

    fn pause_loop(&mut self, hart: HartId, now: u64, physical: Option<u64>) {
        let vcpu = self.harts.get(&hart.0).and_then(|on_hart| on_hart.vcpu);
        if let Some(vmid) = vcpu {
            self.at_once(vmid, now);
        }
        let (Some(vmid), Some(word)) = (vcpu, physical) else {
            self.storms.exit(PauseExitClass::Undecoded);
            return;
        };
        self.locks.wait(word, vmid);
        let class = self.class(word);
        self.storms.exit(class);
        let wait = self.waits.entry((vmid, word)).or_insert(Open {
            start: now,
            exits: 0,
            latest: now,
            class,
        });
        wait.exits += 1;
        let since = now.saturating_sub(wait.latest);
        self.storms.lose(wait.class, since);
        (wait.latest, wait.class) = (now, class);
    }

    /// Why a vCPU that waits for this word has to.
    fn class(&self, word: u64) -> PauseExitClass {
        match self.locks.turn(word) {
            Turn::NoLock => PauseExitClass::NotALock,
            Turn::Unknown => PauseExitClass::HolderUnknown,
            Turn::Free => PauseExitClass::FalseExit,
            Turn::Of(holder, since) => match self.left.get(&holder) {
                None => PauseExitClass::FalseExit,
                // It has seen that its turn has come.
                Some(left) if *left > since => PauseExitClass::HolderPreempted,
                Some(_) => PauseExitClass::WaiterPreempted,
            },
        }
    }

    /// Counts the vCPUs whose pause loops have exited lately, this one among them.
    fn at_once(&mut self, vmid: Vmid, now: u64) {
        self.exited.insert(vmid, now);
        let from = now.saturating_sub(TOGETHER);
        self.exited.retain(|_, exit| *exit >= from);
        self.storms.at_once(self.exited.len() as u64);
    }

    fn word(&mut self, word: u64, value: u64, by: Option<Vmid>, now: u64) {
        if let Some(hold) = self.locks.word(word, value, by, now) {
            self.storms.hold(word, hold.end.saturating_sub(hold.start));
        }
        let Some(by) = by else { return };
        match self.locks.turn(word) {
            Turn::Of(holder, _) => {
                self.end_wait(holder, word, now);
                // The turn of a ticket that was drawn before the watch began is unseen: the length of its wait is not known.
                if self.runs == Runs::Kernel {
                    self.forget_wait(by, word);
                }
            }
            // Who stores to a lock has no turn to wait for.
            Turn::Free | Turn::Unknown => self.end_wait(by, word, now),
            Turn::NoLock => {
                let waits = self.waits.keys().filter(|(_, at)| *at == word);
                let vmids: Vec<Vmid> = waits.map(|(vmid, _)| *vmid).collect();
                for vmid in vmids {
                    match self.runs {
                        Runs::Hypervisor => self.end_wait(vmid, word, now),
                        // A kernel's own waits are counted at locks alone.
                        Runs::Kernel => self.forget_wait(vmid, word),
                    }
                }
            }
        }
    }

    /// Such a wait does not count.
    fn forget_wait(&mut self, vmid: Vmid, word: u64) {
        if self.waits.remove(&(vmid, word)).is_some() {
            self.locks.wait_over(word, vmid);
        }
    }

    fn end_wait(&mut self, vmid: Vmid, word: u64, now: u64) {
        if let Some(wait) = self.waits.remove(&(vmid, word)) {
            self.locks.wait_over(word, vmid);
            self.storms
                .lose(wait.class, now.saturating_sub(wait.latest));
            self.storms.wait(wait.end(vmid, word, now));
        }
    }
}

#[cfg(test)]
mod tests;
