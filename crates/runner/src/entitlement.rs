//! How many harts each VM could use at each moment, and how many it had: told from the machine's events.
//!
//! A vCPU could use a hart while it is on one, and while it was taken off one although it did not wait. One that left at WRS.NTO could use
//! one again as soon as its word is stored to; where the word is a lock that has gone to another vCPU, only after that. One that left
//! at WFI could use one again when it is on one: the machine's events do not tell whose interrupt arrives. Nor do they tell the word of one
//! that left by a call; but of vCPUs that wait for each other one can always go on, so a VM with such a vCPU can use one hart.
//!
//! What a VM is *due* at a moment is its share of the harts, and no more than it could use then; what it cannot use is the others', by
//! their shares. A hart is a VM's from when it enters one of its vCPUs until it enters another VM's, or has nothing to do.

use machine::hart::{Cause, Mode, Privilege};
use machine::trace::locks::{Locks, Turn};
use machine::trace::{Event, Happening, Place, Sink};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Two instructions by their encodings (unprivileged and privileged ISA).
const WFI: u64 = riscv::instruction::WFI as u64;
const WRS_NTO: u64 = riscv::instruction::WRS_NTO as u64;

/// Hart time that a VM got and was due in a stretch of time, in cycles of a hart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Had {
    pub(crate) got: f64,
    pub(crate) due: f64,
    /// The time in which it could use no hart.
    pub(crate) wanted_none: f64,
}

impl Had {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            got: self.got + other.got,
            due: self.due + other.due,
            wanted_none: self.wanted_none + other.wanted_none,
        }
    }
}

/// A VM as it is entitled to harts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entitled {
    pub(crate) vcpus: u32,
    /// Zero for one that has harts of its own.
    pub(crate) share: f64,
}

/// State of a vCPU.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    /// The vCPU is on a hart.
    Runs,
    /// The vCPU could run.
    Wants,
    /// The vCPU waits for this word.
    Word(u64),
    /// The vCPU waits for a partner, and for which word is not known.
    Partner,
    /// The vCPU waits for an interrupt, or was not started.
    Interrupt,
}

#[derive(Debug, Default)]
struct OnHart {
    vmid: Option<u16>,
    /// State of the vCPU if it leaves at the exit that is being handled.
    left: Option<Doing>,
    /// The word that the hart waited for last.
    word: u64,
}

#[derive(Debug)]
struct Book {
    /// The shared harts.
    harts: f64,
    vms: Vec<Entitled>,
    /// The VM of each vCPU, and what it does; the first has VMID 1.
    vcpus: Vec<(usize, Doing)>,
    on: BTreeMap<u32, OnHart>,
    locks: Locks,
    had: Vec<Had>,
    last: u64,
}

/// Listens to a machine. Clones share what they hear.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    shared: Arc<Mutex<Book>>,
}

impl Demand {
    /// For a hypervisor that gives the vCPUs of these VMs, VM by VM, the VMIDs from 1, on so many shared harts.
    pub(crate) fn new(harts: u32, vms: Vec<Entitled>) -> Self {
        let each = vms.iter().enumerate();
        let vcpus = each.flat_map(|(vm, entitled)| (0..entitled.vcpus).map(move |_| vm));
        Self {
            shared: Arc::new(Mutex::new(Book {
                harts: f64::from(harts),
                vcpus: vcpus.map(|vm| (vm, Doing::Interrupt)).collect(),
                on: BTreeMap::new(),
                locks: Locks::default(),
                had: vec![Had::default(); vms.len()],
                vms,
                last: 0,
            })),
        }
    }

    /// Hart time of each VM since the last call, up to `now` in cycles since reset.
    pub(crate) fn take(&self, now: u64) -> Vec<Had> {
        let mut book = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        book.pass(now);
        let none = vec![Had::default(); book.vms.len()];
        std::mem::replace(&mut book.had, none)
    }
}

impl Sink for Demand {
    fn event(&mut self, event: &Event) {
        let mut book = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        book.event(event);
    }
}

impl Book {
    fn event(&mut self, event: &Event) {
        let Place::Hart(hart) = event.place else {
            return;
        };
        self.pass(event.cycles);
        let hart = hart.0;
        match &event.happening {
            Happening::Exception {
                exception,
                from,
                to,
                ..
            } if is_exit(*from, *to) => {
                let word = self.on.entry(hart).or_default().word;
                let doing = match (exception.cause, exception.value) {
                    (Cause::VirtualInstruction, WFI) => Doing::Interrupt,
                    (Cause::VirtualInstruction, WRS_NTO) => Doing::Word(word),
                    (Cause::CallFromVirtualSupervisor, _) => Doing::Partner,
                    _ => Doing::Wants,
                };
                self.on.entry(hart).or_default().left = Some(doing);
            }
            Happening::Interrupt { from, to, .. } if is_exit(*from, *to) => {
                self.on.entry(hart).or_default().left = Some(Doing::Wants);
            }
            Happening::Return { to, vmid, .. } if to.virtualized => self.enter(hart, *vmid),
            Happening::WaitForInterrupt { mode } if mode.virtualized => {
                let vmid = self.on.entry(hart).or_default().vmid;
                self.set(vmid, Doing::Interrupt);
            }
            Happening::WaitForInterrupt { mode } | Happening::WaitForStore { mode, .. }
                if *mode == Mode::HYPERVISOR =>
            {
                self.leave(hart);
            }
            Happening::WaitForStore { mode, physical, .. } if mode.virtualized => {
                let on = self.on.entry(hart).or_default();
                on.word = *physical;
                if let Some(vmid) = on.vmid {
                    self.locks.wait(*physical, vmid);
                }
            }
            Happening::Wake { .. } => {
                let vmid = self.on.entry(hart).or_default().vmid;
                self.set(vmid, Doing::Runs);
            }
            Happening::Word {
                mode,
                physical,
                value,
                stored,
            } => {
                let by = self.on.get(&hart).and_then(|on| on.vmid);
                let by = by.filter(|_| *stored && mode.virtualized);
                let _ = self.locks.word(*physical, *value, by, event.cycles);
                if *stored {
                    self.stored(*physical);
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, vmid: Option<u16>, doing: Doing) {
        let place = vmid.and_then(|vmid| usize::from(vmid).checked_sub(1));
        if let Some(vcpu) = place.and_then(|place| self.vcpus.get_mut(place)) {
            vcpu.1 = doing;
        }
    }

    /// The hart enters a vCPU.
    fn enter(&mut self, hart: u32, vmid: u16) {
        if self.on.get(&hart).is_some_and(|on| on.vmid != Some(vmid)) {
            self.leave(hart);
        }
        let on = self.on.entry(hart).or_default();
        on.vmid = Some(vmid);
        on.left = None;
        let waited = usize::from(vmid).checked_sub(1);
        let waited = waited.and_then(|place| self.vcpus.get(place));
        if let Some((_, Doing::Word(word))) = waited {
            // If it must wait on, it says so again.
            self.locks.wait_over(*word, vmid);
        }
        self.set(Some(vmid), Doing::Runs);
    }

    /// The hart's vCPU leaves it.
    fn leave(&mut self, hart: u32) {
        let on = self.on.entry(hart).or_default();
        let (vmid, left) = (on.vmid.take(), on.left.take());
        self.set(vmid, left.unwrap_or(Doing::Wants));
    }

    /// A word was stored to: vCPUs that wait for it could run, except vCPUs whose turn at a lock has not come.
    fn stored(&mut self, word: u64) {
        let turn = self.locks.turn(word);
        for (vmid, (_, doing)) in (1..).zip(&mut self.vcpus) {
            let others = matches!(turn, Turn::Of(holder, _) if holder != vmid);
            if *doing == Doing::Word(word) && !others {
                *doing = Doing::Wants;
            }
        }
    }

    /// Books the time up to `now`.
    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last) as f64;
        self.last = self.last.max(now);
        if passed == 0.0 {
            return;
        }
        let mut usable = vec![0.0; self.vms.len()];
        let mut partners = vec![false; self.vms.len()];
        for (vm, doing) in &self.vcpus {
            match doing {
                Doing::Runs | Doing::Wants => usable[*vm] += 1.0,
                Doing::Partner => partners[*vm] = true,
                Doing::Word(_) | Doing::Interrupt => {}
            }
        }
        for (usable, partner) in usable.iter_mut().zip(partners) {
            if partner {
                *usable = f64::max(*usable, 1.0);
            }
        }
        let shares: Vec<f64> = self.vms.iter().map(|vm| vm.share).collect();
        let dues = due(self.harts, &shares, &usable);
        for ((had, due), usable) in self.had.iter_mut().zip(dues).zip(usable) {
            had.due += due * passed;
            if usable == 0.0 {
                had.wanted_none += passed;
            }
        }
        for on in self.on.values() {
            let place = on.vmid.and_then(|vmid| usize::from(vmid).checked_sub(1));
            let vcpu = place.and_then(|place| self.vcpus.get(place));
            if let Some((vm, doing)) = vcpu
                && *doing != Doing::Interrupt
            {
                self.had[*vm].got += passed;
            }
        }
    }
}

/// Hart time that is due to each of so many harts: in proportion to its share, no more than it can use, and what one cannot use is the others'.
fn due(harts: f64, shares: &[f64], usable: &[f64]) -> Vec<f64> {
    let mut due = vec![0.0; shares.len()];
    let mut open: Vec<usize> = (0..shares.len())
        .filter(|&vm| shares[vm] > 0.0 && usable[vm] > 0.0)
        .collect();
    let mut left = harts;
    while !open.is_empty() {
        let part = left / open.iter().map(|&vm| shares[vm]).sum::<f64>();
        let (full, more): (Vec<usize>, Vec<usize>) = open
            .iter()
            .partition(|&&vm| part * shares[vm] >= usable[vm]);
        if full.is_empty() {
            more.iter().for_each(|&vm| due[vm] = part * shares[vm]);
            break;
        }
        for &vm in &full {
            due[vm] = usable[vm];
            left -= usable[vm];
        }
        open = more;
    }
    due
}

/// Returns whether a trap leads from a guest to the hypervisor.
fn is_exit(from: Mode, to: Mode) -> bool {
    from.virtualized && !to.virtualized && to.privilege == Privilege::Supervisor
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::device::HartId;
    use machine::hart::Exception;

    const WORD: u64 = 0x8100_0000;
    const GUEST: Mode = Mode {
        privilege: Privilege::Supervisor,
        virtualized: true,
    };

    fn tell(demand: &mut Demand, hart: u32, cycles: u64, happening: Happening) {
        demand.event(&Event {
            place: Place::Hart(HartId(hart)),
            cycles,
            retired: 0,
            happening,
        });
    }

    fn enter(demand: &mut Demand, hart: u32, cycles: u64, vmid: u16) {
        let happening = Happening::Return {
            from: Mode::HYPERVISOR,
            to: GUEST,
            pc: 0,
            vmid,
        };
        tell(demand, hart, cycles, happening);
    }

    fn traps(demand: &mut Demand, hart: u32, cycles: u64, vmid: u16, instruction: u64) {
        let happening = Happening::Exception {
            exception: Exception::new(Cause::VirtualInstruction, instruction),
            from: GUEST,
            to: Mode::HYPERVISOR,
            pc: 0,
            vmid,
        };
        tell(demand, hart, cycles, happening);
    }

    fn of_equal_shares(vcpus: [u32; 2], harts: u32) -> Demand {
        let vm = |vcpus| Entitled {
            vcpus,
            share: 100.0,
        };
        Demand::new(harts, vcpus.into_iter().map(vm).collect())
    }

    #[test]
    fn what_one_cannot_use_is_the_others() {
        assert_eq!(due(2.0, &[1.0, 1.0], &[2.0, 2.0]), [1.0, 1.0]);
        assert_eq!(due(4.0, &[1.0, 1.0], &[1.0, 4.0]), [1.0, 3.0]);
        assert_eq!(due(2.0, &[1.0, 3.0], &[2.0, 2.0]), [0.5, 1.5]);
        assert_eq!(
            due(4.0, &[1.0, 1.0], &[1.0, 1.0]),
            [1.0, 1.0],
            "no more than both can use"
        );
        assert_eq!(due(1.0, &[1.0, 1.0], &[0.0, 1.0]), [0.0, 1.0]);
    }

    #[test]
    fn preempted_vcpu_is_due_its_share() {
        let mut demand = of_equal_shares([1, 1], 1);
        enter(&mut demand, 0, 0, 1);
        let interrupt = Happening::Interrupt {
            code: 5,
            from: GUEST,
            to: Mode::HYPERVISOR,
            pc: 0,
            vmid: 1,
            guest_file: 0,
        };
        tell(&mut demand, 0, 100, interrupt);
        enter(&mut demand, 0, 100, 2);
        let had = demand.take(300);
        assert_eq!((had[0].got, had[0].due), (100.0, 200.0));
        assert_eq!((had[1].got, had[1].due), (200.0, 100.0));
        assert_eq!((had[0].wanted_none, had[1].wanted_none), (0.0, 100.0));
    }

    #[test]
    fn word_waiter_is_due_nothing_before_store() {
        let mut demand = of_equal_shares([1, 1], 1);
        enter(&mut demand, 0, 0, 1);
        let waits = Happening::WaitForStore {
            mode: GUEST,
            physical: WORD,
            deadline: 5,
        };
        tell(&mut demand, 0, 0, waits);
        traps(&mut demand, 0, 100, 1, WRS_NTO);
        enter(&mut demand, 0, 100, 2);
        let had = demand.take(200);
        assert_eq!((had[0].due, had[0].wanted_none), (100.0, 100.0));
        let stored = |value| Happening::Word {
            mode: GUEST,
            physical: WORD,
            value,
            stored: true,
        };
        // The other one takes what looks like a lock, and frees it.
        tell(&mut demand, 0, 200, stored(7));
        tell(&mut demand, 0, 300, stored(0));
        let had = demand.take(400);
        assert_eq!((had[0].due, had[0].wanted_none), (50.0, 100.0));
        assert_eq!((had[1].due, had[1].got), (150.0, 200.0));
    }

    #[test]
    fn who_sleeps_is_due_nothing() {
        let mut demand = of_equal_shares([1, 1], 2);
        enter(&mut demand, 0, 0, 1);
        enter(&mut demand, 1, 0, 2);
        traps(&mut demand, 0, 100, 1, WFI);
        let idle = Happening::WaitForInterrupt {
            mode: Mode::HYPERVISOR,
        };
        tell(&mut demand, 0, 100, idle);
        let had = demand.take(400);
        assert_eq!((had[0].due, had[0].got), (100.0, 100.0));
        assert_eq!((had[1].due, had[1].got), (400.0, 400.0));
    }
}
